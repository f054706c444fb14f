"""Mixture of experts: several feed-forward layers of which each token visits only a few.

N = tokens (batch × time), E = experts, K = experts per token, d = d_model, f = width of one expert.

A router scores the experts (N, E); softmax, then the K best, their weights renormalised to sum to 1 (the order of
Mixtral, Jiang et al. 2024). The N·K visits are sorted by expert, so that each expert is one matrix product over its own
rows: a token costs K experts, however many there are.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .config import ModelConfig
from .feedforward import FeedForward, bend
from .trace import Tap


class MixtureOfExperts(nn.Module):
    """Stands where a FeedForward stands. `forward` returns the layer's output and what balance needs to know."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        E, d, f = config.n_experts, config.d_model, config.expert_width
        self.router = nn.Linear(d, E, bias=False)
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
    ) -> tuple[torch.Tensor, Routing]:
        """Output (B, T, d) of x (B, T, d), and its Routing."""
        B, T, d = x.shape
        routing = self.route(x, tap, layer, rng)
        K = self.config.experts_per_token
        visits = routing.experts.reshape(-1)  # (N·K,) which expert each visit goes to
        order = visits.argsort(stable=True)  # visits sorted by expert
        counts = torch.bincount(visits, minlength=self.config.n_experts)
        rows_per_expert = counts.tolist()

        rows = _Dispatch.apply(x.reshape(-1, d), order, K)  # (N·K, d), one run of rows per expert
        hidden = self._hidden(rows, rows_per_expert)  # (N·K, f)
        done = _GroupedLinear.apply(hidden, self.down, getattr(self, "down_bias", None), rows_per_expert)  # (N·K, d)
        back = _Unsort.apply(done, order).view(B, T, K, d)
        out = (routing.weights.unsqueeze(-1) * back).sum(dim=2)  # (B, T, d)
        if self.config.shared_expert:
            out = out + self.shared.down(self.shared.hidden(x))
        return tap("ff_out", layer, out), routing

    def route(self, x: torch.Tensor, tap: Tap, layer: int, rng: torch.Generator | None) -> Routing:
        """Which experts each token of x (B, T, d) visits, and with what weight."""
        logits = self.router(x)  # (B, T, E)
        if rng is not None and self.config.router_noise > 0:
            noise = torch.empty_like(logits).normal_(generator=rng)
            logits = logits + self.config.router_noise * noise
        logits = tap("router_logits", layer, logits)
        probabilities = tap("router_probabilities", layer, logits.softmax(dim=-1))
        preference = probabilities
        if self.config.balance == "bias":  # decides who is chosen, never how much it counts
            preference = probabilities.detach() + self.selection_bias
        experts = preference.topk(self.config.experts_per_token, dim=-1).indices
        experts = tap("experts", layer, experts)  # (B, T, K)
        chosen = probabilities.gather(-1, experts)
        weights = tap("expert_weights", layer, chosen / chosen.sum(dim=-1, keepdim=True))  # (B, T, K)
        return Routing(logits, probabilities, experts, weights)

    def _hidden(self, rows: torch.Tensor, rows_per_expert: list[int]) -> torch.Tensor:
        """Hidden layer (N·K, f) of rows (N·K, d) that are sorted by expert."""
        up = _GroupedLinear.apply(rows, self.up, getattr(self, "up_bias", None), rows_per_expert)
        if self.config.activation == "swiglu":
            gate = _GroupedLinear.apply(rows, self.gate, getattr(self, "gate_bias", None), rows_per_expert)
            return F.silu(gate) * up
        return bend(up, self.config)


class Routing:
    """Where one layer sent its tokens: what the balance losses and the routing pictures are computed from."""

    def __init__(self, logits: torch.Tensor, probabilities: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor):
        self.logits = logits  # (B, T, E)
        self.probabilities = probabilities  # (B, T, E)
        self.experts = experts  # (B, T, K)
        self.weights = weights  # (B, T, K), rows sum to 1

    def fraction_routed(self) -> torch.Tensor:
        """Share of all visits that each expert got, (E,); sums to 1, no gradient."""
        E = self.probabilities.shape[-1]
        return torch.bincount(self.experts.reshape(-1), minlength=E) / self.experts.numel()


def balance_loss(routing: Routing, kind: str) -> torch.Tensor:
    """The term that is to keep experts evenly used; 1 for a perfectly even router of either kind.

    switch: E · Σ fraction routed · mean probability (Fedus et al. 2021, section 2.2), fractions over all K choices.
    constant: E · Σ mean probability · 1/E, which a well-known walkthrough uses. Probabilities sum to 1, so it is 1
    whatever the router does, and its gradient is zero; kept to show just that.
    """
    mean_probability = routing.probabilities.flatten(0, 1).mean(dim=0)  # (E,)
    E = mean_probability.shape[0]
    share = routing.fraction_routed() if kind == "switch" else torch.full_like(mean_probability, 1.0 / E)
    return E * (share.detach() * mean_probability).sum()


def router_z_loss(routing: Routing) -> torch.Tensor:
    """Mean squared log-sum-exp of the router's logits, which keeps them small (Zoph et al. 2022, section 3.2)."""
    return routing.logits.logsumexp(dim=-1).square().mean()


class _Dispatch(torch.autograd.Function):
    """x (N, d) → rows (N·K, d) in the order given; the gradient comes back by a gather instead of a scatter."""

    @staticmethod
    def forward(ctx, x, order, visits_per_token):
        ctx.save_for_backward(order)
        ctx.visits_per_token = visits_per_token
        return x.index_select(0, order // visits_per_token)

    @staticmethod
    def backward(ctx, grad):
        (order,) = ctx.saved_tensors
        in_visit_order = grad.index_select(0, _inverse(order))
        return in_visit_order.unflatten(0, (-1, ctx.visits_per_token)).sum(dim=1), None, None


class _Unsort(torch.autograd.Function):
    """Rows (N·K, d) sorted by expert → back in visit order; forward and backward are each one gather."""

    @staticmethod
    def forward(ctx, rows, order):
        ctx.save_for_backward(order)
        return rows.index_select(0, _inverse(order))

    @staticmethod
    def backward(ctx, grad):
        (order,) = ctx.saved_tensors
        return grad.index_select(0, order), None


class _GroupedLinear(torch.autograd.Function):
    """rows (R, n) sorted by expert, weight (E, n, m), bias (E, m) or None → (R, m), one product per expert.

    Written out with its backward because slices of one output buffer cost a third of autograd's split and cat.
    """

    @staticmethod
    def forward(ctx, rows, weight, bias, rows_per_expert):
        ctx.save_for_backward(rows, weight)
        ctx.rows_per_expert, ctx.has_bias = rows_per_expert, bias is not None
        out = rows.new_empty(rows.shape[0], weight.shape[2])
        for expert, a, b in _runs(rows_per_expert):
            if bias is None:
                torch.mm(rows[a:b], weight[expert], out=out[a:b])
            else:
                torch.addmm(bias[expert], rows[a:b], weight[expert], out=out[a:b])
        return out

    @staticmethod
    def backward(ctx, grad):
        rows, weight = ctx.saved_tensors
        grad = grad.contiguous()
        grad_rows = torch.empty_like(rows)
        grad_weight = torch.empty_like(weight)
        grad_bias = grad.new_zeros(weight.shape[0], weight.shape[2]) if ctx.has_bias else None
        for expert, count in enumerate(ctx.rows_per_expert):
            if count == 0:
                grad_weight[expert].zero_()
        for expert, a, b in _runs(ctx.rows_per_expert):
            torch.mm(grad[a:b], weight[expert].T, out=grad_rows[a:b])
            torch.mm(rows[a:b].T, grad[a:b], out=grad_weight[expert])
            if grad_bias is not None:
                torch.sum(grad[a:b], dim=0, out=grad_bias[expert])
        return grad_rows, grad_weight, grad_bias, None


def _runs(rows_per_expert: list[int]):
    """(expert, first row, row after last) of every expert that has rows."""
    start = 0
    for expert, count in enumerate(rows_per_expert):
        if count:
            yield expert, start, start + count
        start += count


def _inverse(order: torch.Tensor) -> torch.Tensor:
    """The permutation that undoes `order`."""
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(order.shape[0], device=order.device)
    return inverse
