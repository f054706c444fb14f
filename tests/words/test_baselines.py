"""What is said of a loss beside its baselines is true of its numbers."""

import math

import pytest

from playground.data import Baselines, corpus_from_text
from playground.words.baselines import choices, each_baseline, how_good, size_of_loss

LADDER = Baselines(uniform=4.0, unigram=3.0, bigram=2.0, floor=1.0, ngram=1.5, order=4, unit="character")
UNKNOWN = Baselines(uniform=4.0, unigram=3.0, bigram=2.0)
FEW = {"tokens": 119, "chance": {"unigram": 0.24, "uniform": 0.1}, "unit": "word"}
NEAR = Baselines(uniform=6.0, unigram=5.53, bigram=5.2, **FEW, at_best={"unigram": 5.3})
LITTLE = Baselines(uniform=2.0, unigram=0.03, bigram=0.01, tokens=99, chance={"unigram": 0.09})


@pytest.mark.parametrize(
    ("baselines", "loss", "said"),
    [
        (LADDER, 1.04, "0.0400 nats above the floor"),
        (LADDER, 1.04, "gained 96.0 %"),
        (LADDER, 0.9, "leaked into the training"),
        (LADDER, 1.002, "0.0020 nats above the floor: next to nothing is left"),
        (LADDER, 0.9992, "0.0008 nats below the floor: next to nothing is left"),
        (LADDER, 1.7, "Passed the bigram (2.0000), so it uses more than the last character, and is above the 4-gram"),
        (LADDER, 1.495, "is not clearly below the 4-gram (1.5000)"),
        (UNKNOWN, 1.5, "no known floor"),
        (UNKNOWN, 5.0, "Worse than guessing all 55 tokens alike (4.0000)"),
        (UNKNOWN, math.nan, "not a number"),
        (
            NEAR,
            5.26,
            "the unigram (5.5300; 5.3000 if smoothed to suit this text best) cannot be told from the 119 words",
        ),
        (LITTLE, 0.0036, "; the unigram (0.0300) leaves too little to tell more."),
    ],
)
def test_a_loss_is_said_to_be_as_good_as_it_is(baselines, loss, said):
    assert said in how_good(baselines, loss)


def test_what_is_left_is_said_only_of_a_loss_that_came_anywhere():
    assert how_good(LADDER, 1.7, "what is left is mostly *a*").endswith(" What is left is mostly *a*.")
    for loss in (0.9, 1.001, 4.1, math.nan):
        assert how_good(LADDER, loss, "what is left is mostly *a*") == how_good(LADDER, loss)


def test_each_baseline_says_what_it_knows():
    said = [baseline.sentence for baseline in each_baseline(LADDER)]
    assert said[0].startswith("Guesses all 55 tokens of the vocabulary alike: as unsure as between 54.6 equally likely")
    assert "last 3 characters" in said[3] and "chance" in said[4]
    alone = corpus_from_text("a" * 3000).baselines(32)
    assert how_good(alone, 0.0004).startswith("There is but one character in this text: nothing to guess.")
    assert "though 1 character occurs" in each_baseline(alone)[0].sentence


def test_a_loss_is_told_in_choices_and_in_bits():
    assert choices(LADDER, math.log(7)) == "as unsure as between 7.00 equally likely characters"
    assert size_of_loss(LADDER, math.log(2)).endswith("; 1.00 bits per character.")
    unknown_words = Baselines(4.0, 3.0, 2.0, unit="word", characters_per_token=5.0)
    assert size_of_loss(unknown_words, 1.0) == "As unsure as between 2.72 equally likely words."
    assert choices(LADDER, 26.0) == "more surprised than one who finds all 55 tokens equally likely"
