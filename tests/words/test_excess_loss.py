"""What is said to be left is what its record says."""

from playground.words.excess_loss import excess_clauses

RECORD = {"kind": "mostly", "parts": [["a", 0.8, 0.5]], "unit": "token", "tokens": 900}


def test_each_kind_has_its_clause():
    assert excess_clauses([RECORD]) == "what is left is mostly *a* (80 %)"
    few = RECORD | {"kind": "divided", "unit": "word", "tokens": 30}
    assert excess_clauses([few]) == "what is left divides into *a* (80 %), counted on 30 words only"
    several = RECORD | {"kind": "spread", "parts": [["a", 0.3, 0.1], ["b", 0.2, 0.1], ["c", 0.1, 0.1]]}
    assert excess_clauses([several]).endswith("the largest are *a* (30 %), *b* (20 %) and *c* (10 %)")
    assert excess_clauses([RECORD | {"kind": "nothing", "parts": []}]) == "next to nothing is left"
    assert excess_clauses([RECORD | {"kind": "unclear", "parts": [], "tokens": 3}]) == "what is left cannot be told"


def test_runs_of_earlier_versions_kept_the_clauses_themselves():
    assert excess_clauses("what is left is mostly *a*") == "what is left is mostly *a*" and excess_clauses([]) == ""
