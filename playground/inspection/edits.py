"""Edits: what a tap changes in a forward pass – a head switched off, one weight set, tokens sent to one expert.

An edit is a plain description, which `check` compares with a model's config and `change` carries out. `edits_tap`
turns several edits into one tap: `model(ids, Pass(tap=edits_tap(edits, config)))`, `trace(..., edit=…)`, `generate(...,
tap=…)`. The stored model is never touched. B = batch, T = tokens in a pass, S = tokens it may see, H = heads, D =
d_head, E = experts, K = experts per token.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..model import ModelConfig, Tap, TextTap, no_tap
from .routing import expert_layers

PATTERNS = ("uniform", "previous")
PARTS = ("head", "attention", "feed-forward", "layer")


class Seen(dict[str, torch.Tensor]):
    """The layer's intermediates so far, as edited, if named in `REMEMBERED`; and where in the text the pass is."""

    start = first = 0
    grows = False
    """Where in the text the pass reads; see `TextTap.begin`."""


REMEMBERED = ("scores", "masked_scores", "ff_in", "experts", "expert_weights")


@dataclass(frozen=True)
class SwitchOff:
    """Ablation: the output of a head, or of a layer's attention, MLP or both, becomes 0."""

    layer: int
    part: str = "head"
    """head, attention, feed-forward or layer (both sublayers)."""
    head: int | None = None
    """Which head, if `part` is head."""

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the model has this part."""
        _check_layer(config, self.layer)
        if self.part not in PARTS:
            raise ValueError(f"{self.part!r} cannot be switched off; choose one of {', '.join(PARTS)}")
        if self.part == "head":
            _check_head(config, self.head)

    def change(self, name: str, x: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The values x with zeros for this head, if x is z (B, T, H, D), or for these sublayers' outputs (B, T, d)."""
        if self.part == "head" and name == "z":
            x = x.clone()
            x[:, :, self.head] = 0.0
        elif (name == "attn_out" and self.part in ("attention", "layer")) or (
            name == "ff_out" and self.part in ("feed-forward", "layer")
        ):
            x = torch.zeros_like(x)
        return x


@dataclass(frozen=True)
class EditCell:
    """One attention weight: how much token `query` attends to token `key`. The rest of its row makes up for it."""

    layer: int
    head: int
    query: int
    key: int
    value: float
    """The new weight (0 … 1)."""

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the model has this cell and the value is one a weight can take."""
        _check_layer(config, self.layer)
        _check_head(config, self.head)
        for what, place in (("query", self.query), ("key", self.key)):
            if not 0 <= place < config.context_length:
                raise ValueError(f"there is no token {place} to be the {what}: count from 0")
        if not 0.0 <= self.value <= 1.0:
            raise ValueError(f"an attention weight lies between 0 and 1, not {self.value:g}")

    def change(self, name: str, x: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The pattern (B, H, T, S) with the new row. Raises ValueError if this prompt has no such cell."""
        if name != "pattern":
            return x
        if not seen.grows and max(self.query, self.key) >= x.shape[-1]:
            raise ValueError(
                f"the cell from token {self.query} to token {self.key} lies outside this prompt of {x.shape[-1]} tokens"
            )
        at, column = self.query - seen.first, self.key - seen.start
        if not 0 <= at < x.shape[2] or not 0 <= column < x.shape[3]:
            return x  # the text grows: the cell is in another piece, or has fallen out
        if seen["masked_scores"][:, self.head, at, column].isneginf().any():
            raise ValueError(
                f"token {self.query} cannot see token {self.key}, which comes after it: its weight is 0 because of the "
                "mask. Choose a key at or before the query, or remove the mask first"
            )
        row = x[:, self.head, at].clone()  # (B, S)
        others = 1.0 - row[:, column]
        if ((others <= 1e-12) & (self.value < 1.0)).any():
            raise ValueError("no other token in this row has any weight to scale up. Choose another row")
        row = row * ((1.0 - self.value) / others.clamp(min=1e-12))[:, None]
        row[:, column] = self.value
        x = x.clone()
        x[:, self.head, at] = row
        return x


@dataclass(frozen=True)
class SwapPattern:
    """Replaces a head's whole pattern: equal weights on all visible tokens (uniform), or only the token before
    (previous)."""

    layer: int
    head: int
    pattern: str = "uniform"

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the model has this head and the pattern is a known one."""
        _check_layer(config, self.layer)
        _check_head(config, self.head)
        if self.pattern not in PATTERNS:
            raise ValueError(f"there is no pattern {self.pattern!r}; choose one of {', '.join(PATTERNS)}")

    def change(self, name: str, x: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The pattern (B, H, T, S) with this head's replaced."""
        if name != "pattern":
            return x
        new = torch.zeros_like(x[:, self.head])  # (B, T, S)
        if self.pattern == "uniform":
            visible = ~seen["masked_scores"][:, self.head].isneginf()
            new = visible / visible.sum(dim=-1, keepdim=True)
        else:
            row = torch.arange(x.shape[2], device=x.device)
            before = row + x.shape[3] - x.shape[2] - 1
            new[:, row, before.clamp(min=0)] = 1.0  # the first token has only itself
        x = x.clone()
        x[:, self.head] = new.to(x)
        return x


@dataclass(frozen=True)
class RemoveMask:
    """Lets every token see the whole text, including the tokens after it."""

    layer: int | None = None
    """The layer; None for all."""

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError if the model has no such layer or no mask."""
        if self.layer is not None:
            _check_layer(config, self.layer)
        if not config.causal:
            raise ValueError("this model was built without a causal mask: there is none to remove")

    def change(self, name: str, x: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The scores (B, H, T, T) as they were before the mask."""
        return seen["scores"] if name == "masked_scores" else x


@dataclass(frozen=True)
class SwitchOffExperts:
    """Ablation: these experts contribute nothing."""

    layer: int
    experts: tuple[int, ...]
    replaced: bool = True
    """Whether the router's next choices take over, as if these experts did not exist. Otherwise the router may still
    choose them, but their outputs are 0."""

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the layer has these experts, and enough others to take over."""
        _check_experts(config, self.layer, self.experts)
        E, K = config.n_experts, config.experts_per_token
        if not self.replaced:
            return
        if self.experts and E == K:
            raise ValueError(
                f"Every token uses all {E} experts, so no other expert could take over. Silence them instead"
            )
        if E - len(set(self.experts)) < K:
            raise ValueError(
                f"Every token uses {K} of {E} experts, so at most {E - K} can be off in a layer. Switch some of the "
                f"{len(set(self.experts))} in layer {self.layer} on again"
            )

    def change(self, name: str, x: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The router's scores (B, T, E) with −∞ for these experts, or the weights (B, T, K) with 0 for them."""
        experts = torch.tensor(self.experts, dtype=torch.long, device=x.device)
        if not self.replaced:
            return x.masked_fill(torch.isin(seen["experts"], experts), 0.0) if name == "expert_weights" else x
        # and its probabilities too, since a balancing bias could still choose an expert of probability 0
        if name in ("router_logits", "router_probabilities"):
            return x.index_fill(-1, experts, float("-inf"))
        return x


@dataclass(frozen=True)
class ForceExpert:
    """Sends tokens to one expert, with full weight, whatever the router says."""

    layer: int
    expert: int
    positions: tuple[int, ...] | None = None
    """The tokens' positions, from 0; None for all."""

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the layer has this expert."""
        _check_experts(config, self.layer, (self.expert,))

    def change(self, name: str, x: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The choices, and their weights (B, T, K): all on the first choice."""
        if name not in ("experts", "expert_weights"):
            return x
        places = slice(None)
        if self.positions is not None:
            if not seen.grows and not all(0 <= place < x.shape[1] for place in self.positions):
                raise ValueError(f"The prompt has {x.shape[1]} tokens, counted from 0: choose positions among them")
            places = [place - seen.first for place in self.positions if 0 <= place - seen.first < x.shape[1]]
        x = x.clone()
        if name == "experts":
            x[:, places] = self.expert
        else:
            x[:, places] = 0.0
            x[:, places, 0] = 1.0
        return x


Edit = SwitchOff | EditCell | SwapPattern | RemoveMask | SwitchOffExperts | ForceExpert


class EditsTap(TextTap):
    """Carries out edits in their order. See `edits_tap`."""

    def __init__(self, edits: Sequence[Edit]):
        self.edits, self.seen = edits, Seen()
        self.cacheable = not any(isinstance(edit, RemoveMask) for edit in edits)

    def __call__(self, name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
        self.seen.start, self.seen.first, self.seen.grows = self.start, self.first, self.grows
        for edit in self.edits:
            if layer is not None and edit.layer in (None, layer):
                x = edit.change(name, x, self.seen)
        if name in REMEMBERED:
            self.seen[name] = x
        return x


def edits_tap(edits: Sequence[Edit], config: ModelConfig) -> Tap:
    """A tap that carries out these edits, in their order, in passes over whole texts and in generation.

    It serves one pass after another, not two at the same time. Without edits, or with only idle ones, it is `no_tap`.
    Other packages add their own edits, with the same methods. Raises ValueError, here or in the pass, if an edit does
    not fit the model or the prompt.
    """
    for edit in edits:
        edit.check(config)
    edits = [edit for edit in edits if not getattr(edit, "idle", False)]
    return EditsTap(edits) if edits else no_tap


# ---- as plain values -------------------------------------------------------------------------------------------------

SavedEdit = SwitchOff | EditCell | SwapPattern | RemoveMask  # the edits that the page offers and links carry
KINDS: dict[str, type] = {"off": SwitchOff, "cell": EditCell, "pattern": SwapPattern, "mask": RemoveMask}
_TYPES = {"int": int, "int | None": (int, type(None)), "str": str, "bool": bool, "float": (int, float)}


def to_dict(edit: SavedEdit) -> dict[str, Any]:
    """Plain values for JSON; `from_dict` is its inverse."""
    kind = next(name for name, cls in KINDS.items() if isinstance(edit, cls))
    return {"kind": kind, **dataclasses.asdict(edit)}


def from_dict(values: Any) -> SavedEdit:
    """The edit whose `to_dict` gave these values. Raises ValueError, since anybody may have written them."""
    try:
        values = dict(values)
        edit = KINDS[values.pop("kind")](**values)
        for field in dataclasses.fields(edit):
            value = getattr(edit, field.name)
            if not isinstance(value, _TYPES[field.type]) or isinstance(value, bool) != (field.type == "bool"):
                raise TypeError(field.name)
    except (KeyError, TypeError, ValueError) as problem:
        raise ValueError("this is no edit: choose one from the list") from problem
    return edit


# ---- checks ----------------------------------------------------------------------------------------------------------


def _check_layer(config: ModelConfig, layer: int) -> None:
    if not 0 <= layer < config.n_layers:
        raise ValueError(f"the model has {config.n_layers} layers, counted from 0: there is no layer {layer}")


def _check_head(config: ModelConfig, head: int | None) -> None:
    if head is None or not 0 <= head < config.n_heads:
        raise ValueError(f"each layer has {config.n_heads} heads, counted from 0: there is no head {head}")


def _check_experts(config: ModelConfig, layer: int, experts: Sequence[int]) -> None:
    layers, E = expert_layers(config), config.n_experts
    if layer not in layers:
        raise ValueError(f"Layer {layer} has no experts: choose one of {', '.join(map(str, layers))}")
    for expert in experts:
        if not 0 <= expert < E:
            raise ValueError(f"There is no expert {expert}: they are numbered 0 to {E - 1}")
