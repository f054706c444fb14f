"""The grouped mixture of experts equals a loop over tokens, and Mixtral's block; its balance terms do what they say."""

import pytest
import torch
import torch.nn.functional as F

from playground.model import PRESETS, Block, ModelConfig, Pass, Transformer, trace
from playground.model.config import BALANCES
from playground.model.moe import LayerRouting, MixtureOfExperts, balance_loss, hide_experts, router_z_loss

MIXTURE = ModelConfig(vocab_size=11, context_length=12, n_layers=1, d_model=8, n_heads=2, d_ff=12, n_experts=5)

CHOICES = {
    "gelu, top 2": MIXTURE,
    "relu, top 1": MIXTURE.replace(activation="relu", experts_per_token=1),
    "swiglu, top 3": MIXTURE.replace(activation="swiglu", experts_per_token=3),
    "squared relu": MIXTURE.replace(activation="relu2"),
    "gelu by tanh": MIXTURE.replace(gelu_tanh=True),
    "all experts, no bias": MIXTURE.replace(experts_per_token=5, feedforward_bias=False),
    "shared expert": MIXTURE.replace(shared_expert=True, d_expert=7),
    "sizes that torch's grouped product does not take": MIXTURE.replace(d_model=6, activation="swiglu", d_expert=7),
}

ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "relu2": lambda x: F.relu(x) ** 2,
}


def filled(config: ModelConfig, seed: int = 0) -> MixtureOfExperts:
    mixture, rng = Block(config, 0).feedforward, torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in mixture.parameters():
            parameter.normal_(0, 0.5, generator=rng)
    return mixture


def token_by_token(mixture: MixtureOfExperts, x: torch.Tensor) -> torch.Tensor:
    """What the layer means, one token and one expert at a time."""
    config, out = mixture.config, []
    for token in x.flatten(0, 1):
        probabilities = F.softmax(mixture.router.weight @ token, dim=0)
        best = sorted(range(config.n_experts), key=lambda e: -probabilities[e].item())[: config.experts_per_token]
        total = sum(probabilities[e] for e in best)
        y = torch.zeros_like(token)
        for e in best:
            up = token @ mixture.up[e] + (mixture.up_bias[e] if config.feedforward_bias else 0)
            if config.activation == "swiglu":
                hidden = F.silu(token @ mixture.gate[e] + mixture.gate_bias[e]) * up
            else:
                hidden = ACTIVATIONS[config.activation + " by tanh" * config.gelu_tanh](up)
            down = hidden @ mixture.down[e] + (mixture.down_bias[e] if config.feedforward_bias else 0)
            y = y + probabilities[e] / total * down
        if config.shared_expert:
            y = y + mixture.shared(token[None, None], Pass(), 0)[0, 0]
        out.append(y)
    return torch.stack(out).view(x.shape)


@pytest.mark.parametrize("config", CHOICES.values(), ids=CHOICES.keys())
def test_grouped_equals_a_loop_over_tokens_gradients_too(config):
    mixture = filled(config)
    x = torch.randn(2, 9, config.d_model, generator=torch.Generator().manual_seed(1)).requires_grad_()
    weight = torch.randn(2, 9, config.d_model, generator=torch.Generator().manual_seed(2))
    grouped, _ = mixture(x, Pass(), 0)
    looped = token_by_token(mixture, x)
    assert torch.allclose(grouped, looped, atol=1e-5)
    wanted = [x, *mixture.parameters()]
    for mine, theirs in zip(
        torch.autograd.grad((grouped * weight).sum(), wanted), torch.autograd.grad((looped * weight).sum(), wanted)
    ):
        assert torch.allclose(mine, theirs, atol=1e-4)


@pytest.mark.parametrize("config", [MIXTURE.replace(d_model=16, d_expert=24), MIXTURE], ids=["grouped", "one by one"])
def test_mixed_precision_stays_close_and_gives_full_gradients(config):
    mixture = filled(config)
    x = torch.randn(2, 9, config.d_model, generator=torch.Generator().manual_seed(1)) * 0.3
    exact, _ = mixture(x, Pass(), 0)
    with torch.autocast("cpu", torch.bfloat16):
        rough, _ = mixture(x, Pass(), 0)
    rough.float().square().sum().backward()
    assert rough.dtype == torch.bfloat16
    assert (rough - exact).abs().max() < 0.05 * exact.abs().max()
    assert all(p.grad.dtype == torch.float32 and torch.isfinite(p.grad).all() for p in mixture.parameters())


def test_a_compiled_model_equals_the_plain_one():
    model = Transformer(MIXTURE)
    hide_experts(model)
    compiled = torch.compile(model, backend="eager", dynamic=False)  # the tracing alone, without a C++ compiler
    for seed in (0, 1):  # other routes, other shapes
        ids = torch.randint(0, 11, (2, 12), generator=torch.Generator().manual_seed(seed))
        gradients = []
        for forward in (model, compiled):
            output = forward(ids)
            loss = output.logits.square().mean() + output.balance_loss
            gradients.append(torch.autograd.grad(loss, list(model.parameters())))
        assert all(torch.allclose(mine, plain, atol=1e-6) for plain, mine in zip(*gradients))


def test_an_expert_nobody_visits_gets_a_zero_gradient():
    mixture = filled(MIXTURE)

    def avoid_expert_3(name, layer, x):
        if name == "router_logits":
            x = x.clone()
            x[..., 3] = -torch.inf
        return x

    x = torch.randn(1, 6, 8)
    out, routing = mixture(x, Pass(tap=avoid_expert_3), 0)
    out.sum().backward()
    assert 3 not in routing.experts
    assert mixture.up.grad[3].abs().max() == 0 and mixture.down.grad[3].abs().max() == 0


def test_switch_loss_is_one_when_even_and_a_selection_bias_moves_load_without_a_loss():
    def routing(probabilities: torch.Tensor, experts: torch.Tensor) -> LayerRouting:
        return LayerRouting(probabilities.log(), probabilities, experts, torch.ones(1, 5, 1))

    even = routing(torch.full((1, 5, 5), 0.2), torch.arange(5).view(1, 5, 1))
    assert balance_loss(even, "switch").item() == pytest.approx(1.0)
    uneven = torch.tensor([0.96, 0.01, 0.01, 0.01, 0.01]).expand(1, 5, 5)
    collapsed = routing(uneven, torch.zeros(1, 5, 1, dtype=torch.long))
    assert balance_loss(collapsed, "switch").item() == pytest.approx(4.8)
    assert balance_loss(collapsed, "constant").item() == pytest.approx(1.0)
    config = MIXTURE.replace(balance="bias", n_layers=2, init_std=0.5)
    model = Transformer(config, seed=1)
    ids = torch.randint(0, 11, (8, 12), generator=torch.Generator().manual_seed(0))
    output = model(ids)
    assert output.balance_loss == 0
    uneven = output.expert_load.std(dim=1)
    for _ in range(400):
        model.shift_selection(model(ids).expert_load, rate=2e-3)
    even = model(ids).expert_load.std(dim=1)
    assert (even < 0.5 * uneven).all()


@pytest.mark.parametrize("balance", BALANCES)
def test_the_first_expert_is_the_heaviest(balance):
    """However they were chosen: a bias moves who is visited, and who counts most stays the router's own."""
    model = Transformer(MIXTURE.replace(balance=balance, experts_per_token=3, init_std=0.5), seed=1)
    if balance == "bias":
        model.blocks[0].feedforward.selection_bias.copy_(torch.linspace(-0.3, 0.3, 5))
    seen = trace(model, torch.randint(0, 11, (4, 12), generator=torch.Generator().manual_seed(0)))
    weights = seen["expert_weights", 0]
    assert (weights.diff(dim=-1) <= 0).all()
    assert torch.allclose(weights, seen["router_logits", 0].gather(-1, seen["experts", 0]).softmax(-1))
    if balance == "bias":
        plain = seen["router_logits", 0].topk(3, dim=-1).indices
        assert (plain.sort().values != seen["experts", 0].sort().values).any()


def test_load_sums_to_one_active_parameters_are_visited_and_noise_needs_a_generator():
    ids = torch.zeros(1, 12, dtype=torch.long)
    output = Transformer(PRESETS["s5-moe"])(ids)
    assert torch.allclose(output.expert_load.sum(1), torch.ones(4))
    assert output.balance_loss.item() > 0
    dense = Transformer(PRESETS["s5"])(ids)
    assert dense.balance_loss is None and dense.expert_load is None
    moe, dense = PRESETS["s5-moe"], PRESETS["s5"]
    one_expert = 8 * 64**2 + 5 * 64
    assert moe.n_active_parameters == dense.n_parameters + 4 * (one_expert + 64 * 8)
    assert moe.n_parameters / dense.n_parameters == pytest.approx(5.51, abs=0.005)
    assert dense.n_active_parameters == dense.n_parameters
    model = Transformer(MIXTURE.replace(router_noise=5.0))
    ids = torch.randint(0, 11, (4, 12), generator=torch.Generator().manual_seed(0))
    assert torch.equal(model(ids).logits, model(ids).logits)
    noisy = model(ids, Pass(generator=torch.Generator().manual_seed(1)))
    assert not torch.equal(model(ids).expert_load, noisy.expert_load)


PADDED = MIXTURE.replace(n_layers=2, router_z_weight=0.1)
LENGTHS = (12, 5, 1)


def padded_batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Three texts of different lengths, padded with id 0, and their mask."""
    ids = torch.randint(1, 11, (3, 12), generator=torch.Generator().manual_seed(0))
    mask = torch.arange(12) < torch.tensor(LENGTHS)[:, None]
    return ids.where(mask, 0), mask


@pytest.mark.parametrize("kind", BALANCES)
def test_padding_is_not_routed_and_counts_nowhere(kind):
    """Load, balance loss and z-loss of a padded batch are those of its real tokens."""
    model, (ids, mask) = Transformer(PADDED.replace(balance=kind), seed=1), padded_batch()
    padded = model(ids, Pass(mask=mask))
    assert not torch.allclose(padded.expert_load, model(ids).expert_load)  # padding would be most of the rows
    alone = [model(row[None, :n]) for row, n in zip(ids, LENGTHS)]
    visits = sum(n * each.expert_load for n, each in zip(LENGTHS, alone))
    assert torch.allclose(padded.expert_load, visits / sum(LENGTHS))
    for layer, routing in enumerate(padded.routings):
        real = [each.routings[layer] for each in alone]
        probabilities = torch.cat([r.probabilities[0] for r in real]).mean(dim=0)
        z = torch.cat([r.logits[0] for r in real]).logsumexp(dim=-1).square().mean()
        assert torch.allclose(routing.mean_probability(), probabilities, atol=1e-6)
        assert torch.allclose(router_z_loss(routing), z, atol=1e-6)


@pytest.mark.parametrize("shared", [False, True])
def test_real_tokens_compute_the_same_beside_padding(shared):
    model, (ids, mask) = Transformer(PADDED.replace(shared_expert=shared), seed=1), padded_batch()
    padded = model(ids, Pass(mask=mask)).logits
    for row, (text, n) in enumerate(zip(ids, LENGTHS)):
        assert torch.allclose(padded[row, :n], model(text[None, :n]).logits[0], atol=1e-6)


def test_experts_get_no_gradient_from_padding_and_a_mask_of_all_tokens_changes_nothing():
    model, (ids, mask) = Transformer(PADDED, seed=1), padded_batch()
    gradients = []
    for pad in (0, 7):  # whatever the padding is
        model.zero_grad()
        output = model(ids.where(mask, pad), Pass(mask=mask))
        (output.logits[mask].square().mean() + output.balance_loss).backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    assert all(torch.allclose(a, b, atol=1e-7) for a, b in zip(*gradients))
    model, (ids, mask) = Transformer(PADDED, seed=1), padded_batch()
    assert torch.equal(model(ids, Pass(mask=torch.ones_like(mask))).logits, model(ids).logits)
