"""The sentence about a run begins with the verdict."""

import math

import pytest

from playground.training.states import (
    BELOW,
    BOTH_ROSE,
    CUT,
    DIVERGED,
    FEW,
    LEARNING,
    LEVEL,
    MIXED,
    OVERFITTING,
    UNCLEAR,
    UNMASKED,
    UNMEASURED,
    State,
)
from playground.words.states import TONES, advice, headline, in_words, says

FACTS = {"now": 1.3, "lowest": (350, 0.99), "training": (0.95, 0.3), "left": 0.4, "over": True}


def test_a_divergence_names_its_cause_first_and_then_the_number():
    state = State(DIVERGED, 0, now=3.06, lowest=(300, 3.06), peak=(50, 193.4))
    assert says(state) == "Diverged: the learning rate is too high. The loss jumped to 193 by step 50."
    assert "lower learning rate" in advice(state)
    assert says(State(DIVERGED, 50, now=math.nan, lowest=(50, 2.0))).endswith("The loss is no longer a number.")
    assert "jumped to 2,102 by step 9" in says(State(DIVERGED, 0, peak=(9, 2102.2)))


@pytest.mark.parametrize("kind", TONES)
def test_every_kind_has_a_headline(kind):
    words = in_words(State(kind, 350, **FACTS, peak=(50, 34.1), fell=0.1, why=MIXED * (kind == UNCLEAR)))
    assert words.startswith(headline(State(kind, 350, **FACTS))) and words.endswith(".")


@pytest.mark.parametrize("why", [UNMEASURED, FEW, CUT, BOTH_ROSE, MIXED])
def test_every_reason_to_be_unclear_has_words(why):
    assert in_words(State(UNCLEAR, 350, **FACTS, fell=-0.1, why=why)).endswith(".")


def test_overfitting_says_which_weights_to_take_unless_there_are_none():
    assert in_words(State(OVERFITTING, 350, **FACTS)) == (
        "Overfitting since step 350. The validation loss rose from 0.9900 to 1.3000, while the training loss fell from "
        "0.9500 to 0.3000. It begins to learn the training text by heart. The weights of step 350 are the better ones. "
        "More text, a smaller model, fewer steps or dropout help."
    )
    never = State(OVERFITTING, 0, **FACTS)
    assert "by heart" not in in_words(never) and not advice(never)


def test_where_nothing_is_left_nothing_is_advised():
    at_the_floor = State(
        LEVEL, 200, now=0.902, lowest=(400, 0.902), training=(0.9, 0.9), left=0.002, fell=0.0, over=True
    )
    assert in_words(at_the_floor).startswith("Next to nothing is left to learn.") and not advice(at_the_floor)
    assert advice(State(LEVEL, 200, **FACTS, fell=0.0)) and advice(State(LEARNING, 200, **FACTS, fell=0.2))
    assert TONES[BELOW] == TONES[UNMASKED] == "warning"
