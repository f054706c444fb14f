"""Textbook slips in words: no place left open, and none for good where a model cannot be read for a moment."""

import re

import pytest

from playground.studies import slips
from playground.studies.slips import slip_numbers
from playground.words.slips import SLIPS, slip_sentences


@pytest.mark.parametrize("name", SLIPS)
def test_each_says_what_the_text_says_and_what_is_true_without_a_place_left_open(name):
    says, truth = slip_sentences(name)
    assert re.match(r"One textbook \w", says) and says.endswith(".") and truth.endswith(".")
    assert not re.search(r"[{}]|nan|inf\b", truth) and re.search(r"\d", truth)
    assert not re.search(r"(?<![\w-])-\d", truth), "a hyphen is no minus sign"


def test_a_slip_is_left_out_only_while_its_model_is_not_here(monkeypatch, tmp_path):
    slip_numbers.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(slips, "CHECKPOINTS", tmp_path)
        assert slip_sentences("alike") is None and slip_sentences("dropout") is None
        assert slip_sentences("size") is not None
    assert slip_sentences("alike") is not None and slip_sentences("dropout") is not None
