"""Activation patching: one part at one token takes its value from another run; what becomes of two answers?

Two prompts of equal length decide between two answers. The measure is the difference of their logits after the last
token (Wang et al. 2023; Heimersheim and Nanda 2024). A part is the residual stream that enters a layer, a head's
weighted average of values, the MLP's output, or one expert's share of it.

B = batch, T = tokens, L = layers, H = heads, D = d_head, E = experts, d = d_model, S = samples of a donor, R = rows of
a map, V = vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import torch

from ..inspection.edits import Seen
from ..inspection.routing import expert_layers
from ..model import ModelConfig, Pass, Recorder, Trace, Transformer
from ..model.moe import MixtureOfExperts
from .direct import readout, written_by_head

ROWS_AT_ONCE = 8192
"""Tokens of one forward pass."""
TAPPED = {"residual": "resid_pre", "head": "z", "mlp": "ff_out", "expert": "ff_out"}
"""Part → the intermediate that holds it."""
ROUTED = ("ff_in", "experts", "expert_weights")
"""The intermediates from which an expert's share follows."""
TEXTS = 4
"""Other texts of a resample ablation."""
TINY = 0.2
"""Nats between two prompts' logit differences below which a share of the way from one to the other says little."""
PREDICT_ALIKE = "Both prompts lead to almost the same prediction. Choose prompts with different continuations"


class Donor(Enum):
    """Where the value comes from that takes a part's place."""

    OTHER = "other"
    """The other prompt's run (activation patching)."""
    ZERO = "zero"
    """Zero ablation."""
    MEAN = "mean"
    """The part's average over other texts and all their tokens (mean ablation)."""
    RESAMPLE = "resample"
    """The same place of other texts, each in turn; effects are averaged (resample ablation, Chan et al. 2022)."""


@dataclass(frozen=True)
class Pair:
    """Two prompts of equal length, and the two answers between which they decide."""

    ids: tuple[int, ...]
    other: tuple[int, ...]
    answer: int
    """The model's prediction after `ids`."""
    foil: int
    """Its prediction after `other`; where that is the same, the token that gains most there."""

    @property
    def changed(self) -> tuple[int, ...]:
        """The places where the prompts differ."""
        return tuple(place for place, (a, b) in enumerate(zip(self.ids, self.other)) if a != b)

    def difference(self, logits: torch.Tensor) -> torch.Tensor:
        """logit of the answer − logit of the foil, (…,) of logits (…, V)."""
        return logits[..., self.answer] - logits[..., self.foil]


@torch.inference_mode()
def pair_of(model: Transformer, ids: Sequence[int], other: Sequence[int]) -> Pair:
    """The pair of two prompts, with the answers that the model gives. Raises ValueError where they make no pair."""
    if len(ids) != len(other):
        raise ValueError(
            f"The prompts have {len(ids)} and {len(other)} tokens. Both are read token by token: make them equally long"
        )
    if tuple(ids) == tuple(other):
        raise ValueError("The prompts are the same. Change one word of the second one")
    here, there = model(torch.tensor([list(ids), list(other)])).logits[:, -1].float().log_softmax(-1)
    return Pair(tuple(map(int, ids)), tuple(map(int, other)), *two_answers(here.exp(), there.exp()))


def two_answers(here: torch.Tensor, there: torch.Tensor) -> tuple[int, int]:
    """The likeliest token by each of two distributions (V,); where both agree, the other is the one that gains most."""
    answer, foil = int(here.argmax()), int(there.argmax())
    if foil == answer:
        gained = there - here
        gained[answer] = -2.0
        foil = int(gained.argmax())
    return answer, foil


def predict_alike(here: float, other: float) -> bool:
    """Whether one answer leads after both prompts, or by about as much, going by their logit differences in nats."""
    return (here >= 0) == (other >= 0) or abs(other - here) < TINY


# ---- one patch, as an edit -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Patch:
    """An edit (see `inspection.edits`): a part at one token takes a value from elsewhere. Works in generation, too."""

    layer: int
    part: str
    place: int
    """Of the token, from 0."""
    value: torch.Tensor
    """(d,) of residual, mlp and expert, (D,) of a head."""
    index: int | None = None
    """Which head or expert."""
    mixture: MixtureOfExperts | None = None
    """The layer's experts, where one of them is patched."""

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the model has this part."""
        if self.part not in TAPPED or not 0 <= self.layer < config.n_layers:
            raise ValueError(f"there is no {self.part} in layer {self.layer} to patch")

    def change(self, name: str, x: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The intermediate (B, T, …) with the new value at the place, where this pass has it."""
        at = self.place - seen.first
        if name != TAPPED[self.part] or not 0 <= at < x.shape[1]:
            return x
        x = x.clone()
        if self.part == "head":
            x[:, at, self.index] = self.value
        elif self.part == "expert":
            here = [seen[each][:, at : at + 1] for each in ROUTED]
            x[:, at] += self.value - expert_share(self.mixture, *here, self.index)[:, 0]
        else:
            x[:, at] = self.value
        return x


def patch_from(
    model: Transformer,
    there: Trace,
    layer: int,
    part: str,
    place: int,
    index: int | None = None,
    donor: Donor = Donor.OTHER,
) -> Patch:
    """The patch that carries one part over from a donor's `run`; of several samples, the first one's.

    Raises ValueError for a part that is not there.
    """
    if layer not in range(model.config.n_layers) or place not in range(there["resid_pre", 0].shape[1]):
        raise ValueError("This patch is not in the map. Click a cell")
    missing = part == "expert" and not model.config.has_experts(layer)
    if missing or (part in ("head", "expert") and index not in range(counted(model.config, part))):
        raise ValueError(f"There is no {part} {index} to patch")
    index = index if part in ("head", "expert") else None
    values = replaced(values_of(model, there, part, layer), donor)[0, place]
    mixture = model.blocks[layer].feedforward if part == "expert" else None
    return Patch(layer, part, place, values if index is None else values[index], index, mixture)


def counted(config: ModelConfig, part: str) -> int:
    """How many of this part each layer has, if it has any."""
    return {"head": config.n_heads, "expert": config.n_experts}.get(part, 1)


# ---- values of parts -------------------------------------------------------------------------------------------------


def run(model: Transformer, texts: Any) -> Trace:
    """What the map needs of a pass over texts (B, T) of equal length."""
    recorder = Recorder((*TAPPED.values(), *ROUTED, "resid_post", "logits"))
    with torch.inference_mode():
        model(torch.as_tensor(texts), Pass(tap=recorder))
    return recorder.trace


def values_of(model: Transformer, trace: Trace, part: str, layer: int) -> torch.Tensor:
    """Values of a part in one layer: (B, T, d), of heads (B, T, H, D), of experts (B, T, E, d)."""
    if part != "expert":
        return trace[TAPPED[part], layer]
    mixture, here = model.blocks[layer].feedforward, [trace[name, layer] for name in ROUTED]
    return torch.stack([expert_share(mixture, *here, expert) for expert in range(model.config.n_experts)], dim=2)


@torch.inference_mode()
def expert_share(
    mixture: MixtureOfExperts, ff_in: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor, expert: int
) -> torch.Tensor:
    """What one expert adds to the layer's output (B, T, d); 0 for tokens that do not use it."""
    return mixture.apply_experts(ff_in, experts, weights.masked_fill(experts != expert, 0.0))


def donated(model: Transformer, pair: Pair, donor: Donor, texts: torch.Tensor | None) -> Trace:
    """The run of the donor, (S, T, …) each; of zero ablation, the pair's own."""
    if donor in (Donor.OTHER, Donor.ZERO):
        return run(model, [pair.other])
    if texts is None or texts.shape[1] < len(pair.ids):
        raise ValueError("The average and other texts need this model's training text, which is missing. Choose zero")
    rows = texts if donor is Donor.MEAN else texts[:TEXTS]
    return run(model, rows[:, : len(pair.ids)])


def replaced(values: torch.Tensor, donor: Donor) -> torch.Tensor:
    """What takes the part's place, (S, T, …) from the donor's values (S, T, …)."""
    if donor is Donor.ZERO:
        return torch.zeros_like(values)
    return values.mean(dim=(0, 1), keepdim=True).expand(1, *values.shape[1:]) if donor is Donor.MEAN else values


# ---- the map ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PatchMap:
    """What patching each part at each token does to the difference of the two answers' logits."""

    part: str
    rows: tuple[tuple[int, int | None], ...]
    """Layer and head or expert of each of the R rows; None for what a layer has once."""
    effects: np.ndarray
    """(R, T) logit difference with the patch − without, in nats."""
    here: float
    """The difference in the prompt's own run."""
    other: float
    """The difference in the other prompt's run."""

    @property
    def shares(self) -> np.ndarray:
        """(R, T) of the way to the other run: 0 nothing changed, 1 the other's answer; NaN where the runs agree."""
        way = self.other - self.here
        return self.effects / way if abs(way) > 1e-6 else np.full_like(self.effects, np.nan)

    @property
    def strongest(self) -> tuple[int, int]:
        """Row and token of the largest effect; the first of those that look the same."""
        effects = np.abs(self.effects)
        row, place = np.unravel_index(int((effects >= 0.995 * effects.max()).argmax()), effects.shape)
        return int(row), int(place)


def passes_of(config: ModelConfig, part: str, length: int) -> int:
    """How many prompts of this length a map of total effects reads."""
    return config.n_layers * counted(config, part) * length


@torch.inference_mode()
def patch_map(
    model: Transformer,
    pair: Pair,
    part: str,
    donor: Donor = Donor.OTHER,
    *,
    texts: torch.Tensor | None = None,
    direct: bool = False,
) -> PatchMap:
    """The effect of every part of one kind at every token.

    Total effects let all later layers react. Direct ones go through the residual stream to the logits only: every
    other part, and the divisor of the last norm, stays unchanged. `texts` (N, T or longer) are what the average and
    the resampled values come from. Raises ValueError where the model has no such part or no direct path.
    """
    config, T = model.config, len(pair.ids)
    layers = expert_layers(config) if part == "expert" else range(config.n_layers)
    here, there = run(model, [pair.ids]), donated(model, pair, donor, texts)
    own = float(pair.difference(here["logits"][0, -1]))
    other = float(pair.difference(run(model, [pair.other])["logits"][0, -1]))
    last = here["resid_post", config.n_layers - 1][0, -1]
    reader = readout(model, last, pair.answer, pair.foil) if direct else None
    effects, rows = [], []
    for layer in layers:
        before = values_of(model, here, part, layer)
        after = replaced(values_of(model, there, part, layer), donor)
        if reader is not None:
            effects.append(_direct(model, layer, part, after[:, -1] - before[:, -1], reader, T))
        else:
            effects.append(_total(model, pair, layer, part, before, after) - own)
        count = counted(config, part)
        rows += [(layer, index if part in ("head", "expert") else None) for index in range(count)]
    return PatchMap(part, tuple(rows), torch.cat(effects).double().cpu().numpy(), own, other)


def _direct(
    model: Transformer, layer: int, part: str, change: torch.Tensor, reader: torch.Tensor, T: int
) -> torch.Tensor:
    """(heads or experts or 1, T) of a change (S, …) at the last token, which alone is read."""
    if part == "head":
        change = written_by_head(model, layer, change)  # (S, H, d)
    effects = torch.zeros(counted(model.config, part), T, device=reader.device)
    effects[:, -1] = (change.float() @ reader).mean(dim=0)
    return effects


def _total(
    model: Transformer, pair: Pair, layer: int, part: str, before: torch.Tensor, after: torch.Tensor
) -> torch.Tensor:
    """Logit differences (heads or experts or 1, T) of passes that are one text up to the patch, and then many."""
    S, T, count = after.shape[0], len(pair.ids), counted(model.config, part)
    ids, found = torch.tensor([pair.ids]), []
    for some in torch.cartesian_prod(*map(torch.arange, (S, count, T))).split(max(1, ROWS_AT_ONCE // T)):
        sample, index, place = some.to(after.device).unbind(dim=1)

        def put(x: torch.Tensor, sample=sample, index=index, place=place) -> torch.Tensor:
            n = torch.arange(len(place), device=x.device)
            x = x.expand(len(n), *x.shape[1:]).clone()
            if part == "head":
                x[n, place, index] = after[sample, place, index]
            elif part == "expert":
                x[n, place] += after[sample, place, index] - before[0, place, index]
            else:
                x[n, place] = after[sample, place]
            return x

        def tap(name: str, at: int | None, x: torch.Tensor, put=put) -> torch.Tensor:
            if name == "final":
                return x[:, -1:]  # only the last token's logits are needed
            return put(x) if name == TAPPED[part] and at == layer else x

        found.append(pair.difference(model(ids, Pass(tap=tap)).logits[:, -1]))
    return torch.cat(found).view(S, count, T).mean(dim=0)
