"""Cost: what a change to the forward pass does to one prediction (`effect`) and to the loss (`edit_cost`).

The removal map switches off every head and sublayer in turn, `expert_costs` every expert. Losses with and without a
change are measured on the same windows. N = windows, T = tokens per window, V = vocabulary, C = changes,
L = layers, H = heads, E = experts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from ..data.baselines import IGNORE
from ..model import Pass, Tap, Transformer
from ..training import loss_of
from ..training.losses import WindowLosses, summed_losses, window_losses
from ..training.verdict import CERTAINTY, difference, student_t
from .edits import Edit, EditCell, SwitchOff, SwitchOffExperts, edits_tap
from .routing import expert_layers

ROWS_AT_ONCE = 4096
"""Tokens per forward pass: enough to keep the CPU busy, few enough to stay in its caches."""


@dataclass(frozen=True, eq=False)
class Effect:
    """The next-token prediction and the loss on the prompt, without a change and with it."""

    before: torch.Tensor
    """(V,) next-token probabilities of the unedited model."""
    after: torch.Tensor
    """(V,) the same with the change."""
    divergence: float
    """Kullback–Leibler divergence in nats from before to after: the surprise per token that the change adds, if
    `before` is true."""
    loss_before: float | None
    """Mean loss in nats on the prompt's tokens after the first; None for a prompt of one token."""
    loss_after: float | None


@torch.no_grad()
def effect(model: Transformer, ids: torch.Tensor, change: Tap, position: int = -1) -> Effect:
    """Run the prompt ids (1, T) without and with `change`; the predictions compared are those after `position`.

    Raises ValueError for an empty prompt.
    """
    if not ids.numel():
        raise ValueError("The prompt is empty: type a few words")
    runs = [model(ids).logits, model(ids, Pass(tap=change)).logits]
    losses = [loss_of(logits[:, :-1], ids[:, 1:]).item() if ids.shape[1] > 1 else None for logits in runs]
    before, after = (logits[0, position].float().cpu() for logits in runs)
    # in float64 and by logarithms: a probability that is 0 in fp32 would make the divergence infinite
    logs = (x.double().log_softmax(dim=-1) for x in (after, before))
    divergence = F.kl_div(*logs, reduction="sum", log_target=True).item()
    return Effect(before.softmax(dim=-1), after.softmax(dim=-1), divergence, *losses)


# ---- loss ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """Mean loss in nats per token before and after a change, on the same tokens."""

    before: float
    after: float
    margin: float
    """Half the width of the difference's 95 % interval, from its spread between windows; infinite for one window."""

    @property
    def difference(self) -> float:
        """What the change costs; negative where it helps."""
        return self.after - self.before


@dataclass(frozen=True, eq=False)
class PartCosts:
    """The cost of switching off each part of a model: heads and sublayers (`removal_map`), or experts."""

    before: float
    """Loss of the whole model in nats per token."""
    costs: torch.Tensor
    """(L, H + 2) the rise in loss without each head, without attention, and without the feed-forward layer; or (L, E)
    without each expert, for the L layers with experts."""
    margins: torch.Tensor
    """Half the widths of the costs' 95 % intervals, from their spread between windows; of the same shape."""
    first: torch.Tensor
    """(L, H) or (L, E) True for the costliest head or expert, and for those that these windows cannot tell from it."""
    tokens: int
    """How many predictions were scored."""


def edit_cost(model: Transformer, inputs: torch.Tensor, targets: torch.Tensor, edits: Sequence[Edit]) -> Cost:
    """What edits cost on windows (N, T). Raises ValueError for edits of single cells, which belong to one prompt."""
    if any(isinstance(edit, EditCell) for edit in edits):
        raise ValueError("a single cell belongs to this prompt: its cost can be measured on the prompt only")
    at_once = max(1, ROWS_AT_ONCE // inputs.shape[1])
    before = window_losses(model, inputs, targets, at_once=at_once)
    after = window_losses(model, inputs, targets, tap=edits_tap(edits, model.config), at_once=at_once)
    return Cost(before.mean, after.mean, difference(before, after)[1])


@torch.inference_mode()
def removal_map(model: Transformer, inputs: torch.Tensor, targets: torch.Tensor) -> PartCosts:
    """Loss added on windows (N, T) by switching off each head, each layer's attention, each MLP.

    All variants share one forward pass. Up to the layer where something is missing, a variant equals the model,
    so it joins the batch there. Without head h, the stream after attention is the whole stream minus z_h through h's
    columns of W_O. So a model of L layers computes its own L blocks, plus (L + 1) / 2 blocks per variant, minus the
    attention of that variant's layer.
    """
    config = model.config
    L, H = config.n_layers, config.n_heads
    counted = (targets != IGNORE).sum(dim=1).cpu()
    # the batch has grown (1 + L·(H + 2))-fold at the end
    size = max(1, 2 * ROWS_AT_ONCE // (inputs.shape[1] * (1 + L * (H + 2) // 2)))
    sums = []
    for x, y in zip(inputs.split(size), targets.split(size)):
        logits = model(x, Pass(tap=Variants(model))).logits  # (variants · n, T, V)
        variants = logits.shape[0] // x.shape[0]
        sums.append(summed_losses(logits, y.repeat(variants, 1)).unflatten(0, (variants, -1)))
    whole, *lacking = (WindowLosses(total, counted) for total in torch.cat(sums, dim=1))
    costs, margins = torch.tensor([difference(whole, each) for each in lacking]).T.unflatten(1, (L, H + 2))
    heads = [each for i, each in enumerate(lacking) if i % (H + 2) < H]
    return PartCosts(whole.mean, costs, margins, costliest(heads).view(L, H), int(counted.sum()))


def expert_costs(model: Transformer, inputs: torch.Tensor, targets: torch.Tensor) -> PartCosts:
    """The cost on windows (N, T) of switching off each expert, so that the router's next choice takes over."""
    config = model.config
    whole = window_losses(model, inputs, targets)
    lacking = [
        window_losses(model, inputs, targets, tap=edits_tap([SwitchOffExperts(layer, (expert,))], config))
        for layer in expert_layers(config)
        for expert in range(config.n_experts)
    ]
    costs, margins = torch.tensor([difference(whole, each) for each in lacking]).T.unflatten(1, (-1, config.n_experts))
    return PartCosts(whole.mean, costs, margins, costliest(lacking).view(costs.shape), int(whole.tokens.sum()))


def costliest(lacking: Sequence[WindowLosses]) -> torch.Tensor:
    """(C,) True for the largest of these losses, and for those that cannot be told from it, on the same windows.

    Each is compared with the largest by their differences on every window, at 95 % for all of them together
    (Bonferroni). From a single window nothing can be told.
    """
    first = max(lacking, key=lambda losses: losses.mean)
    others, freedom = max(len(lacking) - 1, 1), len(first.total) - 1
    wider = student_t(freedom, 1 - (1 - CERTAINTY / 100) / others) / student_t(freedom) if freedom else 1.0
    behind = (difference(each, first) for each in lacking)
    return torch.tensor([each is first or less <= wider * margin for each, (less, margin) in zip(lacking, behind)])


def removed_part(layer: int, column: int, n_heads: int) -> SwitchOff:
    """The edit for a cell of the map; columns are the heads, then attention, then the feed-forward layer."""
    if column < n_heads:
        return SwitchOff(layer, "head", column)
    return SwitchOff(layer, "attention" if column == n_heads else "feed-forward")


class Variants:
    """A tap for one forward pass that lets the batch grow: after every sublayer, the variants without it join.

    Rows of the batch: n for the whole model; then, for every layer so far, n for each head removed, n without
    attention, n without the feed-forward layer.
    """

    def __init__(self, model: Transformer):
        self.model = model
        self.n = 0
        self.whole: dict[str, torch.Tensor] = {}
        """Intermediates of the whole model only."""

    def __call__(self, name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
        if name == "embed":
            self.n = x.shape[0]
        elif name in ("resid_pre", "z", "attn_out", "ff_out"):
            self.whole[name] = x[: self.n]
        elif name == "resid_mid":
            self.whole[name] = x[: self.n]
            return torch.cat((x, *self._without_attention(layer)))
        elif name == "resid_post":
            block, stream = self.model.blocks[layer], self.whole["resid_mid"]
            post = self.model.config.norm_placement == "post"
            return torch.cat((x, block.feedforward_norm(stream) if post else stream))
        return x

    def _without_attention(self, layer: int) -> list[torch.Tensor]:
        """The stream after attention: without each head in turn, then without all of them."""
        block = self.model.blocks[layer]
        post = self.model.config.norm_placement == "post"
        columns = block.attention.out.weight.unflatten(1, (-1, self.model.config.d_head))  # (d, H, D)
        streams = [
            self.whole["resid_pre"] + self.whole["attn_out"] - self.whole["z"][:, :, head] @ columns[:, head].T
            for head in range(columns.shape[1])
        ]
        streams.append(self.whole["resid_pre"])
        return [block.attention_norm(stream) if post else stream for stream in streams]
