"""Laws of the one forward pass: causal, cached equals full, traced equals plain, layouts agree, explicit dropout."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.model import KVCache, ModelConfig, Pass, Recorder, Transformer, trace
from playground.model.head_layouts import fuse_heads
from playground.model.transformer import causal_mask

from .configs import CAUSAL, TINY, VARIANTS

every_config = pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS.keys())
every_causal_config = pytest.mark.parametrize("config", CAUSAL.values(), ids=CAUSAL.keys())


def some_ids(config: ModelConfig, batch: int = 2, seed: int = 0) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(0, config.vocab_size, (batch, config.context_length), generator=rng)


@every_causal_config
def test_a_future_token_never_changes_a_past_logit(config):
    model, ids = Transformer(config), some_ids(config)
    changed = ids.clone()
    changed[:, 7:] = (changed[:, 7:] + 1) % config.vocab_size
    before, after = model(ids).logits, model(changed).logits
    assert torch.allclose(before[:, :7], after[:, :7], atol=1e-6)
    assert not torch.allclose(before[:, 7:], after[:, 7:], atol=1e-3)


@settings(max_examples=25)
@given(name=st.sampled_from(sorted(CAUSAL)), cuts=st.sets(st.integers(1, 11), max_size=11), seed=st.integers(0, 9))
def test_cached_equals_full_however_the_tokens_are_cut(name, cuts, seed):
    config = CAUSAL[name]
    model, ids = Transformer(config, seed), some_ids(config, seed=seed)
    cache = KVCache.allocate(config, batch=2)
    edges = [0, *sorted(cuts), config.context_length]
    parts = [model(ids[:, a:b], Pass(cache=cache)).logits for a, b in itertools.pairwise(edges)]
    assert cache.length == config.context_length
    assert (torch.cat(parts, dim=1) - model(ids).logits).abs().max() <= 1e-4


@every_config
def test_the_last_tokens_logits_alone_are_those_of_the_whole_pass(config):
    model, ids, last = Transformer(config, seed=1), some_ids(config), config.n_layers - 1
    expected = model(ids).logits[:, -1:]
    assert torch.allclose(model(ids, Pass(last_only=True)).logits, expected, atol=1e-5)
    recorder = Recorder()
    traced = model(ids, Pass(last_only=True, tap=recorder))
    assert torch.allclose(traced.logits, expected, atol=1e-5) and traced.balance_loss is None
    seen, T = recorder.trace, config.context_length
    assert all(seen[name, last].shape[1] == T for name in ("k", "v"))
    assert all(seen[name, last].shape[1] == 1 for name in ("z", "attn_out", "ff_out", "resid_post"))
    if not config.causal:
        return
    for cut in (0, 5, T - 1):  # a fresh cache, one with earlier tokens, and a single token
        caches = [KVCache.allocate(config, batch=2) for _ in range(2)]
        for cache, last_only in zip(caches, (False, True)):
            if cut:
                model(ids[:, :cut], Pass(cache=cache, last_only=last_only))
            found = model(ids[:, cut:], Pass(cache=cache, last_only=last_only)).logits
            assert torch.allclose(found[:, -1:], expected, atol=1e-5) and cache.length == T
        assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(caches[0].layers, caches[1].layers))


@every_config
def test_traced_equals_plain_and_the_trace_is_consistent(config):
    model, ids = Transformer(config), some_ids(config)
    seen = trace(model, ids)
    T = config.context_length
    assert torch.allclose(seen["logits"], model(ids).logits, atol=1e-5)
    for layer in range(config.n_layers):
        pattern = seen["pattern", layer]
        assert torch.allclose(pattern.sum(-1), torch.ones(2, config.n_heads, T), atol=1e-5)
        assert seen["q", layer].shape == (2, T, config.n_heads, config.d_head)
        assert seen["k", layer].shape == seen["v", layer].shape == (2, T, config.kv_heads, config.d_head)
        if config.causal:
            assert pattern[..., ~causal_mask(T, T)].abs().max() == 0
        if config.norm_placement == "pre":  # residuals add up
            mid = seen["resid_pre", layer] + seen["attn_out", layer]
            assert torch.allclose(seen["resid_mid", layer], mid, atol=1e-6)
            post = seen["resid_mid", layer] + seen["ff_out", layer]
            assert torch.allclose(seen["resid_post", layer], post, atol=1e-6)
    assert all(seen["pattern", i].shape == (2, config.n_heads, T, T) for i in range(config.n_layers))


def test_rotation_keeps_lengths_and_only_distances_matter():
    config = TINY.replace(positions="rotary", n_layers=1)
    model = Transformer(config)
    ids = torch.full((1, config.context_length), 3)  # the same token everywhere
    seen = trace(model, ids)
    assert torch.allclose(seen["q", 0].norm(dim=-1), seen["q_rotated", 0].norm(dim=-1), atol=1e-5)
    scores = seen["scores", 0][0, 0]
    for distance in range(1, 6):
        diagonal = scores.diagonal(-distance)
        assert torch.allclose(diagonal, diagonal[0].expand_as(diagonal), atol=1e-5)


def split_heads(state: dict[str, torch.Tensor], config: ModelConfig) -> dict[str, torch.Tensor]:
    """A fused state dict as the separate-heads layout's, number for number; the inverse of `fuse_heads`."""
    split = {name: tensor for name, tensor in state.items() if ".attention.qkv." not in name}
    for layer in range(config.n_layers):
        at = f"blocks.{layer}.attention"
        for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
            parts = state[f"{at}.qkv.{kind}"].split(config.d_head)
            for i, part in enumerate(parts):
                split[f"{at}.heads.{i % config.n_heads}.{'qkv'[i // config.n_heads]}.{kind}"] = part.clone()
    return split


@pytest.mark.parametrize("bias", [True, False])
def test_separate_heads_are_the_same_function_and_convert_both_ways(bias):
    fused = TINY.replace(qkv_bias=bias, positions="rotary")
    listed = fused.replace(attention_layout="separate_heads")
    model, ids = Transformer(fused), some_ids(TINY)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    other = Transformer(listed)
    other.load_state_dict(split_heads(model.state_dict(), fused))
    assert torch.allclose(model(ids).logits, other(ids).logits, atol=1e-5)
    back = fuse_heads(other.state_dict(), listed)
    assert all(torch.equal(back[name], tensor) for name, tensor in model.state_dict().items())


def test_drawing_needs_a_generator_or_a_seed_and_no_global_state():
    model, ids = Transformer(TINY.replace(dropout=0.5)), some_ids(TINY)
    plain = model(ids).logits
    assert torch.equal(plain, model(ids).logits)
    torch.manual_seed(0)
    first = model(ids, Pass(generator=torch.Generator().manual_seed(5))).logits
    torch.manual_seed(99)  # the global state plays no part
    again = model(ids, Pass(generator=torch.Generator().manual_seed(5))).logits
    assert torch.equal(first, again)
    assert not torch.allclose(plain, first, atol=1e-2)
    torch.manual_seed(1)
    a = Transformer(TINY, seed=3).state_dict()
    torch.manual_seed(2)
    b, c = Transformer(TINY, seed=3).state_dict(), Transformer(TINY, seed=4).state_dict()
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a["embedding.weight"], c["embedding.weight"])


def test_too_many_tokens_are_refused_in_words():
    model = Transformer(TINY)
    with pytest.raises(ValueError, match=r"13.*12"):
        model(torch.zeros(1, 13, dtype=torch.long))
    cache = KVCache.allocate(TINY, capacity=4)
    with pytest.raises(ValueError, match="room for 4"):
        model(torch.zeros(1, 5, dtype=torch.long), Pass(cache=cache))
    with pytest.raises(ValueError, match="decode without"):
        KVCache.allocate(TINY.replace(causal=False))
    with pytest.raises(ValueError, match=r"does.*context"):
        KVCache.allocate(TINY, capacity=13)


def test_mixed_precision_on_a_cpu_keeps_attention_in_fp32():
    model, ids = Transformer(TINY), some_ids(TINY)
    plain = model(ids).logits
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = model(ids).logits
    assert mixed.dtype == torch.bfloat16  # the products are
    assert torch.allclose(mixed.float(), plain, atol=0.05)
    q = torch.randn(1, 2, 6, 4, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model.blocks[0].attention.fused(q, q, q, None).dtype == torch.float32
