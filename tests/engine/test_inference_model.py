"""In every precision near the plain model; the pass written out for one token is the plain one; copies are bounded."""

import gc
import weakref

import pytest
import torch

from playground.engine import PRECISIONS, ContinuousBatch, InferenceModel, Request, SamplingConfig, generate
from playground.engine import inference_model as engine_module
from playground.engine.inference_model import inference_model
from playground.model import KVCache, Transformer
from playground.model.cache import RaggedCache
from playground.model.kernels import packed
from playground.model.kernels.packed import rounded
from tests.model.configs import CAUSAL, TINY


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


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("config", CAUSAL.values(), ids=CAUSAL.keys())
def test_one_token_after_the_other_gives_the_logits_of_the_whole_window(config):
    model, ids = Transformer(config, seed=1), torch.arange(24).view(2, 12) % config.vocab_size
    for precision, off in (("fp32", 1e-5), ("bf16", 0.05), ("int8", 0.05)):
        inference, cache = InferenceModel(model, precision), KVCache.allocate(config, 2)
        with torch.inference_mode():
            expected = coarse(model, precision)(ids).logits
            whole = inference.logits(ids)
            inference.prefill(ids[:, :4], cache)
            found = [inference.decode_one(ids[:, t : t + 1], cache) for t in range(4, 12)]
        # inputs are rounded, too: a few hundredths of the logits' spread; a choice of experts on the edge may differ
        spread = expected.std()
        assert (torch.stack(found, dim=1) - whole[:, 4:]).abs().mean() <= off * spread
        assert (whole - expected).abs().mean() <= off * spread


@pytest.mark.parametrize("config", CAUSAL.values(), ids=CAUSAL.keys())
def test_the_pass_written_out_for_one_token_is_the_plain_pass(config):
    inference = InferenceModel(Transformer(config, seed=1))
    caches = [RaggedCache(config), RaggedCache(config), KVCache.allocate(config, 2), KVCache.allocate(config, 2)]
    with torch.inference_mode():
        for cache in caches[:2]:
            for length in (3, 5):  # rows of different lengths
                read = KVCache.allocate(config, capacity=length)
                inference.prefill(torch.arange(length)[None], read)
                cache.join(read)
        for token in (1, 2, 3):
            ids = torch.tensor([[token], [token + 1]])
            for plain, written_out in (caches[:2], caches[2:]):
                if isinstance(plain, RaggedCache):
                    plain.begin(torch.tensor([True, token != 2]))
                    written_out.begin(torch.tensor([True, token != 2]))
                expected = inference.prefill(ids, plain)
                assert torch.allclose(inference.decode_one(ids, written_out), expected, atol=1e-5)


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("more", [{}, {"n_experts": 4}], ids=["dense", "experts"])
def test_requests_in_a_batch_write_what_each_writes_alone_in_every_precision(precision, more):
    model = Transformer(TINY.replace(**more), seed=2)
    batch = ContinuousBatch(model, precision)
    wishes = [([1 + i, 2], 9, SamplingConfig(seed=i)) for i in range(5)]
    together = list(zip(*(batch.join(Request(model.config, *wish)) for wish in wishes)))
    for i, wish in enumerate(wishes):
        alone = list(generate(model, *wish, precision=precision))
        assert [steps[i].tokens for steps in together] == [step.tokens for step in alone]


@pytest.mark.parametrize("large", [packed.LARGE, 100])
def test_a_copy_is_known_to_be_old_however_the_weights_were_changed(monkeypatch, large):
    model = Transformer(TINY, seed=3)
    monkeypatch.setattr(packed, "LARGE", large)
    monkeypatch.setattr(engine_module, "EVERY", 16)
    first = inference_model(model, "int8")
    model.head.weight.data[3].mul_(2)
    second = inference_model(model, "int8")
    with torch.no_grad():
        model.head.weight[1, 1] += 0.01  # which is none of those that are summed
    assert first is not second is not inference_model(model, "int8")


def held() -> list[InferenceModel]:
    return [entry.value for of_model in engine_module._copies._belongs.values() for entry in of_model.values()]


def test_copies_of_weights_are_bounded_and_go_with_their_model_and_what_cannot_be_is_refused(monkeypatch):
    models = [Transformer(TINY, seed=seed) for seed in range(3)]
    a, b, _ = (inference_model(model, "int8") for model in models)
    monkeypatch.setattr(engine_module._copies, "bytes", 2 * a.nbytes)
    assert inference_model(models[0], "int8") is a  # now the second one is the least recently used
    c = inference_model(models[2], "bf16")
    assert all(one in held() for one in (a, c)) and b not in held()
    assert sum(one.nbytes for one in held()) <= 2 * a.nbytes
    assert inference_model(models[2], "bf16") is c
    gone = weakref.ref(models[2])
    del models[2], c
    gc.collect()
    assert gone() is None and len(held()) == 1
    model = Transformer(TINY)
    with pytest.raises(ValueError, match="precision 'int4'"):
        generate(model, [1], 1, precision="int4")
    model.head.register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="fp32 only"):
        generate(model, [1], 1, precision="bf16")
    assert len(list(generate(model, [1], 2))) == 2
