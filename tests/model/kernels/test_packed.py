"""Products of decoding against the plain one in float64, on the CPU; no row's answer depends on the rows beside it."""

import pytest
import torch

from playground.decoding import PRECISIONS, SamplingConfig, Together, generate
from playground.model import KVCache, ModelConfig, Transformer
from playground.model.kernels import packed, reading
from playground.model.kernels.packed import Half, Levels, Packed, Product, Turned, product, quantise, rounded
from tests.model.configs import CAUSAL, TINY

torch.manual_seed(0)
WEIGHT, BIAS = torch.randn(96, 128) / 8, torch.randn(96)
X = torch.randn(5, 128) * torch.tensor([[1.0], [0.01], [100.0], [1.0], [1.0]])
X[1], X[4] = X[1].abs(), 0.0
EXACT = (X.double() @ WEIGHT.double().t() + BIAS).float()


@pytest.mark.parametrize("order", [Product, Turned, Packed])
def test_fp32_weights_in_any_order_give_the_same_answers(order):
    for x, expected in ((X, EXACT), (X[:1], EXACT[:1]), (X.repeat(20, 1), EXACT.repeat(20, 1))):
        assert torch.allclose(order(WEIGHT, BIAS)(x), expected, rtol=1e-5, atol=1e-4)
        assert torch.allclose(order(WEIGHT, None)(x) + BIAS, expected, rtol=1e-5, atol=1e-4)
    assert order(WEIGHT, None).nbytes == (0 if order is Product else 4 * WEIGHT.numel())


@pytest.mark.parametrize("kind", [Product, Turned, Packed, Half, Levels])
@pytest.mark.parametrize("bias", [BIAS, None])
def test_a_product_is_added_in_place(kind, bias):
    multiplied, sums = kind(WEIGHT, bias), torch.randn(5, 96)
    expected = sums + multiplied(X)
    assert multiplied.add_to(sums, X) is sums and torch.allclose(sums, expected, rtol=1e-5, atol=1e-4)


def test_every_weight_lies_within_half_a_level_of_what_comes_back():
    levels, scales = quantise(WEIGHT)
    assert levels.abs().max() == 127 and torch.equal(levels.abs().amax(dim=1), torch.full((96,), 127, dtype=torch.int8))
    assert ((levels * scales - WEIGHT).abs() <= scales / 2 * 1.0001).all()
    assert torch.equal(rounded(torch.zeros(2, 3), "int8"), torch.zeros(2, 3))


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


def test_bf16_is_off_by_its_bits_whether_packed_or_not(monkeypatch):
    reach = X.abs() @ WEIGHT.abs().t() + BIAS.abs()
    for packs in (packed._packs_bf16(), False):
        monkeypatch.setattr(packed, "_packs_bf16", lambda packs=packs: packs)
        way = Half(WEIGHT, BIAS)
        assert ((way(X) - EXACT).abs() <= 3 * 2**-8 * reach).all() and way(X).dtype == torch.float32
        assert way.nbytes == 2 * WEIGHT.numel()


def test_only_a_large_matrix_is_measured_and_the_answer_is_remembered(monkeypatch):
    asked = []
    monkeypatch.setattr(packed, "_quickest", {})
    monkeypatch.setattr(packed, "_measured", lambda weight: asked.append(weight.shape) or "packed")
    assert type(product(WEIGHT, None, "fp32")) is Product and not asked
    monkeypatch.setattr(packed, "LARGE", 1000)
    assert [type(product(WEIGHT, None, "fp32")) for _ in range(3)] == [Packed] * 3 and len(asked) == 1


# ---- whole models ----------------------------------------------------------------------------------------------------


def coarse(model: Transformer, precision: str) -> Transformer:
    """The same model with every weight as it comes back from the precision."""
    other = Transformer(model.config)
    other.load_state_dict(model.state_dict())
    with torch.no_grad():
        for name, weight in other.named_parameters():
            if weight.ndim == 3:
                weight.copy_(rounded(weight.mT, precision).mT)
            elif weight.ndim == 2 and "router" not in name and "position_embedding" not in name:
                weight.copy_(rounded(weight, precision))
    return other


@pytest.fixture(params=["large", "small"])
def size(request, monkeypatch):
    """As matrices are multiplied that are worth a kernel of their own, and as those that are not."""
    if request.param == "large":
        monkeypatch.setattr(packed, "LARGE", 0)
        monkeypatch.setattr(packed, "quickest_order", lambda weight: "packed")


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("config", CAUSAL.values(), ids=CAUSAL.keys())
def test_one_token_after_the_other_gives_the_logits_of_the_whole_window(config):
    model, ids = Transformer(config, seed=1), torch.arange(24).view(2, 12) % config.vocab_size
    for precision, off in (("fp32", 1e-5), ("bf16", 0.05), ("int8", 0.05)):
        read, cache = reading.Reading(model, precision), KVCache.allocate(config, 2)
        with torch.inference_mode():
            expected = coarse(model, precision)(ids).logits
            whole = read.whole(ids)
            read.window(ids[:, :4], cache)
            found = [read.newest(ids[:, t : t + 1], cache) for t in range(4, 12)]
        # inputs are rounded, too: a few hundredths of the logits' spread; whoever is chosen on the edge may differ
        spread = expected.std()
        assert (torch.stack(found, dim=1) - whole[:, 4:]).abs().mean() <= off * spread
        assert (whole - expected).abs().mean() <= off * spread


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("more", [{}, {"n_experts": 4}], ids=["dense", "experts"])
def test_streams_together_write_what_each_writes_alone_in_every_precision(precision, more):
    model = Transformer(TINY.replace(**more), seed=2)
    shared = Together(model, precision)
    wishes = [([1 + i, 2], 9, SamplingConfig(seed=i)) for i in range(5)]
    together = list(zip(*(shared.generate(*wish) for wish in wishes)))
    for i, wish in enumerate(wishes):
        alone = list(generate(model, *wish, precision=precision))
        assert [steps[i].tokens for steps in together] == [step.tokens for step in alone]


@pytest.mark.parametrize("large", [packed.LARGE, 100])
def test_a_copy_is_known_to_be_old_however_the_weights_were_changed(monkeypatch, large):
    model = Transformer(TINY, seed=3)
    monkeypatch.setattr(packed, "LARGE", large)
    monkeypatch.setattr(reading, "EVERY", 16)
    first = reading.reading(model, "int8")
    model.head.weight.data[3].mul_(2)
    second = reading.reading(model, "int8")
    with torch.no_grad():
        model.head.weight[1, 1] += 0.01  # which is none of those that are summed
    assert first is not second is not reading.reading(model, "int8")


def test_a_model_that_has_learned_since_is_packed_anew_and_copies_go_with_their_models(monkeypatch):
    model = Transformer(TINY, seed=3)
    first = reading.reading(model, "int8")
    assert reading.reading(model, "int8") is first and reading.reading(model) is not reading.reading(model)
    model.head.weight.data.mul_(2)  # escapes torch's count of changes
    second = reading.reading(model, "int8")
    ids = torch.tensor([[1, 2, 3]])
    assert second is not first and torch.allclose(second.window(ids), 2 * first.window(ids), rtol=0.05, atol=0.05)
    other = Transformer(TINY, seed=4)
    monkeypatch.setattr(reading, "KEPT_BYTES", first.nbytes)
    kept = reading.reading(other, "bf16")
    assert model not in reading._kept or not reading._kept[model]
    assert reading.reading(other, "bf16") is kept
    del other, kept
    assert not any(own for own in reading._kept.values())


def test_what_cannot_be_is_refused_in_a_sentence():
    model = Transformer(TINY)
    with pytest.raises(ValueError, match="no precision 'int4'"):
        generate(model, [1], 1, precision="int4")
    model.head.register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="fp32 only"):
        generate(model, [1], 1, precision="bf16")
    assert len(list(generate(model, [1], 2))) == 2


def test_a_large_model_decodes_with_packed_weights_as_with_plain_ones(monkeypatch):
    model = Transformer(ModelConfig(vocab_size=50, context_length=16, n_layers=2, d_model=64, n_heads=4, init_std=0.2))
    plain = list(generate(model, [1, 2], 10, SamplingConfig(seed=1)))
    monkeypatch.setattr(packed, "LARGE", 1000)
    monkeypatch.setattr(packed, "quickest_order", lambda weight: "packed")
    assert reading.reading(model).nbytes > 4 * 2 * 12 * 64 * 64
    for ours, theirs in zip(generate(model, [1, 2], 10, SamplingConfig(seed=1)), plain):
        assert ours.tokens == theirs.tokens and torch.allclose(ours.logits, theirs.logits, atol=1e-4)
