"""Rerouting: taps that take experts away or force a token's route, and what each expert is worth.

Every edit is a tap of one forward pass: the stored model is never touched.
B = batch, T = tokens, E = experts, K = experts per token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from ..model import Tap, Transformer
from ..model.moe import heaviest_first
from ..training.losses import window_losses
from ..training.verdict import difference
from .cost import dearest
from .routing import expert_layers


def without_experts(model: Transformer, off: Mapping[int, Sequence[int]]) -> Tap:
    """Nobody may visit these experts {layer: experts}; the router's next choice takes over.

    Their scores become −∞ before the softmax, as if the router had never had them. One tap serves one forward pass
    after another, but not two at the same time.

    Raises ValueError where fewer experts than each token visits would be left.
    """
    E, K = _checked(model, off)
    gone = {layer: torch.tensor(sorted(set(experts)), dtype=torch.long) for layer, experts in off.items() if experts}
    for layer, experts in gone.items():
        if E == K:
            raise ValueError(
                f"Every token visits all {E} experts, so none can be switched off: there is no next choice that could "
                "take over. Silence them instead"
            )
        if E - len(experts) < K:
            raise ValueError(
                f"Every token visits {K} of the {E} experts, so at most {E - K} can be switched off in a layer; "
                f"{len(experts)} are in layer {layer}"
            )
    probabilities: dict[int, torch.Tensor] = {}

    def tap(name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
        if layer not in gone:
            return x
        if name == "router_logits":
            return x.index_fill(-1, gone[layer], float("-inf"))
        if name == "router_probabilities":
            probabilities[layer] = x
        if name == "experts" and model.config.balance == "bias":  # the bias could still choose what has probability 0
            preference = probabilities[layer] + model.blocks[layer].feedforward.selection_bias
            chosen = preference.index_fill(-1, gone[layer], float("-inf")).topk(K, dim=-1).indices
            return heaviest_first(chosen, probabilities[layer])
        return x

    return tap


def silenced_experts(model: Transformer, off: Mapping[int, Sequence[int]]) -> Tap:
    """These experts {layer: experts} are visited as before, but their answers count nothing: no other takes over."""
    _checked(model, off)
    gone = {layer: torch.tensor(sorted(set(experts)), dtype=torch.long) for layer, experts in off.items() if experts}
    visited: dict[int, torch.Tensor] = {}

    def tap(name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
        if layer not in gone:
            return x
        if name == "experts":
            visited[layer] = x
        if name == "expert_weights":
            return x.masked_fill(torch.isin(visited[layer], gone[layer]), 0.0)
        return x

    return tap


def forced_route(model: Transformer, route: Mapping[int, int], positions: Sequence[int] | None = None) -> Tap:
    """Send tokens to one expert per layer {layer: expert}, whatever the router says; that expert counts fully.

    `positions` names the tokens (from 0); None sends all of them.
    """
    _checked(model, {layer: [expert] for layer, expert in route.items()})

    def tap(name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
        if layer not in route or name not in ("experts", "expert_weights"):
            return x
        x = x.clone()
        places = slice(None) if positions is None else torch.tensor(list(positions), dtype=torch.long)
        if name == "experts":
            x[:, places] = route[layer]
        else:
            x[:, places] = 0.0
            x[:, places, 0] = 1.0
        return x

    return tap


@dataclass(frozen=True, eq=False)
class Worth:
    """What each expert is worth on a text."""

    before: float
    """Loss of the whole model in nats per token."""
    costs: torch.Tensor
    """(L, E) by how much it rises where one expert is switched off and the router's next choice takes over."""
    margins: torch.Tensor
    """(L, E) half the widths of the costs' 95 % intervals, from their spread between windows."""
    first: torch.Tensor
    """(L, E) the dearest expert, and those that these windows cannot tell from it."""


def cost_of_each_expert(model: Transformer, inputs: torch.Tensor, targets: torch.Tensor) -> Worth:
    """What the loss on windows (N, T) rises by where one expert is switched off."""
    plain = window_losses(model, inputs, targets)
    lacking = [
        window_losses(model, inputs, targets, tap=without_experts(model, {layer: [e]}))
        for layer in expert_layers(model.config)
        for e in range(model.config.n_experts)
    ]
    costs, margins = torch.tensor([difference(plain, each) for each in lacking]).T.unflatten(
        1, (-1, model.config.n_experts)
    )
    return Worth(plain.mean, costs, margins, dearest(lacking).view(costs.shape))


def _checked(model: Transformer, named: Mapping[int, Sequence[int]]) -> tuple[int, int]:
    """(E, K) once every layer and expert is known to exist."""
    layers, E = expert_layers(model.config), model.config.n_experts
    for layer, experts in named.items():
        if layer not in layers:
            raise ValueError(f"Layer {layer} has no experts: choose one of {', '.join(map(str, layers))}")
        for expert in experts:
            if not 0 <= expert < E:
                raise ValueError(f"There is no expert {expert}: they are numbered 0 to {E - 1}")
    return E, model.config.experts_per_token
