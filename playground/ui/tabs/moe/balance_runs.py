"""Balance runs: one small mixture trained with and without what keeps its experts in use, in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ....data import Corpus
from ....inspection.balance import evenness
from ....model import ModelConfig, Transformer
from ....training import Evaluated, LoadMeasured, TrainConfig, train

KINDS = {
    "Switch loss": {"balance": "switch", "balance_weight": 0.01},
    "no loss (weight 0)": {"balance": "switch", "balance_weight": 0.0},
    "the constant": {"balance": "constant", "balance_weight": 0.01},
}
"""Name → what differs from the shared config."""


@dataclass
class BalanceRun:
    """The curves of one of the runs so far."""

    steps: list[int] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    """Of the load in bits, mean over layers."""
    dead: int = 0
    """Experts of all layers that got next to nothing in the last measured step."""
    loss_steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    """On the validation windows."""


def balance_runs(
    config: ModelConfig,
    corpus: Corpus,
    training: TrainConfig,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[dict[str, BalanceRun]]:
    """Train one model per kind, from equal first weights on equal batches; yields all curves after every measurement.

    The runs take turns, so that their curves grow together. Raises ValueError where config and corpus do not fit.
    """
    runs = {name: BalanceRun() for name in KINDS}
    events = {
        name: train(
            Transformer(config.replace(**changes), seed=training.seed), corpus, training, should_stop=should_stop
        )
        for name, changes in KINDS.items()
    }
    going = dict(events)
    while going:
        for name in list(going):
            for event in going[name]:
                if isinstance(event, LoadMeasured):
                    layers = [evenness(load) for load in event.load]
                    run = runs[name]
                    run.steps.append(event.step)
                    run.entropy.append(sum(layer.entropy for layer in layers) / len(layers))
                    run.dead = sum(len(layer.dead) for layer in layers)
                elif isinstance(event, Evaluated):
                    runs[name].loss_steps.append(event.step)
                    runs[name].losses.append(event.val_loss)
                    break  # the next one's turn
            else:
                del going[name]
        yield runs
