"""Heads: those made by hand do what their score and their role say, and all scores are what plain loops find."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from playground.data import LANGUAGES
from playground.data.tokenizers import CharTokenizer
from playground.inspection import Look, roles
from playground.inspection.cost import effect
from playground.inspection.edits import SwitchOff, edits_tap
from playground.inspection.heads import head_scores, moves, ranked
from playground.inspection.roles import ROLES, Estimate, head_tests
from playground.model import ModelConfig, Trace, Transformer
from playground.storage import Checkpoint
from playground.training import History
from playground.training.losses import window_losses
from tests.inspection.test_receipts import look_at
from tests.model.configs import GPU, VARIANTS

from .handmade import JOBS, handmade, text

WORDS = CharTokenizer("abcdefghij")


def drawn(patterns: dict[str, np.ndarray], ids: list[int]) -> Look:
    """A look whose one layer has these patterns, a head each."""
    T, names = len(ids), list(patterns)
    config = ModelConfig(vocab_size=11, context_length=T, n_layers=1, n_heads=len(names), d_model=2 * len(names))
    pattern = torch.tensor(np.stack([patterns[name] for name in names]), dtype=torch.float32)[None]
    checkpoint = Checkpoint(Transformer(config), WORDS, History())
    return Look(checkpoint, tuple(ids), ("x",) * T, Trace({("pattern", 0): pattern}))


def one_hot(targets: list[int]) -> np.ndarray:
    return np.eye(len(targets))[targets]


def test_what_a_prompt_cannot_tell_is_no_number():
    scores = head_scores(look_at(VARIANTS["learned"], [0, 1, 2, 3]))
    assert np.isnan(scores.duplicate).all() and np.isnan(scores.induction).all()
    alone = head_scores(look_at(VARIANTS["learned"], [5]))
    assert np.isnan(alone.previous).all() and len(alone.ranking()) == 8
    scores = head_scores(look_at(VARIANTS["learned"], [4] * 6))
    assert np.isnan(scores.induction).all()


def test_pure_heads_have_pure_scores():
    once = [3, 1, 4, 0, 5, 2]
    ids, n = once + once, len(once)
    T = 2 * n
    patterns = {
        "previous": one_hot([max(t - 1, 0) for t in range(T)]),
        "first": one_hot([0] * T),
        "itself": one_hot(list(range(T))),
        "duplicate": one_hot([t - n if t >= n else t for t in range(T)]),
        "induction": one_hot([t - n + 1 if t >= n else 0 for t in range(T)]),
        "evenly": np.tril(np.ones((T, T))) / np.arange(1, T + 1)[:, None],
    }
    scores = head_scores(drawn(patterns, ids))
    assert scores.previous[0, 0] == scores.first[0, 1] == scores.itself[0, 2] == 1
    assert scores.duplicate[0, 3] == scores.induction[0, 4] == 1
    assert scores.evenness[0, 5] == pytest.approx(1) and scores.entropy[0, 0] == 0
    assert scores.entropy[0, 5] == pytest.approx(np.mean(np.log2(np.arange(2, T + 1))), rel=1e-5)
    assert scores.ranking()[0] == (0, 0) and {(0, 1), (0, 2), (0, 5)} == set(scores.ranking()[-3:])


@pytest.mark.parametrize("name", ["learned", "sees the future", "rmsnorm, swiglu, grouped"])
def test_scores_are_what_loops_find(name):
    ids = [1, 2, 1, 1, 2, 5, 1, 2]
    seen = look_at(VARIANTS[name], ids)
    scores, T = head_scores(seen), len(ids)
    for layer in range(2):
        for head in range(4):
            p = seen.trace["pattern", layer][0, head].double().numpy()
            found = {"previous": [], "first": [], "itself": [], "duplicate": [], "induction": [], "entropy": [],
                     "evenness": []}  # fmt: skip
            for t in range(1, T):
                found["previous"].append(p[t, t - 1])
                found["first"].append(p[t, 0])
                found["itself"].append(p[t, t])
                bits = -sum(w * math.log2(w) for w in p[t] if w > 0)
                found["entropy"].append(bits)
                found["evenness"].append(bits / math.log2(t + 1 if seen.config.causal else T))
                copies = [s for s in range(t) if ids[s] == ids[t]]
                followers = [copies[-1] + 1] if copies and copies[-1] + 1 < t else []
                if copies:
                    found["duplicate"].append(sum(p[t, s] for s in copies))
                if followers:
                    found["induction"].append(sum(p[t, s] for s in followers))
            for habit, values in found.items():
                assert scores.of(layer, head)[habit] == pytest.approx(np.mean(values), abs=1e-5), habit


@pytest.mark.parametrize("name", ["learned", "post-norm", "sees the future", "experts"])
def test_what_a_prediction_owes_each_head_is_what_switching_it_off_does(name):
    seen = look_at(VARIANTS[name], [1, 2, 1, 5, 2])
    found = moves(seen)
    for layer, head in [(0, 0), (0, 3), (1, 2)]:
        tap = edits_tap([SwitchOff(layer, "head", head)], seen.config)
        assert found[layer, head] == pytest.approx(
            effect(seen.model, torch.tensor([seen.ids]), tap).divergence, abs=1e-5
        )
    first = ranked(found)[0]
    assert found[first] == found.max() > 0


@pytest.fixture(scope="module")
def tested():
    return head_tests(handmade().to(GPU), text())


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
