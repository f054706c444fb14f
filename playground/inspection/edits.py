"""Edits: taps that change a forward pass on its way – a head switched off, one cell of attention set, no mask.

An edit never touches the stored model: it is handed to `model(ids, Pass(tap=edits_tap(...)))` or
`trace(..., edit=...)` and is gone with that call. B = batch, T = tokens, H = heads, D = d_head.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from ..model import ModelConfig
from ..model.trace import Tap

PATTERNS = ("uniform", "previous")
PARTS = ("head", "attention", "feed-forward", "layer")


@dataclass(frozen=True)
class SwitchOff:
    """What a head, a layer's attention, its feed-forward layer or both would have added becomes 0 (ablation)."""

    kind: ClassVar[str] = "off"
    layer: int
    part: str = "head"
    """head, attention, feed-forward or layer (both sublayers)."""
    head: int | None = None
    """Which head, where `part` is head."""

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the model has this part."""
        _check_layer(config, self.layer)
        if self.part not in PARTS:
            raise ValueError(f"{self.part!r} cannot be switched off; choose one of {', '.join(PARTS)}")
        if self.part == "head":
            _check_head(config, self.head)

    def words(self) -> str:
        """What it does, briefly."""
        what = {"head": f"head {self.head} of layer {self.layer}", "layer": f"all of layer {self.layer}"}
        return f"{what.get(self.part, f'{self.part} of layer {self.layer}')} switched off"

    def change(self, name: str, layer: int | None, x: torch.Tensor, unmasked: bool) -> torch.Tensor:
        """x, or what stands in its place."""
        if layer != self.layer:
            return x
        if self.part == "head":
            if name != "z":
                return x
            x = x.clone()  # (B, T, H, D)
            x[:, :, self.head] = 0.0
            return x
        off = {"attention": ("attn_out",), "feed-forward": ("ff_out",), "layer": ("attn_out", "ff_out")}[self.part]
        return torch.zeros_like(x) if name in off else x


@dataclass(frozen=True)
class EditCell:
    """One attention weight: how much token `query` listens to token `key`, set to a value or multiplied by one."""

    kind: ClassVar[str] = "cell"
    layer: int
    head: int
    query: int
    key: int
    value: float
    """The new weight (0 … 1), or the factor on the old one (0 … 10)."""
    scale: bool = False
    """Multiply instead of set."""
    renormalise: bool = True
    """Shrink or stretch the rest of the row so that it sums to 1 again; else the row's sum changes."""

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the model has this cell and the value is one a weight can take."""
        _check_layer(config, self.layer)
        _check_head(config, self.head)
        for what, place in (("query", self.query), ("key", self.key)):
            if not 0 <= place < config.context_length:
                raise ValueError(f"there is no token {place} to be the {what}: count from 0")
        most = 10.0 if self.scale else 1.0
        if not 0.0 <= self.value <= most:
            kind = "a factor" if self.scale else "an attention weight"
            raise ValueError(f"{kind} lies between 0 and {most:g}, not {self.value:g}")

    def words(self) -> str:
        """What it does, briefly."""
        how = f"× {self.value:g}" if self.scale else f"= {self.value:g}"
        rest = "row renormalised" if self.renormalise else "row not renormalised"
        return f"layer {self.layer} head {self.head}, weight from {self.query} to {self.key} {how}, {rest}"

    def change(self, name: str, layer: int | None, x: torch.Tensor, unmasked: bool) -> torch.Tensor:
        """x, or what stands in its place."""
        if name != "pattern" or layer != self.layer:
            return x
        T = x.shape[-1]
        if max(self.query, self.key) >= T:
            raise ValueError(
                f"the cell from token {self.query} to token {self.key} lies outside this prompt of {T} tokens"
            )
        if self.key > self.query and not unmasked:
            raise ValueError(
                f"token {self.query} cannot see token {self.key}, which comes after it: its weight is 0 because of the "
                "mask. Choose a key at or before the query, or remove the mask first"
            )
        row = x[:, self.head, self.query].clone()  # (B, T)
        old = row[:, self.key].clone()
        new = old * self.value if self.scale else torch.full_like(old, self.value)
        row[:, self.key] = new
        if self.renormalise:
            row = _renormalised(row, self.key, new, old, self.scale)
        x = x.clone()
        x[:, self.head, self.query] = row
        return x


@dataclass(frozen=True)
class SwapPattern:
    """A head's whole pattern replaced: every visible token alike (uniform), or only the one before (previous)."""

    kind: ClassVar[str] = "pattern"
    layer: int
    head: int
    pattern: str = "uniform"

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the model has this head and there is such a pattern."""
        _check_layer(config, self.layer)
        _check_head(config, self.head)
        if self.pattern not in PATTERNS:
            raise ValueError(f"there is no pattern {self.pattern!r}; choose one of {', '.join(PATTERNS)}")

    def words(self) -> str:
        """What it does, briefly."""
        where = "all visible tokens alike" if self.pattern == "uniform" else "only the token before"
        return f"layer {self.layer} head {self.head} looks at {where}"

    def change(self, name: str, layer: int | None, x: torch.Tensor, unmasked: bool) -> torch.Tensor:
        """x, or what stands in its place."""
        if name != "pattern" or layer != self.layer:
            return x
        T = x.shape[-1]
        if self.pattern == "uniform":
            new = torch.ones(T, T) if unmasked else torch.ones(T, T).tril()
            new = new / new.sum(dim=-1, keepdim=True)
        else:
            new = torch.zeros(T, T)
            new[torch.arange(T), (torch.arange(T) - 1).clamp(min=0)] = 1.0  # the first token has only itself
        x = x.clone()
        x[:, self.head] = new.to(x)
        return x


@dataclass(frozen=True)
class RemoveMask:
    """Every token sees the whole text, those that come after it too."""

    kind: ClassVar[str] = "mask"
    layer: int | None = None
    """One layer; None for all."""

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError where there is no such layer or no mask."""
        if self.layer is not None:
            _check_layer(config, self.layer)
        if not config.causal:
            raise ValueError("this model was built without a causal mask: there is none to remove")

    def words(self) -> str:
        """What it does, briefly."""
        return f"causal mask removed{'' if self.layer is None else f' in layer {self.layer}'}"

    def change(self, name: str, layer: int | None, x: torch.Tensor, unmasked: bool) -> torch.Tensor:
        """Nothing: `edits_tap` itself puts the scores from before the mask in place of those after it."""
        return x


Edit = SwitchOff | EditCell | SwapPattern | RemoveMask
KINDS: dict[str, type] = {edit.kind: edit for edit in (SwitchOff, EditCell, SwapPattern, RemoveMask)}


def edits_tap(edits: Sequence[Edit], config: ModelConfig) -> Tap:
    """A tap that carries out these edits, in their order, in one forward pass over a whole text (no cache).

    Raises ValueError, here or in the pass, where an edit does not fit the model or the prompt.
    """
    for edit in edits:
        edit.check(config)
    open_layers = {
        layer
        for layer in range(config.n_layers)
        if not config.causal or any(isinstance(e, RemoveMask) and e.layer in (None, layer) for e in edits)
    }
    unmasked_scores: dict[int | None, torch.Tensor] = {}

    def tap(name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
        if layer in open_layers:
            if name == "scores":
                unmasked_scores[layer] = x
            elif name == "masked_scores":
                x = unmasked_scores.pop(layer)
        for edit in edits:
            x = edit.change(name, layer, x, layer in open_layers)
        return x

    return tap


def to_dict(edit: Edit) -> dict[str, Any]:
    """Plain values for JSON; `from_dict` is its inverse."""
    return {"kind": edit.kind, **dataclasses.asdict(edit)}


def from_dict(values: Any) -> Edit:
    """The edit whose `to_dict` gave these values, which anybody may have written. Raises ValueError."""
    try:
        values = dict(values)
        edit = KINDS[values.pop("kind")](**values)
        for field in dataclasses.fields(edit):
            _check_type(field.name, getattr(edit, field.name))
    except (KeyError, TypeError, ValueError) as problem:
        raise ValueError("this is no edit: choose one from the list") from problem
    return edit


def _renormalised(row: torch.Tensor, key: int, new: torch.Tensor, old: torch.Tensor, scale: bool) -> torch.Tensor:
    """The row (B, T) with sum 1: a set weight keeps its value and the others share the rest, a scaled one gives way."""
    if scale:
        total = row.sum(dim=-1, keepdim=True)
        if (total <= 0).any():
            raise ValueError("nothing is left of this row: its only weight became 0. Keep it, or do not renormalise")
        return row / total
    others = 1.0 - old
    if ((others <= 1e-12) & (new < 1.0)).any():
        raise ValueError(
            "no other token has any weight in this row, so none can take what this one gives up: "
            "do not renormalise, or choose another row"
        )
    factor = (1.0 - new) / others.clamp(min=1e-12)
    row = row * factor[:, None]
    row[:, key] = new
    return row


def _check_layer(config: ModelConfig, layer: int) -> None:
    if not 0 <= layer < config.n_layers:
        raise ValueError(f"the model has {config.n_layers} layers, counted from 0: there is no layer {layer}")


def _check_head(config: ModelConfig, head: int | None) -> None:
    if head is None or not 0 <= head < config.n_heads:
        raise ValueError(f"each layer has {config.n_heads} heads, counted from 0: there is no head {head}")


def _check_type(name: str, value: Any) -> None:
    kinds = {"part": str, "pattern": str, "value": (int, float), "scale": bool, "renormalise": bool}
    kind = kinds.get(name, int)
    optional = name in ("layer", "head")
    wrong_bool = isinstance(value, bool) and kind is not bool
    if (value is None and not optional) or (value is not None and (not isinstance(value, kind) or wrong_bool)):
        raise TypeError(name)
