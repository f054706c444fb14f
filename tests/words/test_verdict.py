"""Words about a verdict claim no more than was measured."""

import math

import torch

from playground.training.losses import WindowLosses
from playground.training.verdict import Verdict, judge, still_learning
from playground.words.verdict import loss_in_words, still_learning_in_words, verdict_in_words


def losses(per_window: torch.Tensor, tokens: int = 10) -> WindowLosses:
    return WindowLosses(per_window * tokens, torch.full((len(per_window),), tokens))


def test_an_interval_of_a_loss_has_nothing_below_zero():
    assert loss_in_words(0.5, 0.2) == "0.5000 ± 0.2000" and loss_in_words(0.1, math.inf) == "0.1000"
    assert loss_in_words(0.01, 0.03) == "0.0100 (0 to 0.0400)"


def test_words_claim_no_more_than_was_measured():
    same = [losses(torch.tensor([1.0]))] * 3
    better = [losses(torch.tensor([1.0 - gain])) for gain in (0.030, 0.031, 0.032)]
    mixed = [losses(torch.tensor([1.0 - gain])) for gain in (0.030, -0.031, 0.002)]
    clear = judge(same, better)
    assert "MoE is 0.0310 ± 0.0025 nats lower at equal FLOPs over 3 seeds" in verdict_in_words(clear, "equal FLOPs")
    assert "A tie at equal cost over 3 seeds" in verdict_in_words(judge(same, mixed))
    assert "higher" in verdict_in_words(judge(better, same))
    assert verdict_in_words(clear).endswith("3 seeds cannot show less than 0.0025.")
    assert "about" not in verdict_in_words(clear)


def test_how_far_both_still_fell_is_a_mean_over_seeds_between_steps_that_were_evaluated():
    dense, moe = [[3.0, 2.5, 2.4], [3.0, 2.6, 2.3]], [[3.0, 2.5, 2.3], [3.0, 2.5, 2.1]]
    words = still_learning_in_words(
        still_learning([[0, 10, 20], [0, 10, 20]], [dense, moe], Verdict(-0.01, 0.02, 2, 0.005))
    )
    assert "from step 10 to step 20 the dense model fell by 0.2000 and the mixture by 0.3000 nats (means over" in words
    words = still_learning_in_words(
        still_learning([[0, 20, 40], [0, 10, 20]], [dense[:1], moe[:1]], Verdict(-0.01, 0.02, 1))
    )
    assert "from step 20 to step 40 the dense model fell by 0.1000 and from step 10 to step 20 the mixture" in words
    assert "means" not in words


def test_one_seed_never_names_a_winner():
    alone = judge([losses(torch.ones(5))], [losses(torch.linspace(0.50, 0.51, 5))])
    words = verdict_in_words(alone)
    assert "One pair names no winner" in words and "predicts better" not in words
    assert "With three seeds" in words and "2.5 times their spread" in words
    assert "single validation window" in verdict_in_words(Verdict(-0.1, math.inf, 1))
