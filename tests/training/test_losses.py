"""One loss over windows: each equals a token at a time, whatever goes through together; padding counts nowhere."""

import pytest
import torch

from playground.data import corpus_from_sentences, real_tokens
from playground.data.baselines import IGNORE
from playground.inspection.edits import SwitchOff, edits_tap
from playground.model import PRESETS, ModelConfig, Pass, Transformer
from playground.model.moe import apply_experts
from playground.training import LoadMeasured, TrainConfig, evaluate, train
from playground.training.losses import token_losses, window_losses

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


CORPUS = corpus_from_sentences()
CONFIG = TrainConfig(steps=1, batch_size=16, accumulation=2, eval_every=1, seed=3, precision="fp32")


def moe(**changes) -> Transformer:
    return Transformer(PRESETS["s5-moe"].replace(vocab_size=28, context_length=32, **changes), seed=1)


def counted(model: Transformer) -> tuple[torch.Tensor, torch.Tensor]:
    """The load (L, E) of the first step, counted by hand: over its tokens alone, and with the padding."""
    rng = torch.Generator().manual_seed(CONFIG.seed)
    ours, theirs = torch.zeros(2, 4, 8)
    for _ in range(CONFIG.accumulation):
        x, y = CORPUS.batch("train", CONFIG.batch_size, 32, rng)
        for row, targets in zip(x, y):
            n = int((targets >= 0).sum()) + 1  # the last token has no target
            for layer, routing in enumerate(model(row[None]).routings):
                ours[layer] += torch.bincount(routing.experts[0, :n].flatten(), minlength=8)
                theirs[layer] += torch.bincount(routing.experts.flatten(), minlength=8)
    return tuple(each / each.sum(dim=1, keepdim=True) for each in (ours, theirs))


@pytest.mark.parametrize("balance", ["switch", "bias"])
def test_the_load_of_padded_sentences_is_that_of_their_tokens(balance):
    model = moe(balance=balance)
    load, with_padding = counted(model)
    assert (load - with_padding).abs().max() > 0.05, "which tells them apart"
    (measured,) = (event for event in train(model, CORPUS, CONFIG) if isinstance(event, LoadMeasured))
    assert torch.allclose(torch.tensor(measured.load), load, atol=1e-6)
    if balance == "bias":
        moved = torch.stack([block.feedforward.selection_bias for block in model.blocks])
        assert torch.equal(moved.sign(), (1 / 8 - load).sign())
        assert not torch.equal(moved.sign(), (1 / 8 - with_padding).sign())


def test_losses_of_windows_route_no_padding():
    model, (inputs, targets) = moe(), CORPUS.windows("val", 32)
    routed = []

    def counting(x, *arguments):
        routed.append(len(x))
        return apply_experts(x, *arguments)

    for block in model.blocks:
        block.feedforward.kernel = counting
    one, other = window_losses(model, inputs, targets), token_losses(model, inputs, targets)
    assert routed == [int(real_tokens(targets).sum())] * 8
    plain = token_losses(model, inputs[:, :16], targets[:, :16])
    assert torch.allclose(other[:, :16], plain, atol=1e-5) and other.sum().item() == pytest.approx(one.total.sum())
