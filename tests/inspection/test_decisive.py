"""The decisive head: each head's removal, one at a time, says the same as one pass for all."""

import pytest
import torch

from playground.data.tokenizers import CharTokenizer
from playground.inspection import look
from playground.inspection.decisive import decisive
from playground.inspection.edits import SwitchOff, edits_tap
from playground.model import ModelConfig, Transformer, trace
from playground.storage import Checkpoint
from playground.training import History
from tests.inspection.test_receipts import look_at
from tests.model.configs import VARIANTS


@pytest.mark.parametrize("name", VARIANTS)
def test_it_is_the_head_whose_removal_costs_most(name):
    seen = look_at(VARIANTS[name])
    found = decisive(seen)
    usual = seen.trace["logits"][0, -1].softmax(dim=-1)
    assert found.token == int(usual.argmax()) and found.before == pytest.approx(float(usual.max()), abs=1e-5)
    left = {}
    for layer in range(2):
        for head in range(4):
            edit = edits_tap([SwitchOff(layer, "head", head)], seen.config)
            without = trace(seen.model, torch.tensor([seen.ids]), edit=edit)["logits"][0, -1].softmax(dim=-1)
            left[layer, head] = float(without[found.token])
            if (layer, head) == (found.layer, found.head):
                assert found.instead == int(without.argmax())
                assert found.probability == pytest.approx(float(without.max()), abs=1e-5)
    assert found.after == pytest.approx(min(left.values()), abs=1e-5)
    assert left[found.layer, found.head] == pytest.approx(min(left.values()), abs=1e-5)


def test_a_large_model_is_left_alone():
    config = ModelConfig(vocab_size=10, context_length=64, n_layers=12, d_model=768, n_heads=12)
    seen = look(
        Checkpoint(Transformer(config.replace(n_layers=2)), CharTokenizer("abcdefghi"), History()), [1, 2, 3] * 20
    )
    object.__setattr__(seen.model, "config", config)
    assert decisive(seen) is None
