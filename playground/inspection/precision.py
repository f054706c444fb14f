"""Precision: a model's size, speed and loss in fp32, bf16 and int8, measured on the CPU, on the same text.

The model stays as it is.

N = windows, T = tokens per window, V = vocabulary, m = outputs of a matrix, n = its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch

from ..data.baselines import IGNORE
from ..engine import SamplingConfig, generate
from ..engine.inference_model import inference_model
from ..model import Transformer
from ..model.kernels.packed import PRECISIONS, quantise
from ..processes import in_decoding_threads
from ..training.losses import WindowLosses, summed_losses
from ..training.verdict import difference

LOGITS_AT_ONCE = 4_000_000
"""Most scores held for one precision while windows are read."""


@dataclass(frozen=True)
class InPrecision:
    """The model in one precision."""

    name: str
    nbytes: int
    """Bytes of its weights: matrices and token table in this precision, the rest in fp32."""
    tokens_per_second: float
    """Greedy decoding of one text, from the lower quartile of seconds per token: other programs may slow the rest."""
    loss: float
    """Nats per token on the held-out text."""
    margin: float
    """Half the width of the loss's 95 % interval, from its spread between windows; infinite for one window."""
    more: float
    """Loss minus the loss in fp32, on the same tokens."""
    more_margin: float
    """Half the width of that difference's 95 % interval."""
    parts_at: int | None
    """Index of the first new token, from 0, where the greedy text differs from that in fp32; None if nowhere."""

    @property
    def can_be_told(self) -> bool:
        """Whether the loss clearly differs from that in fp32."""
        return abs(self.more) > self.more_margin


@dataclass(frozen=True)
class RoundedWeight:
    """One weight rounded to a level, and back."""

    row: int
    column: int
    value: float
    largest: float
    """The largest absolute weight in its row."""
    scale: float
    """largest / 127."""
    level: int
    back: float
    """level · scale."""
    back_bf16: float


@dataclass(frozen=True)
class RoundedMatrix:
    """A matrix (m, n) and its levels."""

    name: str
    shape: tuple[int, int]
    counts: tuple[int, ...]
    """How many weights lie on each level from −127 to 127."""
    worst: RoundedWeight
    """The weight furthest from its level."""

    @property
    def middle_half(self) -> int:
        """The level n for which half of all weights lie between −n and n."""
        outwards = [self.counts[127], *(self.counts[127 + n] + self.counts[127 - n] for n in range(1, 128))]
        return next(n for n, held in enumerate(accumulate(outwards)) if 2 * held >= sum(self.counts))


@dataclass(frozen=True)
class PrecisionCost:
    """What the three precisions cost one model."""

    ways: tuple[InPrecision, ...]
    tokens: int
    """How many predictions were scored."""
    written: int
    """How many new tokens each greedy text has."""
    matrix: RoundedMatrix
    prompt: tuple[int, ...]
    """How many tokens the greedy texts continue from, at the beginning of the held-out text."""


def precision_cost(model: Transformer, inputs: torch.Tensor, targets: torch.Tensor, new_tokens: int) -> PrecisionCost:
    """Measure a model in each precision: its loss on windows (N, T), and greedy texts after the first of them.

    Raises ValueError if there are no windows.
    """
    if not len(inputs) or not (targets != IGNORE).any():
        raise ValueError("there is no text to judge the model by")
    model, cpu = model.on_cpu(), torch.device("cpu")  # only there int8 can be multiplied
    return in_decoding_threads(model.config.n_active_parameters, cpu, _cost, model, inputs, targets, new_tokens)


@torch.inference_mode()
def _cost(model: Transformer, inputs: torch.Tensor, targets: torch.Tensor, new_tokens: int) -> PrecisionCost:
    losses = _judged(model, inputs, targets)
    T = model.config.context_length
    prompt = inputs[0][targets[0] != IGNORE][: max(1, min(8, T // 4))].tolist()
    texts, seconds = _greedy(model, prompt, new_tokens)
    plain, nothing = losses["fp32"], torch.zeros_like(losses["fp32"].total)
    ways = []
    for name in PRECISIONS:
        loss, margin = difference(WindowLosses(nothing, plain.tokens), losses[name])
        more, more_margin = difference(plain, losses[name])
        parts = next((i for i, pair in enumerate(zip(texts["fp32"], texts[name])) if pair[0] != pair[1]), None)
        ways.append(
            InPrecision(
                name=name,
                nbytes=weight_bytes(model, name),
                tokens_per_second=1 / max(seconds[name], 1e-9),
                loss=loss,
                margin=margin,
                more=more,
                more_margin=0.0 if name == "fp32" else more_margin,
                parts_at=parts,
            )
        )
    return PrecisionCost(
        ways=tuple(ways),
        tokens=int(plain.tokens.sum()),
        written=len(texts["fp32"]),
        matrix=_matrix_of(model),
        prompt=tuple(prompt),
    )


def _judged(model: Transformer, inputs: torch.Tensor, targets: torch.Tensor) -> dict[str, WindowLosses]:
    """Losses in each precision."""
    tokens, at_once = (targets != IGNORE).sum(dim=1), LOGITS_AT_ONCE // (inputs.shape[1] * model.config.vocab_size)
    parts = list(zip(inputs.split(max(1, at_once)), targets.split(max(1, at_once))))
    models = {name: inference_model(model, name) for name in PRECISIONS}
    return {
        name: WindowLosses(torch.cat([summed_losses(read.logits(x).float(), y) for x, y in parts]), tokens)
        for name, read in models.items()
    }


def _greedy(
    model: Transformer, prompt: Sequence[int], new_tokens: int
) -> tuple[dict[str, list[int]], dict[str, float]]:
    """Greedy texts, and seconds per token; measured in turns, so that a busy machine slows all alike."""
    ways = {
        name: generate(model, prompt, new_tokens, SamplingConfig(greedy=True), precision=name) for name in PRECISIONS
    }
    texts: dict[str, list[int]] = {name: [] for name in PRECISIONS}
    times: dict[str, list[float]] = {name: [] for name in PRECISIONS}
    for steps in zip(*ways.values()):
        for name, step in zip(ways, steps):
            texts[name].append(step.tokens[0])
            times[name].append(step.seconds)
    # not comparable: the first step also reads the prompt, and a full cache is rebuilt
    quick = {name: sorted(each[1:] or each)[len(each) // 4] for name, each in times.items()}
    return texts, quick


def weight_bytes(model: Transformer, precision: str) -> int:
    """Bytes of a model's weights in that precision, the scales of int8 included."""
    nbytes = 0
    for name, weight in model.named_parameters():
        if not _is_rounded(name, weight):
            nbytes += 4 * weight.numel()
        elif precision == "int8":
            outputs = weight.shape[-1] * weight.shape[0] if weight.ndim == 3 else weight.shape[0]
            nbytes += weight.numel() + 4 * outputs
        else:
            nbytes += (2 if precision == "bf16" else 4) * weight.numel()
    return nbytes


def _is_rounded(name: str, weight: torch.Tensor) -> bool:
    """Whether other precisions round these weights: matrices and the token table, but not biases or routers."""
    return name.endswith(("weight", "up", "gate", "down")) and weight.ndim >= 2 and not (
        "router" in name or "position_embedding" in name
    )  # fmt: skip


def _matrix_of(model: Transformer) -> RoundedMatrix:
    """The widening matrix of the feed-forward layer (or the first expert) in the middle of the stack."""
    layer = (model.config.n_layers - 1) // 2
    mlp = model.blocks[layer].feedforward
    experts = hasattr(mlp, "router")
    weight = mlp.up[0].t() if experts else mlp.up.weight  # (m, n)
    name = f"layer {layer}, feed-forward, up" + (" of expert 0" if experts else "")
    return rounded_matrix(name, weight.detach().float().cpu())


def rounded_matrix(name: str, weight: torch.Tensor) -> RoundedMatrix:
    """How a matrix's weights (m, n) fall onto their levels, and the weight furthest from its level."""
    levels, scales = quantise(weight)
    counts = torch.bincount(levels.flatten().long() + 127, minlength=255)
    off = (weight - levels * scales).abs()
    row, column = divmod(int(off.argmax()), weight.shape[1])
    value, scale = weight[row, column], scales[row, 0]
    worst = RoundedWeight(
        row=row,
        column=column,
        value=value.item(),
        largest=weight[row].abs().max().item(),
        scale=scale.item(),
        level=int(levels[row, column]),
        back=(levels[row, column] * scale).item(),
        back_bf16=value.bfloat16().item(),
    )
    return RoundedMatrix(name, tuple(weight.shape), tuple(counts.tolist()), worst)
