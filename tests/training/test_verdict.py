"""Verdicts claim what the numbers carry: intervals cover the truth as often as they say, chance is called chance."""

import math

import pytest
import torch

from playground.training.losses import WindowLosses
from playground.training.verdict import Verdict, difference, early, judge, loss_in_words, mean_interval, student_t


def losses(per_window: torch.Tensor, tokens: int = 10) -> WindowLosses:
    return WindowLosses(per_window * tokens, torch.full((len(per_window),), tokens))


@pytest.mark.parametrize("freedom", [1, 2, 4, 9, 15, 16, 18, 60, 200, 2001])
def test_t_leaves_a_twentieth_outside(freedom):
    point, n = student_t(freedom), 200_001
    # Student's density by its formula, integrated between the points
    x = torch.linspace(-point, point, n, dtype=torch.float64)
    logarithm = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    inside = torch.trapezoid(math.exp(logarithm) * (1 + x**2 / freedom) ** (-(freedom + 1) / 2), x).item()
    assert abs(inside - 0.95) < 1e-8


def test_t_is_the_tables_and_becomes_the_normal_distributions():
    table = {1: 12.7062, 2: 4.3027, 5: 2.5706, 10: 2.2281, 17: 2.1098, 18: 2.1009, 30: 2.0423, 60: 2.0003, 120: 1.9799}
    assert {freedom: round(student_t(freedom), 4) for freedom in table} == table
    assert 1.959963 < student_t(20_000) < 1.9602


def test_over_seeds_the_interval_holds_the_truth_nineteen_times_in_twenty():
    rng, held, rounds, truth = torch.Generator().manual_seed(0), 0, 600, -0.02
    for _ in range(rounds):
        dense = 1.0 + 0.1 * torch.randn(3, generator=rng)
        moe = dense + truth + 0.01 * torch.randn(3, generator=rng)
        verdict = judge([losses(d[None]) for d in dense], [losses(m[None]) for m in moe])
        held += abs(verdict.difference - truth) <= verdict.margin
    assert abs(held / rounds - 0.95) < 0.03


def test_an_interval_of_a_loss_has_nothing_below_zero():
    assert loss_in_words(0.5, 0.2) == "0.5000 ± 0.2000" and loss_in_words(0.1, math.inf) == "0.1000"
    assert loss_in_words(0.01, 0.03) == "0.0100 (0 to 0.0400)"


def test_one_function_for_means_with_intervals():
    mean, margin = mean_interval([2.0, 2.1, 2.3])
    assert mean == pytest.approx(2.1333333) and margin == pytest.approx(4.302652729911275 * 0.1527525232 / math.sqrt(3))
    assert mean_interval([1.5]) == (1.5, math.inf)
    mean, margin = mean_interval([[1.0, math.nan, math.nan], [3.0, 5.0, math.nan]])
    assert mean[:2].tolist() == [2.0, 5.0] and math.isnan(mean[2]) and margin[1:].tolist() == [math.inf, math.inf]


def test_the_pairing_removes_what_both_share():
    rng = torch.Generator().manual_seed(1)
    hard = 1.0 + torch.rand(200, generator=rng)  # some windows are harder, for both
    verdict = judge([losses(hard)], [losses(hard - 0.01 + 0.005 * torch.randn(200, generator=rng))])
    unpaired = hard.std().item() / math.sqrt(200)
    assert verdict.margin < unpaired / 10
    assert math.isclose(verdict.difference, -0.01, abs_tol=0.002)


@pytest.mark.parametrize("windows", [3, 30])
def test_over_windows_the_interval_holds_the_truth_nineteen_times_in_twenty(windows):
    rng, held, rounds = torch.Generator().manual_seed(2), 0, 600
    for _ in range(rounds):
        apart = 0.02 + 0.1 * torch.randn(windows, generator=rng)
        verdict = judge([losses(torch.ones(windows))], [losses(1.0 + apart)])
        held += abs(verdict.difference - 0.02) <= verdict.margin
    assert abs(held / rounds - 0.95) < 0.03


def test_windows_of_unequal_length_make_the_margin_of_a_ratio():
    """As the spread of the same ratio over many other draws of the windows."""
    rng = torch.Generator().manual_seed(3)
    tokens = torch.randint(1, 20, (400, 60), generator=rng)
    apart = tokens * (0.05 + 0.1 * torch.randn(400, 60, generator=rng))  # (draws, windows)
    found = [difference(WindowLosses(torch.zeros(60), n), WindowLosses(d, n)) for d, n in zip(apart, tokens)]
    spread = torch.tensor([d for d, _ in found]).std().item()
    assert sum(margin for _, margin in found) / 400 == pytest.approx(student_t(59) * spread, rel=0.08)


def test_one_window_cannot_tell():
    verdict = judge([losses(torch.ones(1))], [losses(torch.zeros(1))])
    assert not verdict.is_clear and "single validation window" in verdict.in_words()


def test_windows_count_by_their_tokens():
    dense = WindowLosses(torch.tensor([10.0, 0.0]), torch.tensor([10, 1]))
    moe = WindowLosses(torch.tensor([10.0, 1.0]), torch.tensor([10, 1]))
    assert math.isclose(judge([dense], [moe]).difference, 1 / 11, rel_tol=1e-6)


def test_words_claim_no_more_than_was_measured():
    same = [losses(torch.tensor([1.0]))] * 3
    better = [losses(torch.tensor([1.0 - gain])) for gain in (0.030, 0.031, 0.032)]
    mixed = [losses(torch.tensor([1.0 - gain])) for gain in (0.030, -0.031, 0.002)]
    clear = judge(same, better)
    assert "MoE 0.0310 ± 0.0025 nats lower at equal FLOPs over 3 seeds" in clear.in_words("equal FLOPs")
    assert "No difference that can be told from chance" in judge(same, mixed).in_words()
    assert "higher" in judge(better, same).in_words()
    assert clear.in_words().endswith("3 seeds cannot show less than 0.0025.")
    assert "about" not in clear.in_words()


def test_one_seed_never_names_a_winner():
    """However narrow the interval over windows is: it knows nothing of another seed."""
    alone = judge([losses(torch.ones(5))], [losses(torch.linspace(0.50, 0.51, 5))])
    words = alone.in_words()
    assert abs(alone.difference) > 20 * alone.margin and not alone.is_clear
    assert "One pair, so no winner: with this seed MoE" in words and "predicts better" not in words
    assert "with this seed." not in words, "the sizes are those of every seed"
    assert (
        "with three seeds" in words
        and "2.5 times their spread" in words
        and "spread between validation windows alone" in words
    )


def test_what_so_many_seeds_can_show_is_what_simulated_comparisons_do_show():
    """`needed` seeds find a difference like the one seen four times in five; the margin is the least that is clear."""
    gains = torch.tensor([0.030, -0.010, 0.012], dtype=torch.float64)
    seen = judge([losses(torch.ones(1))] * 3, [losses((1.0 - gain)[None]) for gain in gains])
    assert not seen.is_clear and seen.spread == pytest.approx(gains.std().item())
    assert f"3 seeds cannot show less than {seen.margin:.4f}" in seen.in_words()
    assert f"about {seen.needed} would tell" in seen.in_words()
    rng, rounds, n, found = torch.Generator().manual_seed(4), 2000, seen.needed, 0
    drawn = seen.difference + seen.spread * torch.randn(rounds, n, generator=rng, dtype=torch.float64)
    found = (drawn.mean(dim=1).abs() > student_t(n - 1) * drawn.std(dim=1) / math.sqrt(n)).double().mean().item()
    assert abs(found - 0.8) < 0.06
    tiny = Verdict(1e-6, 0.02, 3, 0.01)
    assert tiny.needed == 1000 and "more than 999 would tell" in tiny.in_words()


def test_a_comparison_of_models_that_still_fall_is_one_of_speed():
    verdict = Verdict(0.0142, 0.0125, 3, 0.005)
    steps = [10, 20, 30, 40, 50, 60, 70, 80]
    falling = [3.0 - 0.02 * step for step in steps]
    rested = [*falling[:3], *[falling[3]] * 5]
    words = early([steps, steps], [[falling], [falling]], verdict)
    assert "still learning: from step 60 to step 80 the dense model fell by 0.4000 and the mixture by 0.4000" in words
    assert early([steps, steps], [[falling], [rested]], verdict) == ""
    assert early([steps, steps], [[rested], [rested]], verdict) == ""
    nearly = [*falling[:6], falling[5], falling[5] - 0.005]  # still falls, and by more than they differ, but hardly
    assert early([steps, steps], [[nearly], [nearly]], Verdict(0.001, 0.001, 3, 0.001)) == ""
    assert early([[], []], [[[]], [[]]], verdict) == early([[80], [80]], [[[1.0]], [[1.0]]], verdict) == ""


def test_how_far_both_still_fell_is_a_mean_over_seeds_between_steps_that_were_evaluated():
    dense, moe = [[3.0, 2.5, 2.4], [3.0, 2.6, 2.3]], [[3.0, 2.5, 2.3], [3.0, 2.5, 2.1]]
    words = early([[0, 10, 20], [0, 10, 20]], [dense, moe], Verdict(-0.01, 0.02, 2, 0.005))
    assert "from step 10 to step 20 the dense model fell by 0.2000 and the mixture by 0.3000 nats (means over" in words
    words = early([[0, 20, 40], [0, 10, 20]], [dense[:1], moe[:1]], Verdict(-0.01, 0.02, 1))
    assert "from step 20 to step 40 the dense model fell by 0.1000 and from step 10 to step 20 the mixture" in words
    assert "means" not in words


def test_equal_models_make_no_difference():
    verdict = judge([losses(torch.ones(5))] * 2, [losses(torch.ones(5))] * 2)
    assert verdict.difference == verdict.margin == 0 and not verdict.is_clear
