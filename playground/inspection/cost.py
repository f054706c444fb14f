"""Cost: what a change of the model costs in loss, measured on the same windows without and with it.

N = windows, T = tokens of a window, C = changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..data.ladder import IGNORE
from ..model import Pass, Transformer
from ..training.losses import WindowLosses, summed_losses, window_losses
from ..training.verdict import CERTAINTY, difference, student_t
from .edits import Edit, EditCell, SwitchOff, edits_tap

ROWS_AT_ONCE = 4096
"""Tokens of a forward pass: enough to keep the processor busy, few enough to stay in its caches."""


@dataclass(frozen=True)
class Cost:
    """Mean loss in nats per token before and after a change, on the same tokens."""

    before: float
    after: float
    margin: float
    """Half the width of the difference's 95 % interval, from its spread between windows; infinite for a single one."""

    @property
    def difference(self) -> float:
        """What the change costs; negative where it helps."""
        return self.after - self.before


@dataclass(frozen=True)
class RemovalMap:
    """What removing each part of the model costs."""

    before: float
    """Loss of the whole model in nats per token."""
    heads: torch.Tensor
    """(L, H) cost of switching off each head."""
    attention: torch.Tensor
    """(L,) of each layer's whole attention."""
    feedforward: torch.Tensor
    """(L,) of each feed-forward layer."""
    heads_margin: torch.Tensor
    """(L, H) half the widths of the 95 % intervals of the costs of heads."""
    sublayers_margin: torch.Tensor
    """(L, 2) the same of each layer's whole attention and feed-forward layer."""
    heads_first: torch.Tensor
    """(L, H) the dearest head, and those that these windows cannot tell from it."""
    tokens: int
    """How many predictions were judged."""


def edit_cost(model: Transformer, inputs: torch.Tensor, targets: torch.Tensor, edits: Sequence[Edit]) -> Cost:
    """What edits cost on windows (N, T). Raises ValueError for single cells, which belong to one prompt only."""
    if any(isinstance(edit, EditCell) for edit in edits):
        raise ValueError("a single cell belongs to this prompt: its cost can be measured on the prompt only")
    at_once = max(1, ROWS_AT_ONCE // inputs.shape[1])
    before = window_losses(model, inputs, targets, at_once=at_once)
    after = window_losses(model, inputs, targets, tap=edits_tap(edits, model.config), at_once=at_once)
    return _cost(before, after)


@torch.inference_mode()
def removal_map(model: Transformer, inputs: torch.Tensor, targets: torch.Tensor) -> RemovalMap:
    """What it costs on windows (N, T) to switch off each head, each layer's attention, each feed-forward layer.

    All variants share one forward pass. Up to the layer where something is missing, a variant is the model itself, so
    it joins the batch only there: the stream behind attention without head h is the whole one minus z_h through h's
    columns of W_O. A model of L layers so computes its own L blocks and (L + 1) / 2 blocks' worth per variant, minus
    the attention of the layer in question.
    """
    config = model.config
    L, H = config.n_layers, config.n_heads
    counted = (targets != IGNORE).sum(dim=1)
    # the batch has grown (1 + L·(H + 2))-fold at the end
    size = max(1, 2 * ROWS_AT_ONCE // (inputs.shape[1] * (1 + L * (H + 2) // 2)))
    sums = []
    for x, y in zip(inputs.split(size), targets.split(size)):
        logits = model(x, Pass(tap=Variants(model))).logits  # (variants · n, T, V)
        variants = logits.shape[0] // x.shape[0]
        sums.append(summed_losses(logits, y.repeat(variants, 1)).unflatten(0, (variants, -1)))
    whole, *lacking = (WindowLosses(total, counted) for total in torch.cat(sums, dim=1))
    costs = [_cost(whole, without) for without in lacking]
    table = torch.tensor([cost.difference for cost in costs]).unflatten(0, (L, H + 2))
    margins = torch.tensor([cost.margin for cost in costs]).unflatten(0, (L, H + 2))
    return RemovalMap(
        before=whole.mean,
        heads=table[:, :H],
        attention=table[:, H],
        feedforward=table[:, H + 1],
        heads_margin=margins[:, :H],
        sublayers_margin=margins[:, H:],
        heads_first=dearest([lacking[layer * (H + 2) + head] for layer in range(L) for head in range(H)]).view(L, H),
        tokens=int(counted.sum()),
    )


def dearest(lacking: Sequence[WindowLosses]) -> torch.Tensor:
    """(C,) which of these losses is the largest, and which cannot be told from it, on the same windows.

    Each is held against the largest by the two's differences on every window; at 95 % for all of them together
    (Bonferroni). On a single window nothing can be told.
    """
    first = max(lacking, key=lambda losses: losses.mean)
    others, freedom = max(len(lacking) - 1, 1), len(first.total) - 1
    wider = student_t(freedom, 1 - (1 - CERTAINTY / 100) / others) / student_t(freedom) if freedom else 1.0
    found = (difference(each, first) for each in lacking)
    return torch.tensor([each is first or behind <= wider * margin for each, (behind, margin) in zip(lacking, found)])


def removed_part(layer: int, column: int, n_heads: int) -> SwitchOff:
    """The edit that a cell of the map stands for: its heads, then its attention, then its feed-forward layer."""
    if column < n_heads:
        return SwitchOff(layer, "head", column)
    return SwitchOff(layer, "attention" if column == n_heads else "feed-forward")


class Variants:
    """A tap for one forward pass that lets the batch grow: behind every sublayer come the variants that lack it.

    Rows of the batch: n of the whole model, then for every layer so far n for each head removed, n without attention,
    n without the feed-forward layer.
    """

    def __init__(self, model: Transformer):
        self.model = model
        self.n = 0
        self.kept: dict[str, torch.Tensor] = {}

    def __call__(self, name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
        if name == "embed":
            self.n = x.shape[0]
        elif name in ("resid_pre", "z", "attn_out", "ff_out"):
            self.kept[name] = x[: self.n]  # of the whole model only
        elif name == "resid_mid":
            self.kept[name] = x[: self.n]
            return torch.cat((x, *self._without_attention(layer)))
        elif name == "resid_post":
            block, stream = self.model.blocks[layer], self.kept["resid_mid"]
            post = self.model.config.norm_placement == "post"
            return torch.cat((x, block.feedforward_norm(stream) if post else stream))
        return x

    def _without_attention(self, layer: int) -> list[torch.Tensor]:
        """The stream after attention: without each head, then without any."""
        block = self.model.blocks[layer]
        post = self.model.config.norm_placement == "post"
        columns = block.attention.out.weight.unflatten(1, (-1, self.model.config.d_head))  # (d, H, D)
        streams = [
            self.kept["resid_pre"] + self.kept["attn_out"] - self.kept["z"][:, :, head] @ columns[:, head].T
            for head in range(columns.shape[1])
        ]
        streams.append(self.kept["resid_pre"])
        return [block.attention_norm(stream) if post else stream for stream in streams]


def _cost(before: WindowLosses, after: WindowLosses) -> Cost:
    """From what is lost on the same windows without and with a change."""
    return Cost(before.mean, after.mean, difference(before, after)[1])
