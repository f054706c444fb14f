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
from .undrawn import Linear


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
    ) -> tuple[torch.Tensor, Routing]:
        """Output (B, T, d) of x (B, T, d), and its Routing."""
        B, T, d = x.shape
        routing = self.route(x, tap, layer, rng)
        K = self.config.experts_per_token
        visits = routing.experts.reshape(-1)  # (N·K,) which expert each visit goes to
        order = visits.argsort(stable=True)  # visits sorted by expert
        rows_per_expert = torch.bincount(visits, minlength=self.config.n_experts).tolist()
        tokens = order // K  # (N·K,) which token each row belongs to
        places = _inverse(order).view(-1, K)  # (N, K) which rows belong to each token

        rows = _Dispatch.apply(x.reshape(-1, d), tokens, places)  # (N·K, d), one run of rows per expert
        hidden = self._hidden(rows, rows_per_expert)  # (N·K, f)
        done = _grouped_linear(hidden, self.down, getattr(self, "down_bias", None), rows_per_expert)  # (N·K, d)
        out = _Combine.apply(done, routing.weights.reshape(-1, K), order, tokens, places).view(B, T, d)
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
        weights = tap("expert_weights", layer, _Renormalised.apply(probabilities, experts))  # (B, T, K)
        return Routing(logits, probabilities, experts, weights)

    def _hidden(self, rows: torch.Tensor, rows_per_expert: list[int]) -> torch.Tensor:
        """Hidden layer (N·K, f) of rows (N·K, d) that are sorted by expert."""
        up = _grouped_linear(rows, self.up, getattr(self, "up_bias", None), rows_per_expert)
        if self.config.activation == "swiglu":
            gate = _grouped_linear(rows, self.gate, getattr(self, "gate_bias", None), rows_per_expert)
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


class _Renormalised(torch.autograd.Function):
    """Probabilities (B, T, E) of the chosen experts (B, T, K), divided by their sum: (B, T, K)."""

    @staticmethod
    def forward(ctx, probabilities, experts):
        chosen = probabilities.gather(-1, experts)
        total = chosen.sum(dim=-1, keepdim=True)
        weights = chosen.div_(total)
        ctx.n_experts = probabilities.shape[-1]
        ctx.save_for_backward(weights, total, experts)
        return weights

    @staticmethod
    def backward(ctx, grad):
        weights, total, experts = ctx.saved_tensors
        grad_chosen = (grad - torch.linalg.vecdot(grad, weights).unsqueeze(-1)).div_(total)
        grad_probabilities = grad.new_zeros(*experts.shape[:-1], ctx.n_experts)
        # added, not written: a forced route may name an expert twice
        return grad_probabilities.scatter_add_(-1, experts, grad_chosen), None


class _Dispatch(torch.autograd.Function):
    """x (N, d) → rows (N·K, d) sorted by expert; the gradient comes back as one gather and sum instead of a scatter."""

    @staticmethod
    def forward(ctx, x, tokens, places):
        ctx.save_for_backward(places)
        return x.index_select(0, tokens)

    @staticmethod
    def backward(ctx, grad):
        (places,) = ctx.saved_tensors
        return F.embedding_bag(places, grad, mode="sum"), None, None


class _Combine(torch.autograd.Function):
    """Rows (N·K, d) sorted by expert, weights (N, K) → each token's weighted sum (N, d), without unsorting in between.

    A bag of an embedding is the sum of some rows of a table, each times its weight: one pass over the rows.
    """

    @staticmethod
    def forward(ctx, rows, weights, order, tokens, places):
        weights = weights.to(rows.dtype)
        ctx.save_for_backward(rows, weights, order, tokens, places)
        return F.embedding_bag(places, rows, mode="sum", per_sample_weights=weights)

    @staticmethod
    def backward(ctx, grad):
        rows, weights, order, tokens, places = ctx.saved_tensors
        per_row = grad.index_select(0, tokens)  # (N·K, d)
        grad_weights = torch.linalg.vecdot(rows, per_row).index_select(0, places.flatten()).view_as(weights)
        grad_rows = per_row.mul_(weights.flatten().index_select(0, order).unsqueeze(1))
        return grad_rows, grad_weights, None, None, None


def _grouped_linear(
    rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, rows_per_expert: list[int]
) -> torch.Tensor:
    """See `_GroupedLinear`; under autocast in its dtype, like any other linear layer."""
    device = rows.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        rows, weight, bias = rows.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
    return _GroupedLinear.apply(rows, weight, bias, rows_per_expert)


class _GroupedLinear(torch.autograd.Function):
    """rows (R, n) sorted by expert, weight (E, n, m), bias (E, m) or None → (R, m), one product per expert.

    Written out with its backward because slices of one output buffer cost a third of autograd's split and cat. All
    slices of a tensor are made by one call: at these sizes, making them one by one takes a tenth of the time.
    """

    @staticmethod
    def forward(ctx, rows, weight, bias, rows_per_expert):
        ctx.save_for_backward(rows, weight)
        ctx.rows_per_expert, ctx.has_bias = rows_per_expert, bias is not None
        out = rows.new_empty(rows.shape[0], weight.shape[2])
        for expert, x, w, y in _used(rows_per_expert, rows.split(rows_per_expert), weight.unbind(),
                                     out.split(rows_per_expert)):  # fmt: skip
            if bias is None:
                torch.mm(x, w, out=y)
            else:
                torch.addmm(bias[expert], x, w, out=y)
        return out

    @staticmethod
    def backward(ctx, grad):
        rows, weight = ctx.saved_tensors
        counts, grad = ctx.rows_per_expert, grad.contiguous()
        grad_rows, grad_weight = torch.empty_like(rows), torch.empty_like(weight)
        for expert, count in enumerate(counts):
            if count == 0:
                grad_weight[expert].zero_()
        for _, g, w, x, to_rows, to_weight in _used(
            counts, grad.split(counts), weight.mT.unbind(), rows.T.split(counts, dim=1), grad_rows.split(counts),
            grad_weight.unbind(),
        ):  # fmt: skip
            torch.mm(g, w, out=to_rows)
            torch.mm(x, g, out=to_weight)
        grad_bias = None
        if ctx.has_bias:
            grad_bias = grad.new_zeros(weight.shape[0], weight.shape[2])
            for expert, g in _used(counts, grad.split(counts)):
                torch.sum(g, dim=0, out=grad_bias[expert])
        return grad_rows, grad_weight, grad_bias, None


def _used(rows_per_expert: list[int], *parts: tuple[torch.Tensor, ...]):
    """(expert, its slice of each of the parts) of every expert that has rows."""
    return (each for each in zip(range(len(rows_per_expert)), *parts) if rows_per_expert[each[0]])


def _inverse(order: torch.Tensor) -> torch.Tensor:
    """The permutation that undoes `order`."""
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(order.shape[0], device=order.device)
    return inverse
