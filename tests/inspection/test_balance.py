"""Balance: entropies against NumPy, loads against the record of a run."""

import numpy as np
import pytest
import torch

from playground.inspection.balance import evenness, load_over_training
from playground.training import History, LoadMeasured


def test_evenness_of_known_loads_and_of_those_that_a_history_holds():
    even = evenness([0.25] * 4)
    assert (even.entropy, even.most, even.dead) == (2.0, 2.0, ())
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
