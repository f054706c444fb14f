"""States: each kind on a history made up for it, and none where noise explains what is seen."""

import math
import random

import pytest

from playground.data import Baselines
from playground.training import History
from playground.training.states import (
    BELOW,
    BOTH_ROSE,
    BY_HEART,
    CUT,
    DIVERGED,
    FEW,
    IN_A_ROW,
    LASTS,
    LEARNING,
    LEVEL,
    MIXED,
    OVERFITTING,
    UNCLEAR,
    UNMASKED,
    UNMEASURED,
    risen_for,
    state_of,
)

FALLING = [4.0, 2.5, 1.8, 1.4, 1.2, 1.1, 1.03, 0.99]
DONE = {"reason": "done"}
LADDER = Baselines(uniform=4.0, unigram=3.0, bigram=2.0, floor=0.9)
COPIED = Baselines(uniform=4.0, unigram=3.0, bigram=2.0, overlap=0.95)


def made_up(validation, training=None, *, finished=None, steps=()) -> History:
    at = [50.0 * i for i in range(len(validation))]
    columns = {"step": at, "train_loss": training or validation, "val_loss": validation, "seconds": at}
    history = History(evaluations=columns, finished=finished)
    history.steps.update(step=list(range(1, len(steps) + 1)), loss=list(steps))
    return history


def spiral(n: int = 18) -> list[float]:
    return [3.5 - 0.09 * i for i in range(n)]


@pytest.mark.parametrize(
    ("history", "kind", "since"),
    [
        (made_up([]), UNMEASURED, None),
        (made_up([4.0, 2.5]), FEW, None),
        (made_up(FALLING), LEARNING, 200),
        (made_up([2.5, 0.9, 0.25, 0.19498, 0.185, 0.17, 0.16316]), LEARNING, 150),
        (made_up([*FALLING, 0.985, 0.9836, 0.985, 0.984, 0.9845, 0.984]), LEVEL, 400),
        (made_up([0.9, 0.01, 0.0004, *[0.0] * 4]), LEVEL, 150),
        (made_up([*FALLING, 1.05, 1.1, 1.2, 1.3], [*FALLING, 0.8, 0.6, 0.4, 0.3], finished=DONE), OVERFITTING, 350),
        (made_up([*FALLING, 1.05, 1.1, 1.2, 1.3], [*FALLING, 0.8, 0.6, 0.4, 0.3], finished=DONE), BY_HEART, None),
        (
            made_up([4.6, 2.0, 1.9, 2.6, 2.7, 2.8, 2.9], [4.6, 2.0, 1.6, 1.0, 0.6, 0.3, 0.2], finished=DONE),
            OVERFITTING,
            100,
        ),
        (made_up([3.9, 7.0, 8.0, 8.5, 9.0, 8.7], [3.7, 3.3, 2.9, 2.7, 2.5, 2.4], finished=DONE), OVERFITTING, 0),
        (made_up([*FALLING, 1.05, 1.1, 1.2, 1.3], finished=DONE), BOTH_ROSE, 350),
        (made_up([4.0, 3.0, 2.8, 2.3, 2.6, 2.25, 2.55, 2.2, 2.5, 2.3, 2.45, 2.24]), MIXED, 400),
        (made_up([4.0, 2.0, math.nan]), DIVERGED, 50),
        (made_up(FALLING, finished={"reason": "diverged"}), DIVERGED, 350),
        (made_up([4.0, 30.0, 12.0]), DIVERGED, 0),
        (made_up([4.0, 3.0, 30.0, 12.0, 40.0, 25.0], [4.0, 3.0, 29.0, 13.0, 41.0, 25.0]), DIVERGED, 50),
        (made_up([4.6, 843.0, 366.0, 47.0, 9.9, 5.1, 4.9]), DIVERGED, 0),
        (made_up([*spiral(), 2.8, 1.9, 1.89, 1.88, 1.87]), DIVERGED, 850),
        (made_up([*FALLING, 0.7, 0.5, 0.4, 0.35]), BELOW, None),
    ],
)
def test_a_made_up_history_of_each_kind(history, kind, since):
    state = state_of(history, baselines={BELOW: LADDER, BY_HEART: COPIED}.get(kind))
    assert (state.why or state.kind, state.since) == (kind, since), state
    assert (state.kind == UNCLEAR) == bool(state.why)


def test_a_rate_far_too_high_is_a_divergence_until_the_loss_has_fallen_further_than_it_had_risen():
    """The stories at a rate of ten: the verdict began with a change between halves and named the cause in its fourth
    sentence."""
    ten = made_up([4.04, 193.0, 49.2, 31.9, 51.1, 15.5, 3.06], finished={"reason": "done"})
    assert state_of(ten).kind == DIVERGED and state_of(ten).peak == (50, 193.0)
    # at a rate of one it all happened between two evaluations, and of these there are few
    one = made_up([4.042, 3.218, 2.994], finished={"reason": "done"}, steps=[4.04, 18.6, 24.9, 79.5, 9.8, 3.25, 2.99])
    assert state_of(one).kind == DIVERGED and state_of(one).peak == (4, 79.5)
    start = [4.0, 4.7, 3.9, 3.5, 3.2]
    assert state_of(made_up(start)).kind != DIVERGED and state_of(made_up(start[:4])).kind == DIVERGED
    begun = made_up([4.0, 3.9], steps=[4.1, 5.0, 4.0])
    assert state_of(begun).kind == DIVERGED
    assert state_of(made_up([4.0, 3.9, 3.0], steps=[4.1, 5.0, 4.0])).kind == UNCLEAR


def test_without_a_mask_only_a_divergence_matters_and_of_a_moment_no_course_is_said():
    assert state_of(made_up(FALLING), causal=False, baselines=LADDER).kind == UNMASKED
    assert state_of(made_up([*FALLING, 0.5, 0.1, 0.02]), causal=False, baselines=LADDER).kind == UNMASKED
    assert state_of(made_up([4.0, 30.0, 12.0]), causal=False, baselines=LADDER).kind == DIVERGED
    history = made_up([3.5, 2.9, 2.4, 2.2, 2.1], finished={"reason": "moment"})
    assert (state_of(history).why, state_of(history).since) == (CUT, 200)
    assert state_of(history, causal=False).kind == UNMASKED


def test_noise_is_no_rise_nor_fall_and_no_run_above_its_best_is_learning():
    """Flat curves with jitter of several sizes: a rise, and a fall, is said of one in twenty at most."""
    wrong, patience = 0, 0
    for seed in range(400):
        drawn = random.Random(seed)
        size, evaluations = (0.003, 0.02, 0.1)[seed % 3], (6, 10, 24)[seed // 3 % 3]
        noisy = [1.0 + drawn.gauss(0, size) for _ in range(evaluations)]
        history = made_up(noisy, [x - 0.01 * i for i, x in enumerate(noisy)], finished={"reason": "done"})
        wrong += state_of(history).kind not in (LEVEL, UNCLEAR)
        patience += risen_for(history) >= 4
    assert wrong <= 24 and patience <= 2  # either of two things may be said
    # A run that came to 0.9836 and ended at 0.9945, a rise too small to be called one.
    course = [4.0, 2.0, 1.5, 1.2, 1.1, 1.05, 1.02, 1.0, 0.99, 0.9836, 0.9850, 0.9880, 0.9910, 0.9945]
    for seen in range(1, len(course) + 1):
        state = state_of(made_up(course[:seen], finished={"reason": "done"}))
        if course[seen - 1] > min(course[:seen]) + 0.005:
            assert state.kind in (LEVEL, UNCLEAR)
    assert (state.lowest, state.now) == ((450, 0.9836), 0.9945)


def test_one_rise_is_no_overfitting_and_evaluations_in_a_row_are():
    """A text of words: after one rise in the middle of the warm-up, overfitting was said four steps before the best."""
    validation = [5.0, 3.758, 3.974, 3.407, 3.571, 3.746, 3.842, 3.95]
    history = made_up(validation, [5.0, 3.7, 3.2, 2.9, 2.5, 2.1, 1.8, 1.5])
    ends = [history.until(step) for step in history.evaluations["step"]]
    for each in ends:
        each.finished = DONE
    said = list(map(state_of, ends))
    assert [state.kind for state in said] == [UNCLEAR] * 6 + [OVERFITTING] * 2 and said[6].since == 150
    assert state_of(made_up([5.0, 3.0, 2.0, 1.99, 1.985, 2.4], [5.0, 3.0, 2.0, 1.5, 1.0, 0.5])).kind != OVERFITTING
    rises = [1.05, 1.1, 0.995, 1.2, 1.25, 1.3, 1.35]
    history = made_up([*FALLING, *rises], [*FALLING, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3])
    # the one that was nearly as good broke the row, and shows how far the losses waver: 1.2 is not beyond that
    assert risen_for(history) == 3 and risen_for(history.until(500)) == 0
    assert risen_for(made_up([*FALLING, 1.05, 1.1, 1.2, 1.3])) == 0  # training rose as well: not learned by heart
    assert risen_for(made_up([])) == 0 == risen_for(made_up([math.nan, math.nan]))


def test_what_is_said_of_a_run_that_goes_on_lasts():
    """A run of 110 steps was said to overfit since step 20, and eight evaluations later it was at its best."""
    falling, rise = [3.4, 1.0, 0.5, 0.2, 0.05], [0.08, 0.1, 0.12, 0.13, 0.14, 0.15]
    course = falling + rise[: LASTS - 1] + [0.04, 0.03]
    learned = [3.4, 0.9, 0.4, 0.1, 0.04, *[0.03 - 0.001 * i for i in range(LASTS + 1)]]
    for seen in range(1, len(course) + 1):
        assert state_of(made_up(course[:seen], learned[:seen])).kind != OVERFITTING
    assert state_of(made_up(falling + rise, learned[: 5 + LASTS])).kind == OVERFITTING, "but a rise that lasts is one"
    ended = made_up((falling + rise)[: 5 + IN_A_ROW], learned[: 5 + IN_A_ROW], finished=DONE)
    assert state_of(ended).kind == OVERFITTING, "the end waits for nothing"
