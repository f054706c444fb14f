"""Head scores: heads made by hand do what their score says, and all scores are what plain loops find."""

import math

import numpy as np
import pytest
import torch

from playground.data.tokenizers import CharTokenizer
from playground.inspection import Look
from playground.inspection.cost import effect
from playground.inspection.edits import SwitchOff, edits_tap
from playground.inspection.heads import head_scores, moves, ranked
from playground.model import ModelConfig, Trace, Transformer
from playground.storage import Checkpoint
from playground.training import History
from tests.inspection.test_receipts import look_at
from tests.model.configs import VARIANTS

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
