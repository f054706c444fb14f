"""Balance: entropies against NumPy, gradients on the routers against small steps taken by hand."""

import numpy as np
import pytest
import torch

from playground.data.baselines import IGNORE
from playground.inspection.balance import evenness, load_over_training, pulls_on_routers
from playground.model import ModelConfig, Pass, Transformer
from playground.training import History, LoadMeasured

MIXTURE = ModelConfig(vocab_size=13, context_length=10, n_layers=2, d_model=16, n_heads=2, init_std=0.3, n_experts=4)


def test_evenness_of_known_loads_and_of_those_that_a_history_holds():
    even = evenness([0.25] * 4)
    assert (even.entropy, even.most, even.dead, even.effective) == (2.0, 2.0, (), 4.0)
    collapsed = evenness([0.0, 1.0, 0.0, 0.0])
    assert (collapsed.entropy, collapsed.busiest, collapsed.busiest_share, collapsed.dead) == (0.0, 1, 1.0, (0, 2, 3))
    shares = np.array([0.5, 0.3, 0.199, 0.001])
    some = evenness(shares)
    assert some.entropy == pytest.approx(-(shares * np.log2(shares)).sum())
    assert some.dead == (3,) and some.busiest == 0
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


def test_gradients_on_the_routers_equal_small_steps():
    """Each term, moved by ±h along its own gradient in double precision, changes as the gradient's length says."""
    model = Transformer(MIXTURE.replace(d_model=8, n_experts=3), seed=3).double()
    ids = torch.randint(13, (4, 10), generator=torch.Generator().manual_seed(0))
    x, y = ids[:, :-1], ids[:, 1:]
    pulls = pulls_on_routers(model, x, y)

    def terms() -> dict[str, float]:
        with torch.no_grad():
            seen = {}
            logits = model(x, Pass(tap=lambda name, layer, v: seen.setdefault((name, layer), v))).logits
            loss = -logits.log_softmax(-1).gather(-1, y[..., None]).mean().item()
            switch = 0.0
            for layer in range(2):
                probabilities = seen["router_probabilities", layer].flatten(0, 1).mean(0)
                visited = (
                    np.bincount(seen["experts", layer].flatten().numpy(), minlength=3) / seen["experts", layer].numel()
                )
                switch += 3 * sum(p * f for p, f in zip(probabilities.tolist(), visited)) / 2
            return {"loss": loss, "switch": switch}

    assert pulls["loss"].value == pytest.approx(terms()["loss"])
    assert pulls["switch"].value == pytest.approx(terms()["switch"])
    for layer in range(2):
        weight = model.blocks[layer].feedforward.router.weight
        slopes = {"loss": 0.0, "switch": 0.0}
        for i in range(weight.numel()):  # every single weight of the router
            stored = weight.data.flatten()[i].item()
            values = []
            for sign in (1, -1):
                weight.data.view(-1)[i] = stored + sign * 1e-6
                values.append(terms())
            weight.data.view(-1)[i] = stored
            for name in slopes:
                slopes[name] += ((values[0][name] - values[1][name]) / 2e-6) ** 2
        for name, squares in slopes.items():
            assert pulls[name].gradient_norms[layer] == pytest.approx(squares**0.5, rel=1e-4)


def test_the_constant_loss_and_padding_pull_at_nothing_and_a_dense_model_has_no_pulls():
    model = Transformer(MIXTURE, seed=3)
    ids = torch.randint(13, (4, 10), generator=torch.Generator().manual_seed(0))
    pulls = pulls_on_routers(model, ids[:, :-1], ids[:, 1:])
    assert pulls["constant"].value == pytest.approx(1.0)
    assert max(pulls["constant"].gradient_norms) < 1e-6 < 1e-3 < min(pulls["switch"].gradient_norms)
    assert all(p.grad is None for p in model.parameters())
    with pytest.raises(ValueError, match="dense model"):
        pulls_on_routers(Transformer(MIXTURE.replace(n_experts=0)), torch.zeros(1, 3).long(), torch.zeros(1, 3).long())
    # Short texts, padded, ask the same of the routers as they do without their padding.
    model = Transformer(MIXTURE, seed=3)
    ids = torch.randint(13, (3, 5), generator=torch.Generator().manual_seed(0))
    padded, targets = torch.zeros(3, 9, dtype=torch.long), torch.full((3, 9), IGNORE)
    padded[:, :5], targets[:, :4] = ids, ids[:, 1:]
    alone = torch.cat((ids[:, 1:], torch.full((3, 1), IGNORE)), dim=1)
    expected, found = pulls_on_routers(model, ids, alone), pulls_on_routers(model, padded, targets)
    for name in expected:
        assert found[name].value == pytest.approx(expected[name].value, abs=1e-6)
        assert found[name].gradient_norms == pytest.approx(expected[name].gradient_norms, abs=1e-6)
