"""One loss over windows: what it says of each equals a token at a time, whatever goes through the model together."""

import pytest
import torch

from playground.data.baselines import IGNORE
from playground.inspection.edits import SwitchOff, edits_tap
from playground.model import ModelConfig, Pass, Transformer
from playground.training import evaluate
from playground.training.losses import window_losses

MODEL = Transformer(ModelConfig(vocab_size=11, context_length=9, n_layers=2, d_model=16, n_heads=2, init_std=0.3))


@pytest.mark.parametrize("at_once", [1, 3, 64])
@pytest.mark.parametrize("edit", [[], [SwitchOff(1, "head", 0)]])
@torch.no_grad()
def test_every_window_loses_what_its_counted_tokens_do(at_once, edit):
    ids = torch.randint(11, (7, 10), generator=torch.Generator().manual_seed(0))
    inputs, targets = ids[:, :-1], ids[:, 1:].clone()
    targets[2, 4:] = targets[5] = IGNORE
    tap = edits_tap(edit, MODEL.config)
    losses = window_losses(MODEL, inputs, targets, tap=tap, at_once=at_once)
    for x, y, total, tokens in zip(inputs, targets, losses.total, losses.tokens):
        surprise = -MODEL(x[None], Pass(tap=tap)).logits[0].double().log_softmax(-1)
        assert total.item() == pytest.approx(
            sum(surprise[t, y[t]].item() for t in range(9) if y[t] != IGNORE), abs=1e-5
        )
        assert tokens == (y != IGNORE).sum()
    assert losses.mean == pytest.approx(losses.total.sum().item() / (targets != IGNORE).sum().item())
    if not edit:
        assert evaluate(MODEL, inputs, targets) == pytest.approx(losses.mean, rel=1e-6)


def test_no_window_at_all_loses_nothing():
    nothing = torch.zeros(0, 9, dtype=torch.long)
    assert window_losses(MODEL, nothing, nothing).mean == evaluate(MODEL, nothing, nothing) == 0.0
