"""Heads in words: where their weight lies, and the reason for a role."""

import dataclasses

import numpy as np
import pytest

from playground.inspection.heads import HABITS, WeightSummary
from playground.inspection.roles import PLACES, REPEATS, ROLES, Estimate, head_tests
from playground.words.heads import (
    HABIT_NAMES,
    PLACE_NAMES,
    ROLE_NAMES,
    describe_pattern,
    lies_on,
    role_reason,
    row_lies_on,
)
from tests.inspection.handmade import JOBS, handmade, text

TOKENS = list("abcdef")


def test_every_kind_has_a_name():
    assert set(HABIT_NAMES) == set(HABITS) and set(ROLE_NAMES) == set(ROLES)
    assert set(PLACE_NAMES) == {*PLACES, *REPEATS} == set(HABITS)


@pytest.mark.parametrize(
    ("summary", "over_prompt", "row"),
    [
        (WeightSummary(alone=True), "has one token only to look at", "has one token only to look at"),
        (
            WeightSummary(habits=(("first", 1.0),), strongest=(0, 1.0)),
            "puts 1.00 of its weight on the first token (mean over the tokens)",
            "puts 1.00 of its weight on the first token",
        ),
        (
            WeightSummary(habits=(("induction", 0.5), ("itself", 0.3)), strongest=(2, 0.5)),
            "puts 0.50 of its weight on what followed last time, 0.30 of its weight on itself (means over the tokens "
            "that have one)",
            "puts 0.50 of its weight on what followed last time, 0.30 of its weight on itself",
        ),
        (
            WeightSummary(strongest=(2, 0.7)),
            "looks where none of the rules tried here says",
            "puts 0.70 of its weight, the most, on 2 “c”",
        ),
        (
            WeightSummary(spread="widely", strongest=(3, 0.37)),
            "spreads its weight widely",
            "spreads its weight widely, the most, 0.37, on 3 “d”",
        ),
    ],
)
def test_where_the_weight_lies(summary, over_prompt, row):
    assert lies_on(summary) == over_prompt and row_lies_on(summary, TOKENS) == row


def test_each_role_has_its_reason():
    tests = head_tests(handmade(), text())
    for layer, row in enumerate(JOBS):
        for head in range(len(row)):
            reason = role_reason(tests, layer, head)
            assert reason.endswith(".") and "nan" not in reason
    at = next((la, h) for la, row in enumerate(JOBS) for h, job in enumerate(row) if job == "unclear")
    assert "The model needs it" not in role_reason(tests, *at)
    none = Estimate(0 * tests.effect.mean, 0 * tests.effect.mean)
    costly = dataclasses.replace(tests, effect=Estimate(none.mean + 1.2936, none.margin), evenness=none, moved=none)
    assert "The model needs it all the same" in role_reason(costly, *at)


def test_patterns_in_words():
    previous = np.eye(6, k=-1)
    previous[0, 0] = 1
    assert "the token before: 1.00" in describe_pattern(previous, TOKENS)
    alike = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]  # (1/2 + 1/3) / 2 on the token before is no habit
    assert describe_pattern(alike, TOKENS[:3]).startswith("Spreads its weight evenly")
    even = np.tril(np.ones((6, 6))) / np.arange(1, 7)[:, None]
    assert "evenly" in describe_pattern(even, TOKENS)
    uneven = np.tile([0.13, 0.14, 0.36, 0.37], (4, 1))
    assert "Spreads its weight widely" in describe_pattern(uneven, TOKENS[:4])
    assert "(2.6 of at most 2.6 bits)" in describe_pattern(np.full((6, 6), 1 / 6), TOKENS)  # without a mask
    assert "its weight is 1" in describe_pattern(np.ones((1, 1)), ["a"])
