"""Sweeps: the lowest mean wins, its spread is told, and what luck can explain is not called better."""

import math

import pytest

from playground.data import corpus_from_text
from playground.model import ModelConfig
from playground.studies.sweep import Row, Sweep, add_result, best_of, lead_of, run_sweep
from playground.training import TrainConfig

CLEAR = [Row(0.1, (2.0, 2.1, 1.9)), Row(0.01, (1.0, 1.1, 0.9)), Row(1.0, (0.5, math.nan, 0.5))]


def test_the_lowest_mean_is_best_unless_luck_can_explain_it():
    best, (second, difference, margin) = best_of(CLEAR), lead_of(CLEAR)
    assert best.value == 0.01 and second.value == 0.1
    assert difference == pytest.approx(1.0) and margin == pytest.approx(0.0, abs=1e-9)
    assert best.margin == pytest.approx(4.302653 * 0.1 / math.sqrt(3), rel=1e-6)
    assert best_of([*CLEAR, Row(64, (0.1,))]).value == 0.01, "one seed of three"


@pytest.mark.parametrize(
    ("name", "values", "seeds", "sentence"),
    [
        ("learning_rate", (0.1,), 3, "2 to 12 different values"),
        ("learning_rate", (0.1, 0.1), 3, "2 to 12 different values"),
        ("learning_rate", (0.1, 0.2), 0, "1 to 12 seeds, not 0"),
        ("seed", (1, 2), 3, "seed cannot be swept"),
    ],
)
def test_what_cannot_be_swept_is_refused(name, values, seeds, sentence):
    with pytest.raises(ValueError, match=sentence):
        Sweep(name, values, seeds)


def test_all_values_are_trained_with_the_same_seeds_and_a_stopped_run_does_not_count():
    corpus = corpus_from_text("the sea and the lamp, the lamp and the sea. " * 40)
    shape = ModelConfig(vocab_size=corpus.vocab_size, context_length=8, n_layers=1, d_model=8, n_heads=1)
    config = TrainConfig(steps=2, batch_size=2, eval_every=0, eval_windows=2, device="cpu", precision="fp32", seed=5)
    rows, seen = [], []
    for tried in run_sweep(Sweep("d_model", (8, 16), 2), shape, config, corpus, should_stop=lambda: len(seen) > 2):
        if (after := add_result(rows, tried)) != rows:
            seen.append((tried.value, tried.seed, tried.model.config.d_model))
        rows = after
    assert seen == [(8, 5, 8), (8, 6, 8), (16, 5, 16)]
    assert [len(row.losses) for row in rows] == [2, 1] and len({*rows[0].losses, *rows[1].losses}) == 3
