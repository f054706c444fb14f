"""A comparison is two ordinary runs in turns, each as it would be alone; its verdict claims what the numbers carry."""

import itertools
import math

import pytest
import torch

from playground.data import corpus_from_text
from playground.model import ModelConfig, Transformer
from playground.model.matched_pair import match_dense
from playground.training import Evaluated, Finished, Stepped, TrainConfig, evaluate, train
from playground.training.comparison import PairPlan, PairsJudged, SideEvent, Trained, compare
from playground.training.losses import WindowLosses
from playground.training.verdict import Verdict, difference, judge, mean_interval, still_learning, student_t

CORPUS = corpus_from_text("the cat sat on the mat and the dog sat on the cat. " * 60)
MOE = ModelConfig(
    vocab_size=CORPUS.vocab_size, context_length=16, n_layers=1, d_model=16, n_heads=2, n_experts=4, d_expert=16
)
MATCHED = match_dense(MOE)
TRAINING = TrainConfig(
    steps=12, batch_size=4, eval_every=4, eval_windows=9, warmup_steps=2, device="cpu", precision="fp32", seed=3
)
PLAN = PairPlan(MATCHED.dense, MATCHED.moe, TRAINING, seeds=2)


def test_each_side_ends_as_it_would_have_alone_in_turns_and_their_last_losses_are_judged():
    events = list(compare(PLAN, CORPUS))
    for seed, side in itertools.product((3, 4), ("dense", "moe")):
        alone = Transformer(PLAN.config(side), seed=seed)
        list(train(alone, CORPUS, TRAINING.replace(seed=seed)))
        (trained,) = [e for e in events if isinstance(e, Trained) and (e.seed, e.side) == (seed, side)]
        for mine, other in zip(trained.model.parameters(), alone.parameters()):
            torch.testing.assert_close(mine, other, rtol=0, atol=0)
    steps = [
        (e.seed, e.side, e.event.step) for e in events if isinstance(e, SideEvent) and isinstance(e.event, Stepped)
    ]
    assert steps == [(seed, side, step) for seed in (3, 4) for step in range(1, 13) for side in ("dense", "moe")]
    for trained in (e for e in events if isinstance(e, Trained)):
        last = [e.event for e in events if isinstance(e, SideEvent) and (e.seed, e.side) == (trained.seed, trained.side)
                and isinstance(e.event, Evaluated)][-1]  # fmt: skip
        assert math.isclose(trained.losses.mean, last.val_loss, rel_tol=1e-5)
        windows = CORPUS.windows("val", 16, 9)
        assert math.isclose(evaluate(trained.model, *windows), trained.losses.mean, rel_tol=1e-5)
    verdicts = [e.verdict for e in events if isinstance(e, PairsJudged)]
    assert [v.seeds for v in verdicts] == [1, 2]
    means = {(e.seed, e.side): e.losses.mean for e in events if isinstance(e, Trained)}
    expected = sum(means[s, "moe"] - means[s, "dense"] for s in (3, 4)) / 2
    assert math.isclose(verdicts[-1].difference, expected, abs_tol=1e-6)


def test_stopping_one_lets_the_other_finish_and_begins_no_further_pair():
    asked = {"dense": 0, "moe": 0}

    def stop(side: str) -> bool:
        asked[side] += 1
        return side == "moe" and asked["moe"] > 6

    events = list(compare(PLAN, CORPUS, should_stop=stop))
    ends = {e.side: (e.event.reason, e.event.step) for e in events if isinstance(e, SideEvent)
            and isinstance(e.event, Finished)}  # fmt: skip
    assert ends == {"dense": ("done", 12), "moe": ("stopped", 6)}
    assert {e.side for e in events if isinstance(e, Trained)} == {"dense", "moe"}  # both are kept
    assert not any(isinstance(e, PairsJudged) for e in events)
    assert {e.seed for e in events if isinstance(e, SideEvent)} == {3}


@pytest.mark.parametrize("wrong", [
    {"moe": MATCHED.dense}, {"dense": MOE}, {"seeds": 0}, {"dense": MATCHED.dense.replace(context_length=8)},
])  # fmt: skip
def test_an_unfair_plan_is_refused(wrong):
    with pytest.raises(ValueError):
        PairPlan(**{"dense": MATCHED.dense, "moe": MATCHED.moe, "training": TRAINING, **wrong})


def losses(per_window: torch.Tensor, tokens: int = 10) -> WindowLosses:
    return WindowLosses(per_window * tokens, torch.full((len(per_window),), tokens))


def test_t_is_the_tables_and_over_seeds_the_interval_holds_the_truth_nineteen_times_in_twenty():
    table = {1: 12.7062, 2: 4.3027, 5: 2.5706, 10: 2.2281, 17: 2.1098, 18: 2.1009, 30: 2.0423, 60: 2.0003, 120: 1.9799}
    assert {freedom: round(student_t(freedom), 4) for freedom in table} == table
    assert 1.959963 < student_t(20_000) < 1.9602
    mean, margin = mean_interval([2.0, 2.1, 2.3])
    assert mean == pytest.approx(2.1333333) and margin == pytest.approx(4.302652729911275 * 0.1527525232 / math.sqrt(3))
    assert mean_interval([1.5]) == (1.5, math.inf)
    mean, margin = mean_interval([[1.0, math.nan, math.nan], [3.0, 5.0, math.nan]])
    assert mean[:2].tolist() == [2.0, 5.0] and math.isnan(mean[2]) and margin[1:].tolist() == [math.inf, math.inf]
    rng, held, rounds, truth = torch.Generator().manual_seed(0), 0, 600, -0.02
    for _ in range(rounds):
        dense = 1.0 + 0.1 * torch.randn(3, generator=rng)
        moe = dense + truth + 0.01 * torch.randn(3, generator=rng)
        verdict = judge([losses(d[None]) for d in dense], [losses(m[None]) for m in moe])
        held += abs(verdict.difference - truth) <= verdict.margin
    assert abs(held / rounds - 0.95) < 0.03


def test_the_pairing_removes_what_both_share_and_unequal_windows_make_the_margin_of_a_ratio():
    rng = torch.Generator().manual_seed(1)
    hard = 1.0 + torch.rand(200, generator=rng)  # some windows are harder, for both
    verdict = judge([losses(hard)], [losses(hard - 0.01 + 0.005 * torch.randn(200, generator=rng))])
    unpaired = hard.std().item() / math.sqrt(200)
    assert verdict.margin < unpaired / 10
    assert math.isclose(verdict.difference, -0.01, abs_tol=0.002)
    # As the spread of the same ratio over many other draws of the windows.
    rng = torch.Generator().manual_seed(3)
    tokens = torch.randint(1, 20, (400, 60), generator=rng)
    apart = tokens * (0.05 + 0.1 * torch.randn(400, 60, generator=rng))  # (draws, windows)
    found = [difference(WindowLosses(torch.zeros(60), n), WindowLosses(d, n)) for d, n in zip(apart, tokens)]
    spread = torch.tensor([d for d, _ in found]).std().item()
    assert sum(margin for _, margin in found) / 400 == pytest.approx(student_t(59) * spread, rel=0.08)


@pytest.mark.parametrize("windows", [3, 30])
def test_over_windows_the_interval_holds_the_truth_nineteen_times_in_twenty(windows):
    rng, held, rounds = torch.Generator().manual_seed(2), 0, 600
    for _ in range(rounds):
        apart = 0.02 + 0.1 * torch.randn(windows, generator=rng)
        verdict = judge([losses(torch.ones(windows))], [losses(1.0 + apart)])
        held += abs(verdict.difference - 0.02) <= verdict.margin
    assert abs(held / rounds - 0.95) < 0.03


def test_one_window_one_seed_and_equal_models_name_no_winner():
    verdict = judge([losses(torch.ones(1))], [losses(torch.zeros(1))])
    assert not verdict.is_clear and math.isinf(verdict.margin)
    dense = WindowLosses(torch.tensor([10.0, 0.0]), torch.tensor([10, 1]))
    moe = WindowLosses(torch.tensor([10.0, 1.0]), torch.tensor([10, 1]))
    assert math.isclose(judge([dense], [moe]).difference, 1 / 11, rel_tol=1e-6)
    # However narrow the interval over windows is: it knows nothing of another seed.
    alone = judge([losses(torch.ones(5))], [losses(torch.linspace(0.50, 0.51, 5))])
    assert abs(alone.difference) > 20 * alone.margin and not alone.is_clear
    gains = torch.tensor([0.030, -0.010, 0.012], dtype=torch.float64)
    seen = judge([losses(torch.ones(1))] * 3, [losses((1.0 - gain)[None]) for gain in gains])
    assert not seen.is_clear and seen.spread == pytest.approx(gains.std().item())
    verdict = judge([losses(torch.ones(5))] * 2, [losses(torch.ones(5))] * 2)
    assert verdict.difference == verdict.margin == 0 and not verdict.is_clear


def test_a_comparison_of_models_that_still_fall_is_one_of_speed():
    verdict = Verdict(0.0142, 0.0125, 3, 0.005)
    steps = [10, 20, 30, 40, 50, 60, 70, 80]
    falling = [3.0 - 0.02 * step for step in steps]
    rested = [*falling[:3], *[falling[3]] * 5]
    assert still_learning([steps, steps], [[falling], [falling]], verdict)
    assert not still_learning([steps, steps], [[falling], [rested]], verdict)
    assert not still_learning([steps, steps], [[rested], [rested]], verdict)
    nearly = [*falling[:6], falling[5], falling[5] - 0.005]  # still falls, and by more than they differ, but hardly
    assert not still_learning([steps, steps], [[nearly], [nearly]], Verdict(0.001, 0.001, 3, 0.001))
    assert not still_learning([[], []], [[[]], [[]]], verdict)
    assert not still_learning([[80], [80]], [[[1.0]], [[1.0]]], verdict)
