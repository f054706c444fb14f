"""The golden files are what playground/words says today, without a gap; numbers and the printed code are right."""

import math
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from playground.inspection.heads import HABITS
from playground.inspection.roles import PLACES, REPEATS, ROLES
from playground.inspection.walk import step, step_names
from playground.model import Pass
from playground.studies.slips import SLIPS
from playground.words import heads, slips
from playground.words.numbers import brief, bytes_text, estimate, percent, signed
from playground.words.result import Result
from playground.words.walk import describe
from tests.inspection.test_receipts import look_at
from tests.model.configs import VARIANTS

from .golden import FILES, HERE, written
from .prose import ROOT, in_python, is_prose, words


@pytest.mark.parametrize("name", FILES)
def test_the_golden_file_is_up_to_date(name):
    kept = (HERE / f"{name}.txt").read_text(encoding="utf-8")
    assert kept == written(name), "read the difference; if it is meant, run: python -m tests.words.golden"


def test_every_kind_has_words():
    assert set(heads.ROLE_NAMES) == {*ROLES}
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


def test_signs_are_minus_signs_nothing_has_none_and_counts_and_bytes_are_short():
    shares = {
        -0.02: "−2.0\u00a0%",
        -0.00001: "0.0\u00a0%",
        0.00001: "<0.1\u00a0%",
        0.9998: ">99.9\u00a0%",
        1.0: "100.0\u00a0%",
    }
    assert {share: percent(share) for share in shares} == shares
    assert [brief(x) for x in (-0.0, -1.25e-7, 3.0, -152.0)] == ["0", "−1.2e−07", "3", "−152"]
    assert (signed(-0.001), signed(0.5, 1, plus=True)) == ("0.00", "+0.5")
    assert [estimate(0.3553, 2.7836, 4), estimate(0.00214, 0.00045)] == ["0.4\u00a0±\u00a02.8", "0.00\u00a0±\u00a00.00"]
    assert [bytes_text(n) for n in (12, 1_500, 2e9)] == ["12 B", "1.5 kB", "2 GB"]


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("layer", [0, 1])
def test_the_printed_code_of_every_step_makes_what_its_picture_draws(name, layer):
    seen = look_at(VARIANTS[name])
    given = {"model": seen.model, "ids": list(seen.ids), "torch": torch, "math": math, "F": F, "Pass": Pass}
    with torch.no_grad():
        for at in step_names(seen, layer):
            here = step(seen, at, layer, 2, 4, 2)
            described = describe(here)
            exec(described.code, given)
            assert described.expressions.keys() == here.arrays.keys()
            for array, expression in described.expressions.items():
                made = eval(expression, given)
                assert tuple(made.shape) == here.arrays[array].shape, (at, array)
                assert np.allclose(made.double().numpy(), here.arrays[array], atol=2e-5, rtol=1e-5), (at, array)
