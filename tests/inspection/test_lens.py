"""The logit lens: its last stage is the model, its earlier ones a NumPy reading of the stream."""

import numpy as np
import pytest
import torch

from playground.inspection.lens import logit_lens
from playground.model import Transformer
from playground.model.forward_pass import trace
from tests.model.configs import TINY, VARIANTS

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_last_stage_is_the_models_own_answer(config):
    model = Transformer(config, seed=4)
    probabilities = model(IDS).logits[0].softmax(-1)
    lens = logit_lens(model, trace(model, IDS), probabilities.argmax(-1))
    assert len(lens.norms) == config.n_layers + 1
    assert torch.equal(lens.best[-1], lens.followed)
    assert (lens.followed_ranks[-1] == 1).all()
    assert torch.allclose(lens.followed_probabilities[-1], probabilities.max(-1).values, atol=1e-5)


def test_an_early_stage_is_what_numpy_reads_out_of_the_stream():
    model = Transformer(TINY, seed=4)
    with torch.no_grad():
        model.final_norm.weight.uniform_(0.5, 2.0)
        model.final_norm.bias.uniform_(-1.0, 1.0)
    seen = trace(model, IDS)
    followed = torch.tensor([7] * 8)
    lens = logit_lens(model, seen, followed)
    state = {name: tensor.numpy().astype(np.float64) for name, tensor in model.state_dict().items()}
    for stage, name in enumerate(("resid_pre", "resid_post")):
        stream = seen[name, 0][0].numpy().astype(np.float64)
        centred = stream - stream.mean(1, keepdims=True)
        normed = centred / np.sqrt((centred**2).mean(1, keepdims=True) + TINY.norm_eps)
        logits = (normed * state["final_norm.weight"] + state["final_norm.bias"]) @ state["head.weight"].T
        chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        assert np.allclose(lens.followed_probabilities[stage], chances[:, 7], atol=1e-5)
        order = np.argsort(-logits, axis=1)
        assert np.array_equal(lens.best[stage], order[:, 0])
        assert np.array_equal(lens.followed_ranks[stage], 1 + np.argmax(order == 7, axis=1))
        assert np.allclose(lens.norms[stage], np.sqrt((stream**2).sum(1)), atol=1e-5)
