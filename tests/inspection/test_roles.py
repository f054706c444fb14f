"""Roles of heads: whoever was made to do a job is named for it, whoever does none is unclear."""

import dataclasses

import numpy as np
import pytest
import torch

from playground.data import LANGUAGES
from playground.data.tokenizers import CharTokenizer
from playground.inspection import roles
from playground.inspection.edits import SwitchOff, edits_tap
from playground.inspection.roles import ROLES, Estimate, head_tests
from playground.model import ModelConfig, Transformer
from playground.training.losses import window_losses
from tests.model.configs import VARIANTS

from .handmade import JOBS, handmade, text


@pytest.fixture(scope="module")
def tested():
    return head_tests(handmade(), text())


def test_heads_made_by_hand_are_named_for_their_jobs(tested):
    assert tested.roles == [list(row) for row in JOBS]
    assert set(ROLES) == {job for row in JOBS for job in row}, "every role there is was made by hand"
    # The head that goes by place keeps it; the other one rests on the first token until something repeats.
    followed, weights, given_up = JOBS[0].index("followed"), tested.weights, tested.given_up["induction"]
    assert weights["first"].at(1, 0)[0] > 0.3 and weights["induction"].at(1, 0)[0] > 0.6 and given_up.at(1, 0)[0] > 0.9
    assert weights["induction"].at(0, followed)[0] > 0.9 and abs(given_up.at(0, followed)[0]) < 0.05


def test_the_effect_is_what_the_loss_rises_by_and_a_costly_head_without_a_place_is_unclear(tested):
    model = handmade()
    windows = roles._windows(torch.tensor(text()), model.config.context_length)
    even, worth = JOBS[0].index("even"), []
    for tap in ({}, {"tap": edits_tap([SwitchOff(0, "head", even)], model.config)}):
        worth.append(window_losses(model, windows[:, :-1], windows[:, 1:], **tap).mean)
    assert tested.effect.at(0, even)[0] == pytest.approx(worth[1] - worth[0], abs=1e-5) and worth[1] - worth[0] > 0.05
    assert tested.loss == pytest.approx(worth[0], abs=1e-5)
    effects = [(tested.effect.is_clear(*at), tested.effect.mean[at]) for at in tested.ranking()]
    assert effects == sorted(effects, reverse=True) and {(0, 4), (0, 5)} == set(tested.ranking()[:2])
    at = next((la, h) for la, row in enumerate(JOBS) for h, job in enumerate(row) if job == "unclear")
    assert not tested.matters(*at)
    mean = tested.effect.mean.copy()
    mean[at] = 1.2936
    none = Estimate(0 * mean, 0 * mean)
    costly = dataclasses.replace(tested, effect=Estimate(mean, none.mean + 0.0864), evenness=none, moved=none)
    assert costly.matters(*at) and costly.role(*at) == "unclear", "neither even nor by content"
    assert not dataclasses.replace(costly, effect=Estimate(mean, none.mean + 1.29)).matters(*at)


def test_heads_of_a_model_before_training_are_unclear():
    """Of hundreds of heads, with and without each choice of architecture, at most one in twenty is named."""
    language = LANGUAGES["stories"]
    ids = CharTokenizer.from_text(language.sample(4000, seed=3)).encode(language.sample(4000, seed=3))
    named, heads = [], 0
    for name, config in VARIANTS.items():
        for seed, init_std in enumerate((None, 0.3)):
            model = Transformer(config.replace(vocab_size=40, context_length=32, init_std=init_std), seed=100 + seed)
            found = [role for row in head_tests(model, ids, seed=seed).roles for role in row]
            heads += len(found)
            named += [(name, role) for role in found if role != "unclear"]
    assert heads >= 200 and len(named) <= 0.05 * heads, named


def test_where_nothing_repeats_no_repetition_is_told_and_too_short_a_text_is_refused():
    """Five spaces are not induction: what followed last time is the token itself."""
    model = handmade()
    for ids in ([0] * 400, [3] * 400):
        found = head_tests(model, ids)
        assert np.isnan(found.weights["induction"].mean).all()
        assert not {"induction", "duplicate", "followed"} & {role for row in found.roles for role in row}
    with pytest.raises(ValueError, match=r"5.*2.*3"):
        head_tests(handmade(), text()[:7])
    with pytest.raises(ValueError, match="of 4"):
        head_tests(Transformer(ModelConfig(vocab_size=30, context_length=4, d_model=16)), text())
