"""What is said about a repeated run names its losses and the machines they were made on."""

import pytest

from playground.links.repetition import Gap, Repetition
from playground.words.links import repetition_in_words

MACHINE = "cpu AVX512 float32, 2 threads, torch 2.13.0+cpu, Some Processor 9000"
LOSSES = ((0, 3.4, 3.5), (300, 1.2, 1.2345))


def differs(theirs: str) -> str:
    gaps = (Gap(150, "validation", 1.61, 1.6), Gap(300, "validation", 1.2395, 1.2345))
    return repetition_in_words(Repetition("differs", True, LOSSES, 0, False, gaps, theirs, MACHINE))


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        ("", "does not say on what kind"),
        (MACHINE, "either the program has changed since, or a library"),
        ("cpu AVX512 float32, 2 threads, torch 2.13", "leaves out the processor"),
        ("cpu AVX512 float32, 2 threads, torch 2.1", "another kind of machine"),
        ("Some GPU bfloat16, torch 2.13.0", "another kind of machine"),
    ],
)
def test_a_difference_names_what_may_be_behind_it(theirs, said):
    words = differs(theirs)
    assert said in words and "first difference is at step 150" in words
    assert "validation loss at step 300 is 1.2395, the link says 1.2345 (0.0050 more)" in words


def test_a_match_says_where_it_was_not_to_be_expected():
    there = Repetition("matched", True, LOSSES, 0, False, (), MACHINE, MACHINE)
    words = repetition_in_words(there)
    assert words.startswith("Matched to 4 decimals") and "machine" not in words
    elsewhere = Repetition("matched", True, LOSSES, 0, False, (), "Some GPU", MACHINE)
    assert "another kind of machine" in repetition_in_words(elsewhere)
    early = Repetition("matched", True, LOSSES[:1], 1, True, (), MACHINE, MACHINE)
    assert repetition_in_words(early).endswith("; this run ended before the others.")
