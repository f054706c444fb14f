"""The walk in words: the printed code of every step makes what is drawn, and no sentence has a hole."""

import math
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from playground.inspection.walk import step, step_names
from playground.model import Pass
from playground.words.walk import describe
from tests.inspection.test_receipts import look_at
from tests.model.configs import TINY, VARIANTS

SELECTION = (1, 2, 4, 2)  # layer, head, query, key


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


@pytest.mark.parametrize("ids", [None, [3]], ids=["several tokens", "one token"])
@pytest.mark.parametrize("name", VARIANTS)
def test_every_step_is_described_without_a_hole(name, ids):
    seen = look_at(VARIANTS[name], ids) if ids else look_at(VARIANTS[name])
    for layer in (0, 1):
        for at in step_names(seen, layer):
            here = step(seen, at, layer, 1, *((0, 0) if ids else (4, 2)))
            described = describe(here)
            text = f"{described.formula} {described.sentence} {described.why}"
            assert described.title and described.code and described.sentence.endswith(".")
            assert not re.search(r"nan|inf\b|\{[^qkvs]", text), (at, text)
            assert not re.search(r"(?<![\w-])-\d", described.sentence), "a hyphen is no minus sign"
            assert not re.search(r"\b1 (tokens|vectors|layers)\b|\bof 1 hold", text), (at, text)
            rows = here.arrays.get("values", here.arrays.get("parts", ()))
            assert len(rows) in (0, len(described.labels))


def test_a_model_that_cannot_tell_order_or_sees_the_future_is_told_apart():
    for causal, said in ((True, "only in the mask"), (False, "this model cannot tell order")):
        lost = look_at(TINY.replace(positions="none", causal=causal))
        assert said in describe(step(lost, "embed", *SELECTION)).why
    assert "sees the future" in describe(step(look_at(VARIANTS["sees the future"]), "mask", *SELECTION)).sentence
