"""Padding is neither routed nor counted: expert load and router biases describe the text."""

import pytest
import torch

from playground.data import corpus_from_sentences, real_tokens
from playground.model import PRESETS, Transformer
from playground.model.moe import apply_experts
from playground.training import LoadMeasured, TrainConfig, train
from playground.training.losses import token_losses, window_losses

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
