"""The logit lens in words."""

from playground.inspection.attribution import Part
from playground.words.lens import lens_caveat, part_name, stage_names
from tests.model.configs import TINY, VARIANTS


def test_stages_and_parts_are_named():
    assert stage_names(2) == ("embeddings", "layer 0", "layer 1")
    assert part_name(Part("head", 1.0, layer=1, head=2)) == "L1 H2"
    assert part_name(Part("feed-forward", 1.0, layer=1)) == "L1 feed-forward"
    assert part_name(Part("embedding", 1.0)) == "embedding"


def test_post_norm_models_get_their_own_caveat():
    assert "post-norm" in lens_caveat(VARIANTS["post-norm"]) and "post-norm" not in lens_caveat(TINY)
