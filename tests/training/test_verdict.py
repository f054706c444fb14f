"""Verdicts claim what the numbers carry: intervals cover the truth as often as they say, chance is called chance."""

import math

import pytest
import torch

from playground.training.losses import WindowLosses
from playground.training.verdict import judge, student_t


def losses(per_window: torch.Tensor, tokens: int = 10) -> WindowLosses:
    return WindowLosses(per_window * tokens, torch.full((len(per_window),), tokens))


@pytest.mark.parametrize("freedom", [1, 2, 4, 9, 15])
def test_t_leaves_a_twentieth_outside(freedom):
    point, n = student_t(freedom), 200_001
    # Student's density by its formula, integrated between the points
    x = torch.linspace(-point, point, n, dtype=torch.float64)
    constant = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))
    inside = torch.trapezoid(constant * (1 + x**2 / freedom) ** (-(freedom + 1) / 2), x).item()
    assert abs(inside - 0.95) < 3e-4


def test_over_seeds_the_interval_holds_the_truth_nineteen_times_in_twenty():
    rng, held, rounds, truth = torch.Generator().manual_seed(0), 0, 600, -0.02
    for _ in range(rounds):
        dense = 1.0 + 0.1 * torch.randn(3, generator=rng)
        moe = dense + truth + 0.01 * torch.randn(3, generator=rng)
        verdict = judge([losses(d[None]) for d in dense], [losses(m[None]) for m in moe])
        held += abs(verdict.difference - truth) <= verdict.margin
    assert abs(held / rounds - 0.95) < 0.03


def test_the_pairing_removes_what_both_share():
    rng = torch.Generator().manual_seed(1)
    hard = 1.0 + torch.rand(200, generator=rng)  # some windows are harder, for both
    verdict = judge([losses(hard)], [losses(hard - 0.01 + 0.005 * torch.randn(200, generator=rng))])
    unpaired = hard.std().item() / math.sqrt(200)
    assert verdict.is_clear and verdict.margin < unpaired / 10
    assert math.isclose(verdict.difference, -0.01, abs_tol=0.002)


def test_the_bootstrap_agrees_with_the_normal_approximation():
    rng = torch.Generator().manual_seed(2)
    difference = 0.1 * torch.randn(400, generator=rng)
    dense = torch.ones(400)
    margin = judge([losses(dense)], [losses(dense + difference)]).margin
    assert math.isclose(margin, 1.96 * difference.std().item() / 20, rel_tol=0.1)


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
    alone = judge(same[:1], better[:1]).in_words()
    assert "with one seed" in alone and "resampling the validation windows alone" in alone


def test_equal_models_make_no_difference():
    verdict = judge([losses(torch.ones(5))] * 2, [losses(torch.ones(5))] * 2)
    assert verdict.difference == verdict.margin == 0 and not verdict.is_clear
