"""TrainConfig: how a model is trained, validated before anything is allocated."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..checks import Bounds, Settings, check_fields
from ..devices import PRECISIONS

OPTIMIZERS = ("adamw", "muon")
SCHEDULES = ("cosine", "linear", "constant")

_LIMITS = {
    **dict.fromkeys(("batch_size", "accumulation", "eval_windows", "sample_tokens"), Bounds(least=1)),
    **dict.fromkeys(("steps", "warmup_steps", "eval_every", "sample_every", "seed"), Bounds(least=0)),
    "snapshots": Bounds(0, 10_000),
    "patience": Bounds(least=0),
    **dict.fromkeys(("learning_rate", "muon_learning_rate", "weight_decay"), Bounds(0, 10)),
    **dict.fromkeys(("muon_momentum", "beta1", "beta2"), Bounds(0, 0.9999)),
    **dict.fromkeys(("gradient_clip", "autosave_seconds", "max_seconds"), Bounds(least=0)),
    "final_fraction": Bounds(0, 1),
    "sample_temperature": Bounds(0, 100),
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
    "precision": PRECISIONS,
}


@dataclass(frozen=True)
class TrainConfig(Settings):
    """One training run. Frozen and validated; make variants with `replace`."""

    OF = "training"

    steps: int = 1000
    """Optimizer steps."""
    batch_size: int = 16
    """Windows per forward pass."""
    accumulation: int = 1
    """Forward passes per optimizer step; their gradient is that of one large batch. Only the loss that balances experts
    (switch) is computed for each pass by itself."""
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
    """Steps over which the rate rises from zero; in a shorter run it rises to the last step."""
    final_fraction: float = 0.0
    """Where the rate falls to, as a fraction of the peak. It would get there one step after the last, so that no step
    is wasted."""
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
    """Draws the batches and dropout. The model has its own seed."""
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
    """How many times the weights are kept along the way, at first more often."""
    autosave_seconds: float = 10.0
    """Seconds between saves, if a folder for them is given."""
    patience: int = 0
    """Stop once this many evaluations in a row say that validation rises while training falls; 0 for never. See
    `states.risen_for`."""
    max_seconds: float | None = None
    """Stop after this many seconds of training, keeping what was learned."""

    def __post_init__(self) -> None:
        check_fields(self, _LIMITS)

    def rate_at(self, step: int) -> float:
        """Factor (0 … 1) on the peak learning rates for the update that makes step number `step` (from 1)."""
        warmup = min(self.warmup_steps, self.steps)
        if step <= warmup:
            return step / warmup
        progress = (step - warmup) / (self.steps - warmup + 1)
        if self.schedule == "constant":
            return 1.0
        fall = 1.0 - progress if self.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * progress))
        return self.final_fraction + (1.0 - self.final_fraction) * max(fall, 0.0)

    def snapshot_steps(self) -> list[int]:
        """Steps after which the weights are kept: from 0 to the last, further and further apart."""
        if self.snapshots == 0:
            return []
        if self.snapshots == 1:
            return [self.steps]
        spread = (i / (self.snapshots - 1) for i in range(self.snapshots))
        return sorted({round(self.steps * x * x) for x in spread})


NEVER, NOTED, NOTICED, FREELY = "never", "noted", "noticed", "freely"
ON_RESUME: dict[str, tuple[str, str]] = {
    name: (kind, why)
    for kind, why, names in (
        (NEVER, "the next batches would be others", "batch_size accumulation seed"),
        (NEVER, "what one remembers of the gradients is of no use to the other", "optimizer"),
        (NEVER, "the averages that were saved were gathered by it", "muon_momentum beta1 beta2"),
        (NEVER, "the averages that were saved are of gradients clipped by it", "gradient_clip"),
        (NEVER, "the rates so far belong to another curve", "schedule warmup_steps"),
        (NEVER, "the weights so far were held by another force", "weight_decay"),
        (NOTED, "a run may be trained on to another end; the schedule is stretched to it", "steps final_fraction"),
        (NOTED, "it is where a run may end, like the steps", "patience max_seconds"),
        (NOTED, "it scales the next updates and no more", "learning_rate muon_learning_rate"),
        (NOTED, "another machine may not have it", "device"),
        (NOTED, "it changes what is seen, not what is learned", "eval_every eval_windows sample_every"),
        (NOTED, "it changes what is seen, not what is learned", "sample_prompt sample_tokens sample_temperature"),
        (NOTED, "it changes what is kept, not what is learned", "snapshots"),
        (NOTICED, "another machine may not have it; what follows is rounded otherwise", "precision compile"),
        (FREELY, "it belongs to the process, not to the run", "autosave_seconds"),
    )
    for name in names.split()
}
"""Whether a saved run may continue with another value of a setting: never, noted in the run's record,
noticed (noted, and shown to the user), or freely."""
