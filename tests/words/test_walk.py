"""The walk in words: the printed code of every step makes what is drawn, and no sentence has a hole."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from playground.inspection.walk import step, step_names
from playground.model import Pass
from playground.words.walk import describe
from tests.inspection.test_receipts import look_at
from tests.model.configs import VARIANTS


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
