"""Effect: what a change of the forward pass does to one prediction of a prompt, and to the loss on that prompt."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from ..model import Pass, Tap, Transformer
from ..training import loss_of


@dataclass(frozen=True, eq=False)
class Effect:
    """A prediction, and the loss on the prompt, without and with a change."""

    before: torch.Tensor
    """(V,) next-token probabilities of the model as it is."""
    after: torch.Tensor
    """(V,) the same with the change."""
    divergence: float
    """Kullback–Leibler divergence in nats from before to after: the surprise per token that the change adds, if
    `before` is true."""
    loss_before: float | None
    """Mean loss in nats of the prompt's own tokens after the first; None for a prompt of one token."""
    loss_after: float | None


@torch.no_grad()
def effect(model: Transformer, ids: torch.Tensor, change: Tap, position: int = -1) -> Effect:
    """Run the prompt ids (1, T) without and with what `change` does; the predictions are those after `position`.

    Raises ValueError for an empty prompt.
    """
    if not ids.numel():
        raise ValueError("The prompt is empty: type a few words")
    runs = [model(ids).logits, model(ids, Pass(tap=change)).logits]
    losses = [loss_of(logits[:, :-1], ids[:, 1:]).item() if ids.shape[1] > 1 else None for logits in runs]
    before, after = (logits[0, position].float() for logits in runs)
    # in float64 and by logarithms: a probability that fp32 holds as 0 would make it infinite
    logs = (x.double().log_softmax(dim=-1) for x in (after, before))
    divergence = F.kl_div(*logs, reduction="sum", log_target=True).item()
    return Effect(before.softmax(dim=-1), after.softmax(dim=-1), divergence, *losses)
