"""Products of decoding against the plain one in float64, on the CPU; no row's answer depends on the rows beside it."""

import pytest
import torch

from playground.model.kernels import packed
from playground.model.kernels.packed import Half, Levels, Packed, Product, Rounded, product, quantise, rounded

torch.manual_seed(0)
WEIGHT, BIAS = torch.randn(96, 128) / 8, torch.randn(96)
X = torch.randn(5, 128) * torch.tensor([[1.0], [0.01], [100.0], [1.0], [1.0]])
X[1], X[4] = X[1].abs(), 0.0
EXACT = (X.double() @ WEIGHT.double().t() + BIAS).float()


@pytest.mark.parametrize("order", [Product, Packed])
def test_fp32_weights_in_any_order_give_the_same_answers(order):
    for x, expected in ((X, EXACT), (X[:1], EXACT[:1]), (X.repeat(20, 1), EXACT.repeat(20, 1))):
        assert torch.allclose(order(WEIGHT, BIAS)(x), expected, rtol=1e-5, atol=1e-4)
        assert torch.allclose(order(WEIGHT, None)(x) + BIAS, expected, rtol=1e-5, atol=1e-4)
    assert order(WEIGHT, None).nbytes == (0 if order is Product else 4 * WEIGHT.numel())


@pytest.mark.parametrize("kind", [Product, Packed, Half, Levels])
@pytest.mark.parametrize("bias", [BIAS, None])
def test_a_product_is_added_in_place(kind, bias):
    multiplied, sums = kind(WEIGHT, bias), torch.randn(5, 96)
    expected = sums + multiplied(X)
    assert multiplied.add_to(sums, X) is sums and torch.allclose(sums, expected, rtol=1e-5, atol=1e-4)


def test_weights_come_back_within_half_a_level_and_bf16_is_off_by_its_bits(monkeypatch):
    levels, scales = quantise(WEIGHT)
    assert levels.abs().max() == 127 and torch.equal(levels.abs().amax(dim=1), torch.full((96,), 127, dtype=torch.int8))
    assert ((levels * scales - WEIGHT).abs() <= scales / 2 * 1.0001).all()
    assert torch.equal(rounded(torch.zeros(2, 3), "int8"), torch.zeros(2, 3))
    reach = X.abs() @ WEIGHT.abs().t() + BIAS.abs()
    for packs in (packed.packs(torch.bfloat16), False):
        monkeypatch.setattr(packed, "packs", lambda dtype, packs=packs: packs)
        way = Half(WEIGHT, BIAS)
        assert ((way(X) - EXACT).abs() <= 3 * 2**-8 * reach).all() and way(X).dtype == torch.float32
        assert way.nbytes == 2 * WEIGHT.numel()


@pytest.fixture(params=["fbgemm", "whole numbers in fp32"])
def int8(request, monkeypatch):
    if request.param != "fbgemm":
        monkeypatch.setattr(packed, "_fbgemm_levels", lambda: 0)
    elif not packed._fbgemm_levels():
        pytest.skip("this processor has no fbgemm")


@pytest.mark.usefixtures("int8")
def test_int8_is_as_far_off_as_its_roundings_allow_and_no_row_minds_its_neighbours():
    for bias in (None, BIAS):
        way = Levels(WEIGHT, bias)
        found = way(X)
        scales = quantise(WEIGHT)[1][:, 0]
        steps = (X.amax(dim=1).clamp(min=0) - X.amin(dim=1).clamp(max=0)) / way.top
        # half a level of each weight times its input, and half a level of each input times its weight
        bound = X.abs().sum(1)[:, None] * scales / 2 + steps[:, None] * rounded(WEIGHT, "int8").abs().sum(1) / 2
        expected = EXACT if bias is not None else EXACT - BIAS
        assert ((found - expected).abs() <= 1.01 * bound + 1e-4).all()
        for row in range(5):
            assert torch.allclose(
                way(X[row : row + 1]), found[row : row + 1], rtol=1e-4, atol=1e-5 * X[row].abs().max()
            )
        assert torch.equal(way(X[None]), found[None])


def test_only_a_large_matrix_is_packed_and_a_missing_operation_of_torch_leaves_the_plain_form(monkeypatch):
    assert type(product(WEIGHT, None, "fp32")) is Product
    assert type(product(WEIGHT, None, "bf16")) is type(product(WEIGHT, None, "int8")) is Rounded
    monkeypatch.setattr(packed, "LARGE", 1000)
    assert type(product(WEIGHT, None, "fp32")) is (Packed if packed.packs(torch.float32) else Product)
    assert (type(product(WEIGHT, None, "bf16")), type(product(WEIGHT, None, "int8"))) == (Half, Levels)
    # As on another version of torch, or another processor.
    monkeypatch.setattr(packed, "LARGE", 1000)
    monkeypatch.setattr(packed, "packs", lambda dtype: False)
    monkeypatch.setattr(packed, "_fbgemm_levels", lambda: 0)
    for precision, off in (("fp32", 1e-5), ("bf16", 0.02), ("int8", 0.02)):
        assert (product(WEIGHT, BIAS, precision)(X) - EXACT).abs().max() <= off * EXACT.abs().max()
