"""Experts: routing equals a loop over tokens, edits do what they say; balance and favourites equal a plain count."""

from math import comb

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from playground.inspection import favourites as s
from playground.inspection.balance import evenness, load_over_training
from playground.inspection.cost import effect, expert_costs
from playground.inspection.edits import ForceExpert, SwitchOffExperts, edits_tap
from playground.inspection.routing import routing_of
from playground.model import ModelConfig, Pass, Transformer, trace
from playground.model.moe import MixtureOfExperts
from playground.training import History, LoadMeasured
from playground.training.losses import window_losses
from playground.training.verdict import difference
from tests.model.configs import GPU

SMALL = ModelConfig(vocab_size=13, context_length=10, n_layers=3, d_model=16, n_heads=2, init_std=0.3)
MIXTURES = {
    "top 2 of 4": SMALL.replace(n_experts=4, d_expert=12),
    "top 1, every other layer": SMALL.replace(n_experts=3, experts_per_token=1, moe_every=2),
    "chosen with a bias": SMALL.replace(n_experts=5, experts_per_token=2, balance="bias"),
    "all experts": SMALL.replace(n_experts=3, experts_per_token=3),
}


def made(config: ModelConfig) -> tuple[Transformer, torch.Tensor]:
    model = Transformer(config, seed=4)
    if config.balance == "bias":
        for block in model.blocks:
            block.feedforward.selection_bias.copy_(torch.linspace(0.4, -0.4, config.n_experts))
    return model, torch.randint(13, (18, 10), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("config", MIXTURES.values(), ids=MIXTURES.keys())
@torch.no_grad()
def test_routing_equals_one_token_at_a_time(config):
    """Each router's input, times its weights, ranked by sorting: the same experts, weights, scores and load."""
    model, ids = made(config)
    ids = ids[:, :5]  # 18 windows, which pass in two goes
    routing = routing_of(model, ids)
    assert routing.layers == tuple(layer for layer in range(3) if config.has_experts(layer))
    K, visits = config.experts_per_token, {layer: [0] * config.n_experts for layer in routing.layers}
    for b, row in enumerate(ids):
        read = trace(model, row[None], names=["ff_in"])  # one window at a time
        for i, layer in enumerate(routing.layers):
            mixture = model.blocks[layer].feedforward
            for t in range(len(row)):
                scores = [sum(a * w for a, w in zip(read["ff_in", layer][0, t].tolist(), weights))
                          for weights in mixture.router.weight.tolist()]  # fmt: skip
                exps = [torch.tensor(score).exp().item() for score in scores]
                chances = [e / sum(exps) for e in exps]
                bias = mixture.selection_bias.tolist() if config.balance == "bias" else [0.0] * config.n_experts
                best = sorted(range(config.n_experts), key=lambda e: -(chances[e] + bias[e]))[:K]
                best.sort(key=lambda e: -chances[e])  # the bias decides who is chosen, the chances who counts most
                assert routing.experts[i, b, t].tolist() == best
                assert routing.weights[i, b, t].tolist() == pytest.approx(
                    [chances[e] / sum(chances[x] for x in best) for e in best], abs=1e-5
                )
                assert routing.dense_weights()[i, b, t].nonzero().flatten().tolist() == sorted(best)
                for e in best:
                    visits[layer][e] += 1
    for i, layer in enumerate(routing.layers):
        assert routing.load[i].tolist() == pytest.approx([v / (ids.numel() * K) for v in visits[layer]])


def rebuilt_without(model: Transformer, layer: int, expert: int) -> Transformer:
    """A model that never had this expert: its router's row and its matrices are cut out everywhere in that layer."""
    config = model.config
    assert config.n_moe_layers == 1
    smaller = Transformer(config.replace(n_experts=config.n_experts - 1))
    kept = [e for e in range(config.n_experts) if e != expert]
    state = model.state_dict()
    for name in smaller.state_dict():
        if ".feedforward." in name and state[name].shape[:1] == (config.n_experts,):
            state[name] = state[name][kept]
    smaller.load_state_dict(state)
    return smaller


@pytest.mark.parametrize("balance", ["switch", "bias"])
def test_switching_an_expert_off_equals_a_model_that_never_had_it(balance):
    config = SMALL.replace(n_experts=4, moe_every=3, balance=balance)
    model, ids = Transformer(config, seed=2), made(SMALL)[1]
    if balance == "bias":
        model.blocks[2].feedforward.selection_bias.copy_(torch.tensor([0.0, 0.9, 0.0, 0.1]))  # the bias wants expert 1
    edit = edits_tap([SwitchOffExperts(2, (1,))], model.config)
    assert 1 not in routing_of(model, ids, edit=edit).experts
    with torch.no_grad():
        assert torch.allclose(model(ids, Pass(tap=edit)).logits, rebuilt_without(model, 2, 1)(ids).logits, atol=1e-5)


@torch.no_grad()
def test_a_silenced_expert_equals_one_whose_last_matrix_is_zero():
    config = SMALL.replace(n_experts=4, feedforward_bias=False)
    model, ids = Transformer(config, seed=2), made(SMALL)[1]
    mute = Transformer(config, seed=2)
    mute.blocks[1].feedforward.down[3] = 0.0
    edited = model(ids, Pass(tap=edits_tap([SwitchOffExperts(1, (3,), replaced=False)], model.config))).logits
    assert torch.allclose(edited, mute(ids).logits, atol=1e-5)
    assert not torch.allclose(edited, model(ids).logits, atol=1e-3)


@torch.no_grad()
def test_a_forced_route_gives_that_experts_own_answer():
    model, ids = made(MIXTURES["top 2 of 4"])
    for positions in (None, (2, 5)):
        forced = edits_tap([ForceExpert(1, 3, positions)], model.config)
        seen = trace(model, ids[:2], edit=forced, names=["ff_in", "ff_out"])
        mixture: MixtureOfExperts = model.blocks[1].feedforward
        read = seen["ff_in", 1]
        own = F.gelu(read @ mixture.up[3] + mixture.up_bias[3]) @ mixture.down[3] + mixture.down_bias[3]
        usual, _ = mixture(read, Pass(tap=lambda name, layer, x: x), 1)
        for t in range(10):
            wanted = own if positions is None or t in positions else usual
            assert torch.allclose(seen["ff_out", 1][:, t], wanted[:, t], atol=1e-5)
    with pytest.raises(ValueError, match="10 tokens"):
        trace(model, ids[:2], edit=edits_tap([ForceExpert(1, 3, (10,))], model.config))


@torch.no_grad()
def test_the_costs_of_experts_are_what_they_are_called():
    model, ids = made(MIXTURES["top 2 of 4"])
    model, x, y = model.to(GPU), ids[:4, :-1], ids[:4, 1:].clone()
    y[3, 4:] = -100
    losses = [
        -torch.log_softmax(model(x[b : b + 1, : t + 1]).logits[0, -1], 0)[y[b, t]]
        for b in range(4) for t in range(9) if y[b, t] >= 0
    ]  # fmt: skip
    assert window_losses(model, x, y).mean == pytest.approx(float(torch.stack(losses).mean()), abs=1e-4)
    found = expert_costs(model, x, y)
    assert found.costs.shape == found.margins.shape == (3, 4)
    without = window_losses(model, x, y, tap=edits_tap([SwitchOffExperts(1, (2,))], model.config))
    apart, margin = difference(window_losses(model, x, y), without)
    assert found.costs[1, 2].item() == pytest.approx(apart, abs=1e-6)
    assert found.margins[1, 2].item() == pytest.approx(margin, abs=1e-6) and margin > 0


def test_impossible_edits_are_refused_in_words():
    model, ids = made(MIXTURES["top 2 of 4"])
    with pytest.raises(ValueError, match="at most 2"):
        edits_tap([SwitchOffExperts(0, (0, 1, 2))], model.config)
    with pytest.raises(ValueError, match="no expert 4"):
        edits_tap([ForceExpert(0, 4)], model.config)
    with pytest.raises(ValueError, match="Layer 3"):
        edits_tap([SwitchOffExperts(3, (0,), replaced=False)], model.config)
    with pytest.raises(ValueError, match="dense model"):
        edits_tap([SwitchOffExperts(0, (0,))], SMALL)
    with pytest.raises(ValueError, match=r"prompt.*empty"):
        effect(model, ids[:0], edits_tap([SwitchOffExperts(0, (0,))], model.config))


def test_evenness_of_known_loads_and_of_those_that_a_history_holds():
    even = evenness([0.25] * 4)
    assert (even.entropy, even.most, even.dead) == (2.0, 2.0, ())
    collapsed = evenness([0.0, 1.0, 0.0, 0.0])
    assert (collapsed.entropy, collapsed.busiest_share, collapsed.dead) == (0.0, 1.0, (0, 2, 3))
    shares = np.array([0.5, 0.3, 0.199, 0.001])
    some = evenness(shares)
    assert some.entropy == pytest.approx(-(shares * np.log2(shares)).sum())
    assert some.dead == (3,)
    history, rng = History(), np.random.default_rng(0)
    tables = rng.dirichlet(np.ones(4), (3, 2))
    for step, table in zip((10, 20, 30), tables):
        history.add(LoadMeasured(step, 0.0, table.tolist()))
    steps, load = load_over_training(history.load, 2, 4)
    assert steps == (10, 20, 30) and torch.equal(load, torch.tensor(tables))
    entropies = [[evenness(layer.tolist()).entropy for layer in moment] for moment in load]
    assert entropies == pytest.approx(-(tables * np.log2(tables)).sum(-1))
    damaged = [*history.load, {"step": 40, "load": "x"}, {"step": 50, "load": [[1.0]]}]
    assert load_over_training(damaged, 2, 4)[0] == (10, 20, 30)
    assert load_over_training([], 2, 4) is None


def test_favourites_equal_a_count_over_all_tokens():
    rng = np.random.default_rng(4)
    tokens = rng.integers(0, 9, 600)
    experts = np.stack([rng.integers(0, 4, 600), rng.integers(4, 8, 600)], axis=1)
    experts[tokens == 3, 0] = 2  # expert 2 likes token 3
    found = s.favourites(experts, tokens, 9)
    assert [lift.token for lift in found[2]] == [3] and found[8] == []
    (liked,) = found[2]
    own = [row for t, row in zip(tokens, experts) if t == 3]
    assert liked.count == liked.taken == len(own)
    assert liked.lift == pytest.approx(1 / (experts == 2).any(axis=1).mean())
    visits = [int((experts == expert).any(axis=1).sum()) for expert in range(9)]
    assert s.own_kind(found, visits) is None, "expert 2 takes most other tokens too"
    assert s.own_kind(found, [*visits[:2], len(own), *visits[3:]]) == (2, [liked])


def test_luck_has_no_favourites_and_neither_has_an_expert_that_takes_all():
    """Of forty texts on which experts are drawn, at most one in twenty has any favourite at all."""
    rng, texts = np.random.default_rng(0), 40
    named = 0
    for _ in range(texts):
        tokens = rng.choice(30, 3072, p=np.arange(1, 31) / 465)
        experts = rng.choice(8, 3072, p=[0.001, 0.199, *[0.8 / 6] * 6])
        experts = np.stack([experts, np.full(3072, 8)], axis=1)  # expert 8 takes every token
        named += any(s.favourites(experts, tokens, 9))
    assert named <= texts / 20 + 1
    exact = sum(comb(20, k) * 0.3**k * 0.7 ** (20 - k) for k in range(11, 21))
    assert s._tail(11, 20, 0.3) == pytest.approx(exact, abs=1e-12)


def test_random_weights_are_unclear_and_a_router_that_sorts_by_token_is_clear():
    """Of forty random routers, at most one in ten is said to have learned to sort tokens."""
    config = ModelConfig(vocab_size=12, context_length=32, n_layers=1, d_model=8, n_heads=1, n_experts=4, d_expert=8)
    ids = torch.randint(0, 12, (8, 32), generator=torch.Generator().manual_seed(0))
    clear = 0
    for seed in range(40):
        model = Transformer(config, seed=seed)
        clear += s.sorting(model, ids, 0, routing_of(model, ids).experts[0, ..., 0].flatten().numpy()).is_clear
    assert clear <= 4
    first = (ids.flatten() % 4).numpy()
    by_token = s.sorting(model, ids, 0, first)
    assert by_token.is_clear and by_token.learned == 1 - np.bincount(first).max() / len(first)
