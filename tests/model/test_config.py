"""A config counts what the built module really has, refuses what cannot be built, and finds its pair of equal cost."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from playground.model import PRESETS, KVCache, ModelConfig, Pass, Recorder, Transformer
from playground.model.matched_pair import match_dense, match_experts

from .configs import CAUSAL, VARIANTS

GOLDEN = {"s1": 70_156_112, "s3": 162_692_432, "s5": 205_696, "s5-moe": 1_134_208, "gpt2-small": 124_439_808}


@pytest.mark.parametrize("name", GOLDEN)
def test_presets_have_their_published_sizes(name):
    assert PRESETS[name].n_parameters == GOLDEN[name]


def a_block_of(config):
    return config.replace(n_layers=config.n_layers + 1).n_parameters - config.n_parameters


def test_the_published_numbers_of_blocks_caches_and_changed_shapes():
    s1, s2 = PRESETS["s1"], PRESETS["s2"]
    scaled = s2.replace(vocab_size=50_257, d_model=768, n_heads=12, n_layers=12, context_length=1024)
    assert scaled.n_parameters == 124_402_944
    assert a_block_of(s2) == 12 * 64**2 + 9 * 64 == 49_728 and 12 * a_block_of(PRESETS["s3"]) == 85_054_464
    reshaped = s1.replace(attention_layout="fused", qkv_bias=True)
    assert s1.replace(attention_layout="fused").n_parameters == s1.n_parameters
    assert reshaped.n_parameters - s1.n_parameters == 3 * s1.d_model * s1.n_layers
    assert PRESETS["llama-7b"].cache_bytes(2048, bytes_per_number=2) == 2**30
    # one token at T=512, d=768: attention's scores and blend 4·T·d, feed-forward 16·d²
    config = ModelConfig(vocab_size=1, context_length=512, n_layers=1, d_model=768, n_heads=12)
    assert config.flops_per_token(512) - config.flops_per_token(0) == 4 * 512 * 768
    wider = ModelConfig(d_model=64).replace(d_model=256)
    assert (wider.ff_width, wider.kv_heads, wider.d_head) == (1024, 4, 64)


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS.keys())
def test_counts_equal_the_built_module(config):
    model = Transformer(config)
    assert config.n_parameters == sum(p.numel() for p in model.parameters())
    counts = config.parameters_by_component()
    parts = {
        "token embedding": [model.embedding],
        "position embedding": [model.position_embedding] if config.positions == "learned" else [],
        "attention": [b.attention for b in model.blocks],
        "feed-forward": [b.feedforward for i, b in enumerate(model.blocks) if not config.has_experts(i)],
        "routers": [b.feedforward.router for i, b in enumerate(model.blocks) if config.has_experts(i)],
        "norms": [model.final_norm] + [n for b in model.blocks for n in (b.attention_norm, b.feedforward_norm)],
    }
    assert set(counts) - set(parts) == {"experts", "output head"}
    for component, modules in parts.items():
        assert counts[component] == sum(p.numel() for m in modules for p in m.parameters()), component


def counting() -> FlopCounterMode:
    """torch's counter, told what the experts' grouped product costs, which it does not know."""

    def grouped(a: tuple, b: tuple, *_, out_shape: tuple, **__) -> int:
        return 2 * a[0] * a[1] * out_shape[-1]  # rows by a matrix each, or a matrix from the rows of each

    return FlopCounterMode(display=False, custom_mapping={torch.ops.aten._grouped_mm: grouped})


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS.keys())
def test_flops_equal_what_torch_counts(config):
    model, T = Transformer(config), config.context_length
    ids = torch.zeros(1, T, dtype=torch.long)
    with counting() as forward:  # a tap, so that attention is plain products torch can count
        logits = model(ids, Pass(tap=Recorder())).logits
    assert forward.get_total_flops() == T * config.flops_per_token()
    with counting() as backward:
        logits.sum().backward()
    assert forward.get_total_flops() + backward.get_total_flops() == T * config.flops_per_token(training=True)


@pytest.mark.parametrize("config", CAUSAL.values(), ids=CAUSAL.keys())
def test_decoding_flops_and_cache_bytes_equal_the_real_ones(config):
    model, cache = Transformer(config), KVCache.allocate(config)
    with torch.no_grad():
        model(torch.zeros(1, 6, dtype=torch.long), Pass(cache=cache))
        with counting() as counter:
            model(torch.zeros(1, 1, dtype=torch.long), Pass(cache=cache, tap=Recorder()))
    assert counter.get_total_flops() == config.flops_per_token(7)
    held = [t[:, :, : cache.length] for t in cache.keys + cache.values]
    assert config.cache_bytes(7) == sum(t.numel() * t.element_size() for t in held)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"d_model": 100, "n_heads": 3}, "n_heads 3"),
        ({"n_heads": 4, "n_kv_heads": 3}, "n_kv_heads 3"),
        ({"positions": "alibi"}, "sinusoidal, rotary"),
        ({"n_layers": 0}, "n_layers must"),
        ({"d_model": 12.5}, "d_model must"),
        ({"causal": 1}, "causal must"),
        ({"dropout": 1.0}, "dropout must"),
        ({"norm_eps": 10**400}, "norm_eps must"),
        ({"init_std": "wide"}, "init_std must"),
        ({"norm": 3}, "a text"),
        ({"d_model": 12, "n_heads": 4, "positions": "rotary"}, "be even"),
        ({"attention_layout": "separate_heads", "n_kv_heads": 1}, "separate heads"),
        ({"n_experts": 1}, "one expert"),
        ({"n_experts": 2, "experts_per_token": 3}, "cannot use 3"),
        ({"n_experts": 2, "moe_every": 9}, "lower moe_every"),
        ({"d_modle": 12}, "called 'd_modle'"),
    ],
)
def test_what_cannot_be_built_is_refused_in_words(changes, sentence):
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        ModelConfig().replace(**changes)


BASE = ModelConfig(vocab_size=26, context_length=16, n_layers=2, d_model=32, n_heads=2)
PLAIN = BASE.replace(feedforward_bias=False, activation="relu2")
MIXTURES = {
    "gelu, 8 experts": BASE.replace(n_experts=8, d_expert=64),
    "no biases": PLAIN.replace(n_experts=4, experts_per_token=1, d_expert=48),
    "swiglu, shared": BASE.replace(activation="swiglu", n_experts=4, d_expert=40, shared_expert=True),
    "every second block": BASE.replace(n_layers=4, n_experts=8, moe_every=2, d_expert=64),
}


@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
@pytest.mark.parametrize("equal", ["active", "total", "flops"])
def test_no_other_width_comes_closer(mixture, equal):
    matched = match_dense(mixture, equal)
    count = {"total": lambda c: c.n_parameters, "flops": lambda c: c.flops_per_token()}.get(
        equal, lambda c: c.n_active_parameters
    )
    apart = abs(count(matched.dense) - count(mixture))
    for other in (matched.dense.ff_width - 1, matched.dense.ff_width + 1):
        assert apart <= abs(count(matched.dense.replace(d_ff=other)) - count(mixture))
    assert matched.counted == (count(matched.dense), count(mixture)) and not matched.dense.n_experts


def test_the_experts_can_adapt_or_a_sentence_says_why_not():
    matched = match_experts(BASE, BASE.replace(n_experts=4), "total")
    assert matched.dense == BASE and matched.moe.expert_width < BASE.ff_width / 3.9
    assert abs(matched.difference) < 0.01
    mixture = MIXTURES["no biases"]
    assert match_dense(mixture, "flops").dense == match_dense(mixture, "active").dense
    with pytest.raises(ValueError, match=r"64.*model's"):
        match_experts(PLAIN.replace(d_ff=16), PLAIN.replace(n_experts=64), "total")
    with pytest.raises(ValueError, match="have experts"):
        match_dense(BASE)
    with pytest.raises(ValueError, match=r"cannot.*equal"):
        match_dense(MIXTURES["no biases"], "weight")
