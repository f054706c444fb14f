"""TrainEvents: what happened in a training run, as small frozen records. Everything that displays a run reads them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import torch


@dataclass(frozen=True)
class TrainEvent:
    """Base of all events. `seconds` is wall time of the run, earlier parts included, its reader's own time not."""

    event: ClassVar[str]

    step: int
    """Optimizer steps done."""
    seconds: float
    """Wall time spent in the run since the start."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with the event's name first and without weights, which JSON cannot represent."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "state"}
        return {"event": self.event, **values}


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
class SettingsChanged(TrainEvent):
    """A run that was saved continues with other settings."""

    event: ClassVar[str] = "changed"
    settings: dict[str, list]
    """Name → [before, from here on]."""


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
    """Over the steps of the last second, or the last step if it took longer; evaluations are not counted."""
    time_left: float
    """Estimated seconds to the last step."""


@dataclass(frozen=True)
class Evaluated(TrainEvent):
    """The losses on fixed training and validation windows were measured."""

    event: ClassVar[str] = "evaluated"
    train_loss: float
    val_loss: float


@dataclass(frozen=True)
class BestKept(TrainEvent):
    """The best weights so far were kept, because an evaluation was worse than an earlier one, perhaps before a resume.
    They are the best as long as `History.best` names the same step."""

    event: ClassVar[str] = "best"
    best_step: int
    """Optimizer steps after which the validation loss was lowest."""
    val_loss: float
    state: dict[str, torch.Tensor] = dataclasses.field(repr=False)
    """The weights at that step, on the CPU, in full precision."""


@dataclass(frozen=True)
class GradientsMeasured(TrainEvent):
    """Length of the gradient per part of the model, before clipping."""

    event: ClassVar[str] = "gradients"
    norms: dict[str, float]


@dataclass(frozen=True)
class LoadMeasured(TrainEvent):
    """The share of token visits that each expert got in the last step, per MoE layer."""

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
class SkillMeasured(TrainEvent):
    """The model's text was judged by its language's grammar."""

    event: ClassVar[str] = "judged"
    right: int
    """Sums, stories or lines without a mistake."""
    of: int
    """How many were judged; 0 if the text has no grammar."""


@dataclass(frozen=True)
class Snapshotted(TrainEvent):
    """A copy of the weights, half precision, on the CPU."""

    event: ClassVar[str] = "snapshotted"
    state: dict[str, torch.Tensor] = dataclasses.field(repr=False)


@dataclass(frozen=True)
class Saved(TrainEvent):
    """Everything needed to resume was written to disk."""

    event: ClassVar[str] = "saved"
    path: str


DEVICE_FAULT, NOT_COMPILED, NO_GPU = "device fault", "not compiled", "no gpu"
OTHER_MACHINE, NOT_SAVED = "other machine", "not saved"


@dataclass(frozen=True)
class Noticed(TrainEvent):
    """Something a person should know."""

    event: ClassVar[str] = "noticed"
    kind: str
    """DEVICE_FAULT, NOT_COMPILED, NO_GPU, OTHER_MACHINE or NOT_SAVED."""
    facts: dict[str, Any]
    """In the order of these kinds: the fields of a `proof.Fault`; `error`; nothing; `before` and `now` (see
    `autosave.machine_of`) and `settings` (name → before, now); `error`."""


@dataclass(frozen=True)
class Finished(TrainEvent):
    """The run is over; the model holds what was learned."""

    event: ClassVar[str] = "finished"
    reason: str
    """done, stopped, time, risen (validation, for too long) or diverged."""
    steps: int
    """Steps planned in all."""
    val_loss: float | None
    """The validation loss of the model's weights if they were evaluated, else the last one."""
    weights_step: int | None = None
    """If divergence spoiled the weights: the step of the last good ones, which the model holds again."""
