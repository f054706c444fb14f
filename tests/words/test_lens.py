"""The logit lens in words."""

from playground.words.lens import lens_caveat, stage_names
from tests.model.configs import TINY, VARIANTS


def test_stages_are_named():
    assert stage_names(2) == ("embeddings", "layer 0", "layer 1")


def test_post_norm_models_get_their_own_caveat():
    assert "post-norm" in lens_caveat(VARIANTS["post-norm"]) and "post-norm" not in lens_caveat(TINY)
