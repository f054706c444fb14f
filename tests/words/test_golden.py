"""The golden files are what playground/words says today, and they leave out no sentence of it."""

import re

import pytest

from playground.inspection.heads import HABITS
from playground.inspection.roles import PLACES, REPEATS, ROLES
from playground.studies.slips import SLIPS
from playground.words import heads, slips
from playground.words.result import Result

from .golden import FILES, HERE, written
from .prose import ROOT, in_python, is_prose, words


@pytest.mark.parametrize("name", FILES)
def test_the_golden_file_is_up_to_date(name):
    kept = (HERE / f"{name}.txt").read_text(encoding="utf-8")
    assert kept == written(name), "read the difference; if it is meant, run: python -m tests.words.golden"


def test_every_kind_has_words():
    assert set(heads.ROLE_NAMES) == {*ROLES, "unclear here"}
    assert set(heads.HABIT_NAMES) == set(HABITS) == {*PLACES, *REPEATS}
    assert slips.SLIPS.keys() == SLIPS.keys()


def test_headlines_are_short():
    results = [said for made in FILES.values() for _, said in made() if isinstance(said, Result)]
    assert len(results) > 40 and not [said for said in results if len(words(said.headline)) > 12]


def test_every_sentence_is_in_a_golden_file():
    """Each piece of a sentence between two values, of three words or more."""
    said = " ".join(re.sub(r"\s+", " ", written(name)) for name in FILES)
    missing = []
    for path in sorted((ROOT / "playground" / "words").rglob("*.py")):
        for text in filter(is_prose, in_python(path.read_text(encoding="utf-8"))):
            pieces = re.split(r"…|\{[^}]*\}|\d[\d.,]*|\n", text)
            pieces = [re.sub(r"\s+", " ", piece).strip() for piece in pieces]
            missing += [(path.name, piece) for piece in pieces if is_prose(piece) and piece not in said]
    assert [piece for _, piece in missing] == ["# no mask: scores stay unchanged"]
