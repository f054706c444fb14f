"""TrainConfig: how a model is trained, validated before anything is allocated."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from ..devices import PRECISIONS

OPTIMIZERS = ("adamw", "muon")
SCHEDULES = ("cosine", "linear", "constant")


@dataclass(frozen=True)
class TrainConfig:
    """One training run. Frozen and validated; make variants with `replace`."""

    steps: int = 1000
    """Optimizer steps."""
    batch_size: int = 16
    """Windows per forward pass."""
    accumulation: int = 1
    """Forward passes per optimizer step; their gradients are averaged."""
    optimizer: str = "muon"
    """muon (orthogonalised momentum for the matrices, AdamW for the rest) or adamw (for everything)."""
    learning_rate: float = 3e-3
    """Peak rate of AdamW."""
    muon_learning_rate: float = 0.02
    """Peak rate of Muon, in spectral norm per step."""
    muon_momentum: float = 0.95
    """Muon's memory of the gradient; short runs gain from a shorter one."""
    schedule: str = "linear"
    """After the warm-up: linear or cosine down to `final_fraction`, or constant."""
    warmup_steps: int = 20
    """Steps over which the rate rises from zero."""
    final_fraction: float = 0.0
    """Last rate as a fraction of the peak."""
    weight_decay: float = 0.1
    """Decoupled decay of matrices and embeddings; norms and biases are left alone."""
    beta1: float = 0.9
    """AdamW's memory of the gradient."""
    beta2: float = 0.99
    """AdamW's memory of its square."""
    gradient_clip: float = 1.0
    """Largest length of the whole gradient; 0 switches clipping off."""
    precision: str = "auto"
    """auto, fp32, bf16 or fp16 for matrix products."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""
    compile: bool = False
    """Let torch.compile write kernels first: 15 s and more before the first step, faster steps after."""
    seed: int = 0
    """Of the batches and of dropout. The model has its own."""
    eval_every: int = 100
    """Steps between evaluations; 0 evaluates only at the end."""
    eval_windows: int | None = 128
    """Fixed windows per split that an evaluation scores; None scores the whole split."""
    sample_every: int = 0
    """Steps between samples; 0 for none."""
    sample_prompt: str = ""
    """What the samples continue."""
    sample_tokens: int = 120
    """Tokens per sample."""
    sample_temperature: float = 0.8
    """How adventurous the samples are."""
    snapshots: int = 0
    """How many times the weights are kept along the way, densely at first."""
    autosave_seconds: float = 10.0
    """Seconds between saves, where a folder for them is given."""
    max_seconds: float | None = None
    """Stop after this many seconds of training, keeping what was learned."""

    def __post_init__(self) -> None:
        for name, least in (
            ("steps", 1),
            ("batch_size", 1),
            ("accumulation", 1),
            ("warmup_steps", 0),
            ("eval_every", 0),
            ("sample_every", 0),
            ("sample_tokens", 1),
            ("snapshots", 0),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if self.eval_windows is not None and (not isinstance(self.eval_windows, int) or self.eval_windows < 1):
            raise ValueError(f"eval_windows must be a whole number of at least 1, not {self.eval_windows!r}")
        for name, least, most in (
            ("learning_rate", 0.0, 10.0),
            ("muon_learning_rate", 0.0, 10.0),
            ("muon_momentum", 0.0, 0.9999),
            ("final_fraction", 0.0, 1.0),
            ("weight_decay", 0.0, 10.0),
            ("beta1", 0.0, 0.9999),
            ("beta2", 0.0, 0.9999),
            ("gradient_clip", 0.0, math.inf),
            ("sample_temperature", 0.0, 100.0),
            ("autosave_seconds", 0.0, math.inf),
        ):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not least <= value <= most:
                raise ValueError(f"{name} must be a number from {least:g} to {most:g}, not {value!r}")
        for name, allowed in (("optimizer", OPTIMIZERS), ("schedule", SCHEDULES), ("precision", PRECISIONS)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(allowed)}")

    def rate_at(self, step: int) -> float:
        """Factor (0 … 1) on the peak learning rates for the update that makes step number `step` (from 1)."""
        if step <= self.warmup_steps:
            return step / max(self.warmup_steps, 1)
        progress = (step - self.warmup_steps) / max(self.steps - self.warmup_steps, 1)
        if self.schedule == "constant":
            return 1.0
        fall = 1.0 - progress if self.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * progress))
        return self.final_fraction + (1.0 - self.final_fraction) * max(fall, 0.0)

    def snapshot_steps(self) -> list[int]:
        """Steps after which the weights are kept: 0, then ever further apart, to the last."""
        if self.snapshots == 0:
            return []
        if self.snapshots == 1:
            return [self.steps]
        spread = (i / (self.snapshots - 1) for i in range(self.snapshots))
        return sorted({round(self.steps * x * x) for x in spread})

    def replace(self, **changes: Any) -> TrainConfig:
        """A copy with some fields changed, validated again. Unknown names raise ValueError."""
        _check_names(changes)
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainConfig:
        """The inverse of `to_dict`; missing fields take their defaults, unknown ones raise ValueError."""
        _check_names(values)
        return cls(**values)


def _check_names(values: dict[str, Any]) -> None:
    unknown = sorted(set(values) - {field.name for field in dataclasses.fields(TrainConfig)})
    if unknown:
        raise ValueError(f"training has no setting called {', '.join(map(repr, unknown))}")
