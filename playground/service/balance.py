"""Balance: one small mixture trained with and without what keeps its experts in use, in turns, as a visitor's job.

`balance_runs` is the iterator, `BalanceJob` its thread; what a page shows of it is a `BalanceView`.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from ..data import Corpus, corpus_from_language
from ..inspection.balance import evenness
from ..model import PRESETS, ModelConfig, Transformer
from ..processes import threads_for
from ..training import Evaluated, LoadMeasured, TrainConfig, train
from .job import Job
from .limits import BALANCE_SECONDS, BALANCE_STEPS, Limits
from .models import Registry
from .views import View

MODEL = PRESETS["tiny"].replace(context_length=64, n_experts=8, d_expert=64)
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
    dead: list[int] = field(default_factory=list)
    """Experts of all layers that got next to nothing."""
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
                    run.dead.append(sum(len(layer.dead) for layer in layers))
                elif isinstance(event, Evaluated):
                    runs[name].loss_steps.append(event.step)
                    runs[name].losses.append(event.val_loss)
                    break  # the next one's turn
            else:
                del going[name]
        yield runs


def planned(experts_per_token: Any, n_steps: Any) -> tuple[Corpus, ModelConfig, TrainConfig]:
    """What the three runs share. Raises ValueError for what a page could not have sent."""
    for name, value in (("experts per token", experts_per_token), ("steps", n_steps)):
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value != int(value):
            raise ValueError(f"{name} must be a whole number, not {value!r}")
    if not 1 <= n_steps <= BALANCE_STEPS:
        raise ValueError(f"Between 1 and {BALANCE_STEPS} steps can be trained here, not {n_steps}")
    corpus = _corpus()
    config = MODEL.replace(vocab_size=corpus.vocab_size, experts_per_token=int(experts_per_token))
    every = max(int(n_steps) // 16, 5)
    training = TrainConfig(
        steps=int(n_steps),
        batch_size=16,
        eval_every=every,
        eval_windows=16,
        max_seconds=BALANCE_SECONDS,
        seed=1,
        # what the constant adds is rounding: bf16 would make it visible at once, and Muon, which makes the small
        # directions of a gradient as long as the others, within a hundred steps
        optimizer="adamw",
        precision="fp32",
    )
    return corpus, config, training


@lru_cache(maxsize=1)
def _corpus() -> Corpus:
    return corpus_from_language("dialects", n_characters=400_000, n_validation=20_000, unit="word")


# ---- the job ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BalanceView(View):
    """What there is to show of the three runs."""

    runs: dict[str, BalanceRun] = field(default_factory=dict)
    config: ModelConfig = MODEL
    planned_steps: int = 0


class BalanceJob(Job):
    """The three runs: their thread, and their curves so far. They leave no models behind."""

    kind = "balance run"
    keeps_models = False

    def __init__(
        self,
        job_id: str,
        visitor: str,
        name: str,
        plan: tuple[Corpus, ModelConfig, TrainConfig],
        limits: Limits,
        registry: Registry,
    ):
        super().__init__(job_id, visitor, name, registry.data.folder_of(job_id))
        self.corpus, self.config, self.training = plan
        self.limits = limits
        self._runs: dict[str, BalanceRun] = {name: BalanceRun() for name in KINDS}

    @property
    def has_result(self) -> bool:
        """Whether there are points to show."""
        return any(run.losses for run in self._runs.values())

    @property
    def time_left(self) -> float | None:
        """See `Job.time_left`."""
        done = min((run.loss_steps[-1] for run in self._runs.values() if run.loss_steps), default=0)
        if self._state != "training" or not done:
            return None
        return (time.monotonic() - self.began) * (self.training.steps / done - 1)

    def expected(self, seconds: Callable[..., float]) -> float:
        """See `Job.expected`."""
        return min(len(KINDS) * seconds(self.config, self.training), len(KINDS) * BALANCE_SECONDS)

    def noted(self) -> dict[str, Any]:
        """See `Job.noted`."""
        with self._lock:
            return {
                "experts_per_token": self.config.experts_per_token,
                "steps": self.training.steps,
                "runs": {name: asdict(run) for name, run in self._runs.items()},
                "message": self._message,
            }

    @classmethod
    def found(cls, row: Mapping[str, Any], noted: Mapping[str, Any], limits: Limits, registry: Registry) -> BalanceJob:
        """The balance runs of a row of the index, with what was noted of them, when the server comes up again.

        They take a minute: those that were at work when the server ended begin anew.
        """
        plan = planned(noted["experts_per_token"], noted["steps"])
        job = cls(row["id"], row["visitor"], row["name"], plan, limits, registry)
        if row["state"] == "over":
            job._runs = {name: BalanceRun(**run) for name, run in noted["runs"].items()}
            job._state, job._message = "finished" if job.has_result else "failed", noted["message"]
        return job

    def start(self) -> None:
        """Begin in a thread of its own."""
        with self._lock:
            self._runs = {name: BalanceRun() for name in KINDS}

        def events(should_stop: Callable[[], bool]) -> Iterator[dict[str, BalanceRun] | None]:
            with threads_for(self.config.numbers_in_step(self.training.batch_size)):
                yield from balance_runs(self.config, self.corpus, self.training, should_stop)
            yield None

        def take(runs: dict[str, BalanceRun] | None) -> None:
            with self._lock:
                if runs is None:
                    done = min((run.steps[-1] for run in self._runs.values() if run.steps), default=0)
                    self._state = "finished"
                    whole = done >= self.training.steps
                    self._message = (
                        f"All {done:,} steps of the three are done." if whole else f"Stopped after {done:,} steps."
                    )
                else:
                    self._runs = copy.deepcopy(runs)
                    if self._state == "preparing":
                        self._state, self._message = "training", ""
                self._version += 1

        self.begin("The first steps are being made …", events, take)

    def view(self) -> BalanceView:
        """A consistent copy of what is known."""
        with self._lock:
            return BalanceView(
                **self.seen_as(),
                runs=copy.deepcopy(self._runs),
                config=self.config,
                planned_steps=self.training.steps,
            )
