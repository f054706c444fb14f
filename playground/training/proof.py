"""A device proves itself: before a GPU is trusted, it computes what the CPU computes, on two tiny models.

A GPU may be present and still be of no use: its driver lacks a kernel, a library is built for another chip, or an
operation is wrong on that platform. So once per process, `device_for` takes a dense model and a mixture of experts. On
both devices they decode, run forwards and backwards, and make optimizer steps. If the GPU fails or differs, the CPU is
used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F

from ..devices import mixed, pick_device, pick_precision
from ..engine import SamplingConfig, generate
from ..model import ModelConfig, Pass, Transformer
from .config import TrainConfig
from .optimizers import make_optimizers

TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.1}
"""Largest relative error, by dtype: the norm of the difference from the CPU's fp32 result ÷ that result's norm."""
STEP_TOLERANCE = 0.05
"""The same for the optimizer's steps: Muon computes in bfloat16 on some devices (2 % off) and in fp32 on others."""

_DENSE = ModelConfig(vocab_size=24, context_length=8, n_layers=2, d_model=32, n_heads=4)
_MIXTURE = _DENSE.replace(
    positions="rotary", norm="rmsnorm", qk_norm=True, activation="swiglu", n_kv_heads=2, n_experts=4, dropout=0.1,
    balance_weight=1.0,
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """What is wrong with a device: it fails, or one part of training gives other results."""

    device: str
    precision: str
    part: str = ""
    """What is computed wrongly; empty if the device failed."""
    off: float = 0.0
    """Length of the difference, relative to the length of the right result."""
    error: str = ""
    """The error message, if it failed."""

    def __str__(self) -> str:
        return f"{self.device}, {self.precision}: {self.error or f'{self.part} is {self.off:.1%} off'}"


def device_for(config: TrainConfig, model: ModelConfig) -> tuple[torch.device, Fault | None]:
    """Where to train this model. If that is not the device in `config.device`, also what is wrong with that one.

    Raises ValueError for a device or precision that this machine does not have.
    """
    work = model.flops_per_token(training=True) * config.batch_size * model.context_length
    device = pick_device(config.device, work)
    if device.type == "cpu":
        return device, None
    problem = fault(device, pick_precision(config.precision, device))
    if problem and config.precision == "fp16":
        raise ValueError(f"fp16 training needs a GPU that works ({problem}): choose fp32 or bf16 on the CPU")
    return (torch.device("cpu"), problem) if problem else (device, None)


def fault(device: torch.device, dtype: torch.dtype) -> Fault | None:
    """What is wrong with a device whose matrix products run in `dtype`; None if nothing is."""
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    return _fault(device, torch.float32) or _fault(device, dtype)


@cache
def _fault(device: torch.device, dtype: torch.dtype) -> Fault | None:
    precision = str(dtype).removeprefix("torch.")
    try:
        for config in (_DENSE, _MIXTURE):
            right = _right(config)
            for part, got in _answers(config, device, dtype):
                tolerance = STEP_TOLERANCE if part == "the optimizer's step" else TOLERANCE[dtype]
                off = _distance(got, right[part])
                if not off <= tolerance:
                    return Fault(str(device), precision, part, off)
    except Exception as problem:  # a missing kernel, a broken driver, no memory: each in its own words
        return Fault(str(device), precision, error=first_line(problem))
    return None


@cache
def _right(config: ModelConfig) -> dict[str, list[torch.Tensor]]:
    """The CPU's results in fp32."""
    return dict(_answers(config, torch.device("cpu"), torch.float32))


def _answers(config: ModelConfig, device: torch.device, dtype: torch.dtype) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """The tensors that each part of training and decoding gives on the device, all from numbers drawn on the CPU."""
    rng = torch.Generator().manual_seed(42)  # so that rounding is far from sending a token to another expert
    model = Transformer(config)
    parameters = list(model.parameters())
    with torch.no_grad():
        for parameter in parameters:  # no bias or gain that could be left out unnoticed
            parameter += 0.1 * torch.randn(parameter.shape, generator=rng)
    ids = torch.randint(config.vocab_size, (2, config.context_length + 1), generator=rng)
    gradients = [[torch.randn(p.shape, generator=rng) for p in parameters] for _ in range(2)]
    x, y = ids[:, :-1].to(device), ids[:, 1:].to(device)
    model.to(device)

    steps = generate(model, ids[0, :4].tolist(), config.context_length, SamplingConfig(temperature=0))  # slides, too
    yield "the decoding", [step.logits for step in steps]

    with mixed(dtype, device):
        output = model(x)
    loss = F.cross_entropy(output.logits.flatten(0, 1).float(), y.flatten())
    loss = loss if output.balance_loss is None else loss + output.balance_loss
    (2**10 * loss).backward()  # fp16 has no smaller numbers
    yield "the gradient", [loss.detach(), *(p.grad for p in parameters)]

    before = [p.detach().clone() for p in parameters]
    optimizers = make_optimizers(model, TrainConfig(optimizer="muon"))  # the embeddings are AdamW's there
    for step in gradients:  # the same everywhere: Adam's first step would turn a rounding error into a full step
        for parameter, gradient in zip(parameters, step):
            parameter.grad = gradient.to(device)
        for optimizer in optimizers:
            optimizer.step()
    yield "the optimizer's step", [now.detach() - then for now, then in zip(parameters, before)]

    with mixed(dtype, device):  # dropout draws other numbers on other devices: check only that it drew some
        noisy = model(x, Pass(generator=torch.Generator(device).manual_seed(0)))
    yield "dropout", [noisy.logits.isfinite().float()]


def _distance(got: list[torch.Tensor], right: list[torch.Tensor]) -> float:
    """The largest length of a difference, relative to the right result's length; NaN if any number is NaN."""
    lengths = [((a.cpu().float() - b).norm() / b.norm()).item() for a, b in zip(got, right, strict=True)]
    return max(lengths) if all(length == length for length in lengths) else float("nan")


def first_line(problem: Exception) -> str:
    """The first line of an error's message, or the error's name if it has none."""
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]
