"""MatchedPair cost the same by the models' own counts, to the nearest width; where none can, a sentence says so."""

import pytest

from playground.model import ModelConfig
from playground.model.matched_pair import match_dense, match_experts

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
