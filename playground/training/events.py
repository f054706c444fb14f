"""TrainEvents: what happened in a training run, as small frozen records. Everything that shows a run reads these."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch


@dataclass(frozen=True)
class TrainEvent:
    """Base of all events. `seconds` is wall time of the run, resumed parts included, its reader's own time left out."""

    event: ClassVar[str]

    step: int
    """Optimizer steps done."""
    seconds: float
    """Wall time spent in the run since the start."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with the event's name first."""
        return {"event": self.event, **dataclasses.asdict(self)}


@dataclass(frozen=True)
class Started(TrainEvent):
    """The run is about to make its first step (or its first after a resume)."""

    event: ClassVar[str] = "started"
    steps: int
    n_parameters: int
    tokens_per_step: int
    device: str
    precision: str
    compiled: bool


@dataclass(frozen=True)
class Changed(TrainEvent):
    """A run that was saved goes on with other settings."""

    event: ClassVar[str] = "changed"
    settings: dict[str, tuple[Any, Any]]
    """Name → (before, from here on)."""

    @property
    def message(self) -> str:
        """The same in a sentence."""
        return changed_in_words(self.step, self.settings)


@dataclass(frozen=True)
class Stepped(TrainEvent):
    """One optimizer step is done."""

    event: ClassVar[str] = "stepped"
    loss: float
    """Mean loss of the step's own batch before the update, in nats per token."""
    learning_rate: float
    gradient_norm: float
    """Length of the whole gradient before clipping."""
    tokens_per_second: float
    """Over the steps of the last second, at least the last step; evaluations are not counted."""
    time_left: float
    """Estimated seconds to the last step."""


@dataclass(frozen=True)
class Evaluated(TrainEvent):
    """The fixed windows of both splits were scored."""

    event: ClassVar[str] = "evaluated"
    train_loss: float
    val_loss: float


@dataclass(frozen=True)
class BestKept(TrainEvent):
    """An evaluation came out worse than an earlier one, or a run goes on that has a better moment behind it: the
    weights of that moment are kept. They are the best for as long as `History.best` names the same step."""

    event: ClassVar[str] = "best"
    best_step: int
    """Optimizer steps after which the validation loss was lowest."""
    val_loss: float
    state: dict[str, torch.Tensor] = dataclasses.field(repr=False)
    """The weights of then, on the CPU, in full precision."""

    def to_dict(self) -> dict[str, Any]:
        """Without the weights, which are no matter for JSON."""
        named = {"best_step": self.best_step, "val_loss": self.val_loss}
        return {"event": self.event, "step": self.step, "seconds": self.seconds, **named}


@dataclass(frozen=True)
class GradientsMeasured(TrainEvent):
    """Length of the gradient per part of the model, before clipping."""

    event: ClassVar[str] = "gradients"
    norms: dict[str, float]


@dataclass(frozen=True)
class LoadMeasured(TrainEvent):
    """Share of visits each expert got in the last step, per mixture layer."""

    event: ClassVar[str] = "load"
    load: list[list[float]]


@dataclass(frozen=True)
class Sampled(TrainEvent):
    """The model continued the prompt."""

    event: ClassVar[str] = "sampled"
    prompt: str
    text: str
    """The continuation without the prompt."""


@dataclass(frozen=True)
class Judged(TrainEvent):
    """What the model writes was judged by its language's grammar, and its losses by what is left to learn."""

    event: ClassVar[str] = "judged"
    right: int
    """Sums, stories or lines without a mistake."""
    of: int
    """How many were judged; 0 where there is no grammar to judge by."""
    left: list[dict[str, Any]]
    """What carries the loss that is left, as records of `ExcessLoss.to_dict`; empty where that is not known yet."""


@dataclass(frozen=True)
class Snapshotted(TrainEvent):
    """A copy of the weights, half precision, on the CPU."""

    event: ClassVar[str] = "snapshotted"
    state: dict[str, torch.Tensor] = dataclasses.field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Without the weights, which are no matter for JSON."""
        return {"event": self.event, "step": self.step, "seconds": self.seconds}


@dataclass(frozen=True)
class Saved(TrainEvent):
    """Everything needed to resume was written to disk."""

    event: ClassVar[str] = "saved"
    path: str


@dataclass(frozen=True)
class Noticed(TrainEvent):
    """Something a person should know, in a sentence."""

    event: ClassVar[str] = "noticed"
    message: str


@dataclass(frozen=True)
class Finished(TrainEvent):
    """The run is over; the model holds what was learned."""

    event: ClassVar[str] = "finished"
    reason: str
    """done, stopped, time, risen (validation, for too long), diverged, or lost (another process of several)."""
    message: str
    val_loss: float | None
    """Of the model's weights, where they were evaluated, else the last one."""
    weights_step: int | None = None
    """Where a divergence spoiled the weights: the step of the last good ones, which the model holds again."""


def ended_in_words(reason: str, step: int, steps: int, processes: int) -> str:
    """How a run of so many planned steps ended after `step` of them."""
    done, kept = f"after {step:,} of {in_steps(steps)}", "what was learned is kept"
    return {
        "done": "The one step is done." if step == 1 else f"All {step:,} steps are done.",
        "stopped": f"Stopped {done}; {kept}.",
        "time": f"Time is up {done}; {kept}.",
        "risen": f"Stopped {done}, since validation had risen for long enough; the best weights are kept, too.",
        "diverged": (
            f"The loss stopped being a number after {in_steps(step)}. The last good weights are back: "
            "try a lower learning rate, a longer warm-up or gradient clipping."
        ),
        "lost": f"One of the {processes} processes of this run was lost {done}; {kept}.",
    }[reason]


def in_steps(n: int) -> str:
    """As "1 step" or "1,000 steps"."""
    return f"{n:,} step{'s' * (n != 1)}"


def changed_in_words(step: int, settings: Mapping[str, Sequence[Any]]) -> str:
    """At which step which settings were changed: name → (before, after)."""
    words = [f"{name} from {_said(before)} to {_said(after)}" for name, (before, after) in settings.items()]
    return f"Changed after step {step:,}: {', '.join(words)}."


def _said(value: Any) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return "none" if value is None else f"{value:,}" if whole else repr(value)
