"""Mixture of experts: several feed-forward layers of which each token visits only a few.

N = tokens (batch × time), E = experts, K = experts per token, d = d_model, f = width of one expert.

A router scores the experts (N, E); softmax, then the K best, their weights renormalised to sum to 1 (the order of
Mixtral, Jiang et al. 2024).
"""

from __future__ import annotations

import functools

import torch
from torch import nn

from .activations import activate
from .config import ModelConfig
from .fast.grouped import Experts
from .fast.layers import Linear
from .fast.quicker import quicker
from .feedforward import FeedForward
from .trace import Tap, no_tap


class MixtureOfExperts(nn.Module):
    """Stands where a FeedForward stands. `forward` returns the layer's output and what balance needs to know."""

    def __init__(self, config: ModelConfig):
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
        if config.shared_expert:
            self.shared = FeedForward(config.replace(n_experts=0, d_ff=f))
        if config.balance == "bias":
            self.register_buffer("selection_bias", torch.zeros(E))

    def forward(
        self, x: torch.Tensor, tap: Tap, layer: int, rng: torch.Generator | None
    ) -> tuple[torch.Tensor, LayerRouting]:
        """Output (B, T, d) of x (B, T, d), and its LayerRouting."""
        routing = self.route(x, tap, layer, rng)
        out = self.answer(x, routing.experts, routing.weights)
        if self.config.shared_expert:
            out = out + self.shared.down(self.shared.hidden(x))
        return tap("ff_out", layer, out), routing

    def route(self, x: torch.Tensor, tap: Tap, layer: int, rng: torch.Generator | None) -> LayerRouting:
        """Which experts each token of x (B, T, d) visits, and with what weight."""
        logits = self.router(x)  # (B, T, E)
        if rng is not None and self.config.router_noise > 0:
            noise = torch.empty_like(logits).normal_(generator=rng)
            logits = logits + self.config.router_noise * noise
        logits = tap("router_logits", layer, logits)
        probabilities, preference = None, logits
        if tap is not no_tap or self.config.balance == "bias":
            probabilities = tap("router_probabilities", layer, logits.softmax(dim=-1))
        if self.config.balance == "bias":  # decides who is chosen, never how much it counts
            preference = probabilities.detach() + self.selection_bias
        experts = preference.topk(self.config.experts_per_token, dim=-1).indices
        if self.config.balance == "bias":  # their order is the biased preference's
            experts = heaviest_first(experts, logits)
        experts = tap("experts", layer, experts)  # (B, T, K)
        # the softmax of the chosen is the softmax of all, renormalised over the chosen
        weights = tap("expert_weights", layer, logits.gather(-1, experts).softmax(dim=-1))  # (B, T, K)
        return LayerRouting(logits, probabilities, experts, weights)

    def answer(self, x: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Each token's experts' answers, summed with their weights: (B, T, d) from x (B, T, d) and two (B, T, K)."""
        names = ("up", "gate", "down", "up_bias", "gate_bias", "down_bias")
        tokens, *matrices = x.flatten(0, 1), *map(self._parameters.get, names)
        device = x.device.type
        if torch.is_autocast_enabled(device):  # in its dtype, like any other linear layer
            dtype = torch.get_autocast_dtype(device)
            tokens, *matrices = (None if each is None else each.to(dtype) for each in (tokens, *matrices))
        return visit(tokens, weights.flatten(0, 1), experts.flatten(0, 1), self.config, *matrices).view_as(x)

    @classmethod
    def stay_uncompiled(cls) -> None:
        """Have torch.compile call the experts as they are: their rows change with every batch, its kernels cannot."""
        if not getattr(cls.answer, "_torchdynamo_disable", False):
            cls.answer = torch.compiler.disable(cls.answer)


@quicker(by=Experts)
def visit(
    x: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    config: ModelConfig,
    up: torch.Tensor,
    gate: torch.Tensor | None,
    down: torch.Tensor,
    up_bias: torch.Tensor | None,
    gate_bias: torch.Tensor | None,
    down_bias: torch.Tensor | None,
) -> torch.Tensor:
    """Each token's experts' answers, summed with their weights: (N, d) from x (N, d), weights and experts (N, K).

    `up` and `gate` (E, d, f), `down` (E, f, d), their biases (E, f) and (E, d); whatever is not there is None.
    """

    out = torch.zeros_like(x)
    for e in range(config.n_experts):
        token, place = (experts == e).nonzero(as_tuple=True)  # who visits, and as which of its choices
        lifted = _linear(x[token], up, up_bias, e)
        gates = None if gate is None else _linear(x[token], gate, gate_bias, e)
        answers = _linear(activate(config, lifted, gates), down, down_bias, e)
        out = out.index_add(0, token, answers * weights[token, place, None].to(x.dtype))
    return out


def _linear(rows: torch.Tensor, matrices: torch.Tensor, biases: torch.Tensor | None, e: int) -> torch.Tensor:
    return rows @ matrices[e] if biases is None else rows @ matrices[e] + biases[e]


def heaviest_first(experts: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Chosen experts (…, K) in the order of the weight they get, by the router's logits (…, E)."""
    return experts.gather(-1, logits.gather(-1, experts).argsort(dim=-1, descending=True))


class LayerRouting:
    """Where one layer sent its tokens: what the balance losses and the routing pictures are computed from."""

    def __init__(
        self, logits: torch.Tensor, probabilities: torch.Tensor | None, experts: torch.Tensor, weights: torch.Tensor
    ):
        self.logits = logits  # (B, T, E)
        if probabilities is not None:
            self.probabilities = probabilities
        self.experts = experts  # (B, T, K)
        self.weights = weights  # (B, T, K), rows sum to 1

    @functools.cached_property
    def probabilities(self) -> torch.Tensor:
        """(B, T, E), the softmax of the logits: formed when somebody asks, since the layer itself needs no more."""
        return self.logits.softmax(dim=-1)

    def fraction_routed(self) -> torch.Tensor:
        """Share of all visits that each expert got, (E,); sums to 1, no gradient."""
        E = self.logits.shape[-1]
        return torch.bincount(self.experts.reshape(-1), minlength=E) / self.experts.numel()


def balance_loss(routing: LayerRouting, kind: str) -> torch.Tensor:
    """The term that is to keep experts evenly used; 1 for a perfectly even router of either kind.

    switch: E · Σ fraction routed · mean probability (Fedus et al. 2021, section 2.2), fractions over all K choices.
    constant: E · Σ mean probability · 1/E, which a well-known walkthrough uses. Probabilities sum to 1, so it is 1
    whatever the router does, and its gradient is zero; kept to show just that.
    """
    mean_probability = routing.probabilities.flatten(0, 1).mean(dim=0)  # (E,)
    E = mean_probability.shape[0]
    share = routing.fraction_routed() if kind == "switch" else torch.full_like(mean_probability, 1.0 / E)
    return E * (share.detach() * mean_probability).sum()


def router_z_loss(routing: LayerRouting) -> torch.Tensor:
    """Mean squared log-sum-exp of the router's logits, which keeps them small (Zoph et al. 2022, section 3.2)."""
    return routing.logits.logsumexp(dim=-1).square().mean()
