"""What precision costs: the numbers against their own definitions, on the CPU; nothing that was kept is changed."""

import math
from pathlib import Path

import pytest
import torch

from playground.inspection.precision import precision_cost, rounded_matrix, weight_bytes
from playground.model import Transformer
from playground.service.texts import unseen
from playground.storage import load
from playground.training import evaluate
from tests.model.configs import GPU, TINY

CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"


@pytest.mark.parametrize("name", ["stories", "dialects-moe"])
def test_the_cost_of_a_shipped_model(name):
    checkpoint = load(CHECKPOINTS / name)
    model = checkpoint.model
    found = unseen(None, checkpoint)
    corpus, words = found.corpus, found.words
    before = [weight.clone() for weight in model.parameters()]
    inputs, targets = corpus.windows("val", model.config.context_length, 8)
    cost = precision_cost(model, inputs, targets, 12)
    assert all(torch.equal(*pair) for pair in zip(before, model.parameters()))
    assert corpus.language.title in words
    plain, bf16, int8 = cost.ways
    assert math.isclose(plain.loss, evaluate(model, inputs, targets), rel_tol=1e-5)
    assert plain.more == plain.more_margin == 0 and plain.parts_at is None
    assert plain.nbytes == 4 * model.config.n_parameters > 1.9 * bf16.nbytes > 3.5 * int8.nbytes
    for way in (bf16, int8):  # both round, and neither ruins a trained model
        assert abs(way.more) < 0.02 and 0 < way.more_margin < 0.02
        assert math.isclose(way.loss, plain.loss + way.more, rel_tol=1e-9)
    assert cost.written == 12 and cost.tokens == targets.ge(0).sum()


def test_a_matrix_and_the_receipt_of_its_worst_weight():
    weight = torch.randn(20, 30, generator=torch.Generator().manual_seed(1))
    matrix = rounded_matrix("some", weight)
    one = matrix.worst
    assert sum(matrix.counts) == 600 and len(matrix.counts) == 255
    assert one.value == weight[one.row, one.column].item() and one.largest == weight[one.row].abs().max().item()
    assert math.isclose(one.scale, one.largest / 127, rel_tol=1e-6) and one.level == round(one.value / one.scale)
    assert math.isclose(one.back, one.level * one.scale, rel_tol=1e-6)
    assert 0.4 < abs(one.back - one.value) / one.scale <= 0.5001
    within = sum(matrix.counts[127 - matrix.middle_half : 128 + matrix.middle_half])
    assert within >= 300 > within - matrix.counts[127 - matrix.middle_half] - matrix.counts[127 + matrix.middle_half]


def test_a_tied_table_counts_once_and_one_window_cannot_tell():
    tied, own = Transformer(TINY.replace(tie_embeddings=True)), Transformer(TINY.replace(n_experts=3))
    for model in (tied, own):
        rest = sum(
            p.numel()
            for n, p in model.named_parameters()
            if p.ndim < 2 or "position" in n or "router" in n or "bias" in n
        )
        outputs = sum(
            m.out_features for n, m in model.named_modules() if hasattr(m, "out_features") and "router" not in n
        )
        outputs += 2 * 3 * (TINY.ff_width + TINY.d_model) if model is own else 0  # of the experts
        outputs += TINY.vocab_size if model is own else 0  # of the embedding; a tied one is the head
        rounded = model.config.n_parameters - rest
        assert weight_bytes(model, "int8") == rounded + 4 * rest + 4 * outputs
        assert weight_bytes(model, "bf16") == 2 * rounded + 4 * rest
    model = Transformer(TINY, seed=1).to(GPU)
    ids = torch.arange(48).view(4, 12) % 11
    cost = precision_cost(model, ids, ids.roll(-1, dims=1), 5)
    assert cost.prompt == tuple(ids[0, : len(cost.prompt)].tolist())
    one = precision_cost(model, ids[:1], ids[:1].roll(-1, dims=1), 5)
    assert [way.more_margin for way in one.ways] == [0.0, math.inf, math.inf] and not one.ways[2].can_be_told
    with pytest.raises(ValueError, match=r"text.*judge"):
        precision_cost(model, ids[:0], ids[:0], 5)
