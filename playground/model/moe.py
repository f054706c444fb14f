"""Mixture of experts: several MLPs of which each token uses only a few.

B = batch, T = tokens, N = B·T, E = experts, K = experts per token, d = d_model, f = width of one expert.

A router scores the experts (B, T, E); each token goes to the K best, and their outputs are summed, weighted with the
softmax of their scores (the order of Mixtral, Jiang et al. 2024). Padding is scored, but its choices are neither
carried out nor counted: only a shared expert runs on it.
"""

from __future__ import annotations

import torch
from torch import nn

from .config import ModelConfig
from .forward_pass import Pass
from .kernels.experts import apply_experts
from .kernels.layers import Linear
from .trace import no_tap


class MixtureOfExperts(nn.Module):
    """Takes the place of an MLP. `forward` returns the layer's output and its routing."""

    def __init__(self, config: ModelConfig, shared: nn.Module | None = None):
        """`shared`: an MLP that every token passes as well, or None."""
        super().__init__()
        self.config = config
        E, d, f = config.n_experts, config.d_model, config.expert_width
        self.router = Linear(d, E, bias=False)
        self.up = nn.Parameter(torch.empty(E, d, f))
        if config.activation == "swiglu":
            self.gate = nn.Parameter(torch.empty(E, d, f))
        self.down = nn.Parameter(torch.empty(E, f, d))
        if config.feedforward_bias:
            self.up_bias = nn.Parameter(torch.zeros(E, f))
            if config.activation == "swiglu":
                self.gate_bias = nn.Parameter(torch.zeros(E, f))
            self.down_bias = nn.Parameter(torch.zeros(E, d))
        if shared is not None:
            self.shared = shared
        if config.balance == "bias":
            self.register_buffer("selection_bias", torch.zeros(E))
        self.kernel = apply_experts  # `hide_experts` wraps it

    def forward(self, x: torch.Tensor, given: Pass, layer: int) -> tuple[torch.Tensor, LayerRouting]:
        """The output (B, T, d) for x (B, T, d), and where its tokens went."""
        routing = self.route(x, given, layer)
        if given.mask is None:
            out = self.apply_experts(x, routing.experts, routing.weights)
        else:
            real = given.mask  # (B, T)
            rows = self.apply_experts(x[real][None], routing.experts[real][None], routing.weights[real][None])
            out = torch.zeros_like(x, dtype=rows.dtype).masked_scatter(real.unsqueeze(-1).to(x.device), rows)
        if self.config.shared_expert:
            out = out + self.shared.down(self.shared.hidden(x))
        return given.tap("ff_out", layer, out), routing

    def route(self, x: torch.Tensor, given: Pass, layer: int) -> LayerRouting:
        """Choose the experts of each token of x (B, T, d), and their weights."""
        logits = self.router(x)  # (B, T, E)
        if given.generator is not None and self.config.router_noise > 0:
            noise = torch.empty_like(logits).normal_(generator=given.generator)
            logits = logits + self.config.router_noise * noise
        logits = given.tap("router_logits", layer, logits)
        probabilities, preference = None, logits
        if given.tap is not no_tap or self.config.balance == "bias":
            probabilities = given.tap("router_probabilities", layer, logits.softmax(dim=-1))
        if self.config.balance == "bias":  # decides which experts are chosen, never how much they count
            preference = probabilities.detach() + self.selection_bias
        experts = preference.topk(self.config.experts_per_token, dim=-1).indices
        if self.config.balance == "bias":  # their order is the biased preference's
            experts = heaviest_first(experts, logits)
        experts = given.tap("experts", layer, experts)  # (B, T, K)
        # the softmax of the chosen is the softmax of all, renormalised over the chosen
        weights = given.tap("expert_weights", layer, logits.gather(-1, experts).softmax(dim=-1))  # (B, T, K)
        return LayerRouting(logits, probabilities, experts, weights, given.mask)

    def apply_experts(self, x: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """The weighted sum (B, T, d) of each token's experts' outputs, given x (B, T, d), ids and weights (B, T, K)."""
        names = ("up", "gate", "down", "up_bias", "gate_bias", "down_bias")
        tokens, *matrices = x.flatten(0, 1), *map(self._parameters.get, names)
        device = x.device.type
        if torch.is_autocast_enabled(device):  # in its dtype, like any other linear layer
            dtype = torch.get_autocast_dtype(device)
            tokens, *matrices = (None if each is None else each.to(dtype) for each in (tokens, *matrices))
        return self.kernel(tokens, experts.flatten(0, 1), weights.flatten(0, 1), self.config, *matrices).view_as(x)


def hide_experts(model: nn.Module) -> None:
    """Keep torch.compile out of the experts: their row counts vary by batch, and compiled kernels need fixed shapes."""
    for part in model.modules():
        if isinstance(part, MixtureOfExperts):
            part.kernel = torch.compiler.disable(apply_experts)


def heaviest_first(experts: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Sort the chosen experts (…, K) by the weight they get, read from the router's logits (…, E)."""
    return experts.gather(-1, logits.gather(-1, experts).argsort(dim=-1, descending=True))


class LayerRouting:
    """Where one layer sent its tokens: the balance losses and the routing pictures are computed from it."""

    def __init__(
        self,
        logits: torch.Tensor,
        probabilities: torch.Tensor | None,
        experts: torch.Tensor,
        weights: torch.Tensor,
        mask: torch.Tensor | None = None,
    ):
        self.logits = logits  # (B, T, E)
        self._probabilities = probabilities  # (B, T, E), or None until they are needed
        self.experts = experts  # (B, T, K)
        self.weights = weights  # (B, T, K), rows sum to 1
        self.mask = mask  # (B, T), False for padding, or None

    @property
    def probabilities(self) -> torch.Tensor:
        """(B, T, E), the softmax of all logits; the layer itself only needs those of the chosen experts."""
        if self._probabilities is None:
            self._probabilities = self.logits.softmax(dim=-1)
        return self._probabilities

    def real(self, x: torch.Tensor) -> torch.Tensor:
        """The rows of x (B, T, …) that belong to real tokens, (n, …)."""
        return x.flatten(0, 1) if self.mask is None else x[self.mask]

    def fraction_routed(self) -> torch.Tensor:
        """Share of the routed tokens that each expert got, (E,); sums to 1, no gradient."""
        experts = self.real(self.experts).flatten()
        return torch.bincount(experts, minlength=self.logits.shape[-1]) / len(experts)

    def mean_probability(self) -> torch.Tensor:
        """Mean router probability of each expert over the real tokens, (E,)."""
        return self.real(self.probabilities).mean(dim=0)


def auxiliary_loss(routings: list[LayerRouting], config: ModelConfig) -> torch.Tensor:
    """The weighted losses that keep experts in use, averaged over the MoE layers, ()."""
    total = torch.zeros((), device=routings[0].logits.device)
    for routing in routings:
        if config.balance in ("switch", "constant"):
            total = total + config.balance_weight * balance_loss(routing, config.balance)
        if config.router_z_weight:
            total = total + config.router_z_weight * router_z_loss(routing)
    return total / len(routings)


def balance_loss(routing: LayerRouting, kind: str) -> torch.Tensor:
    """The term that keeps experts evenly used, (); 1 for a perfectly even router of either kind.

    switch: E · Σ fraction routed · mean probability (Fedus et al. 2021, section 2.2), fractions over all K choices.
    constant: E · Σ mean probability · 1/E, which a well-known walkthrough uses. Probabilities sum to 1, so this is 1
    whatever the router does, with a gradient of zero; it is kept to show just that.
    """
    mean_probability = routing.mean_probability()  # (E,)
    E = mean_probability.shape[0]
    share = routing.fraction_routed() if kind == "switch" else torch.full_like(mean_probability, 1.0 / E)
    return E * (share.detach() * mean_probability).sum()


def router_z_loss(routing: LayerRouting) -> torch.Tensor:
    """Mean squared log-sum-exp of the router's logits, which keeps them small (Zoph et al. 2022, section 3.2), ()."""
    return routing.real(routing.logits).logsumexp(dim=-1).square().mean()
