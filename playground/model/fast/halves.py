"""Training in mixed precision on a CPU: a layer's products in bfloat16, each cast once, the backward written out.

B = batch, T = tokens, N = B·T, H = heads, D = d_head, d = d_model, f = d_ff.

Weights are fp32 and so are their gradients. Left to autocast, whatever a product reads is cast where it is read and its
gradient is cast back as a step of its own; and torch's fused attention, slow backwards in bfloat16, has to run in fp32.
Outside of autocast these functions compute in the dtype of what they read, so that a test can hold each to its formula.
"""

from __future__ import annotations

import functools
import math

import torch
import torch.nn.functional as F

from ..activations import activate
from .formulas import Rotation
from .grouped import through_activation
from .quicker import HandWritten

LONGEST = 128
"""Tokens up to which `Blend` was seen to beat torch's fused attention, which holds no pattern."""


def in_halves(x: torch.Tensor) -> bool:
    """Whether x is learned from in mixed precision by one thread of a CPU.

    A compiler fuses the plain formulas itself. Two threads share torch's own kernels better than these: on two
    idle cores a step took 1.07 to 1.19 times as long as by autocast (medians of three and four runs).
    """
    if torch.compiler.is_compiling() or not (torch.is_autocast_enabled("cpu") and torch.is_grad_enabled()):
        return False
    return x.is_cpu and torch.get_num_threads() == 1 and torch.get_autocast_dtype("cpu") is torch.bfloat16


class Halved(HandWritten):
    """A formula of x and others whose products are in bfloat16."""

    @staticmethod
    def pays(x, *others):
        return in_halves(x)


class Product(Halved):
    """`layers.linear`: x (…, n), weight (m, n) and bias (m,) or None."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        dtype = _dtype(x)
        rows, half = x.flatten(0, -2).to(dtype), weight.to(dtype)
        ctx.save_for_backward(x, weight, bias, rows, half)
        return _linear(rows, half, bias).view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx, grad):
        x, weight, bias, rows, half = ctx.saved_tensors
        if torch.is_grad_enabled():
            return Product.differentiate(grad.to(x.dtype), x, weight, bias)
        grad = grad.flatten(0, -2)
        to_x = (grad @ half).view_as(x).to(x.dtype) if ctx.needs_input_grad[0] else None
        return to_x, *_to_weight(grad, rows, weight, bias)


class Thought(Halved):
    """`feedforward.think`: x (B, T, d), the config, and weights and biases of up, gate and down."""

    @staticmethod
    def forward(ctx, x, config, up, gate, down, up_bias, gate_bias, down_bias):
        dtype = _dtype(x)
        rows = x.flatten(0, -2).to(dtype)
        halves = [None if weight is None else weight.to(dtype) for weight in (up, gate, down)]
        lifted, bent = _linear(rows, halves[0], up_bias), None  # (N, f)
        gates = None if gate is None else _linear(rows, halves[1], gate_bias)
        if gate is None:
            hidden = activate(config, lifted)
        else:
            bent = F.silu(gates)
            hidden = lifted * bent
        ctx.config = config
        ctx.save_for_backward(
            rows, lifted, gates, bent, hidden, *halves, x, up, gate, down, up_bias, gate_bias, down_bias
        )
        return _linear(hidden, halves[2], down_bias).view(*x.shape)

    @staticmethod
    def backward(ctx, grad):
        rows, lifted, gates, bent, hidden, up, gate, down, x, *matrices = ctx.saved_tensors
        if torch.is_grad_enabled():
            return Thought.differentiate(grad.to(x.dtype), x, ctx.config, *matrices)
        grad = grad.flatten(0, -2)
        to_down, to_down_bias = _to_weight(grad, hidden, matrices[2], matrices[5])
        to_gate = to_gate_bias = None
        if gate is None:
            to_lifted, _ = through_activation(ctx.config, grad @ down, lifted, None)
            to_rows = to_lifted @ up
        else:
            to_hidden = grad @ down
            to_gates = torch.ops.aten.silu_backward(to_hidden * lifted, gates)
            to_lifted = to_hidden.mul_(bent)
            to_gate, to_gate_bias = _to_weight(to_gates, rows, matrices[1], matrices[4])
            to_rows = torch.addmm(to_lifted @ up, to_gates, gate)
        to_up, to_up_bias = _to_weight(to_lifted, rows, matrices[0], matrices[3])
        to_x = to_rows.view_as(x).to(x.dtype)
        return to_x, None, to_up, to_gate, to_down, to_up_bias, to_gate_bias, to_down_bias


class Blend(Halved):
    """`attention.blend`: queries, keys and values (B, T, 3·H·D), the config, gains (D,) of QK-norm or None,
    cosines and sines (T, 1, D) of rotary positions or None. Forms the pattern, which is small where texts are."""

    @staticmethod
    def forward(ctx, qkv, config, q_gain, k_gain, cosines, sines):
        dtype, B, T, H, D = _dtype(qkv), *qkv.shape[:2], config.n_heads, config.d_head
        parts = qkv.view(B, T, 3 * H, D)
        qk, v = parts[:, :, : 2 * H], _by_head(parts[:, :, 2 * H :], dtype)
        scale = gains = normed = None
        if q_gain is not None or cosines is not None:
            qk = qk.to(_exact(dtype))  # (B, T, 2·H, D)
        if q_gain is not None:
            length = torch.linalg.vector_norm(qk, dim=-1, keepdim=True)
            scale = (length.square_() / D).add_(config.norm_eps).rsqrt_()
            gains = torch.cat((q_gain.expand(H, D), k_gain.expand(H, D)))
            normed = qk * scale
            qk = normed * gains
        if cosines is not None:
            qk = Rotation.value(qk, cosines, sines)
        q, k = _by_head(qk[:, :, :H], dtype), _by_head(qk[:, :, H:], dtype)  # (B·H, T, D)
        if config.causal:
            scores = torch.baddbmm(_future(T, dtype), q, k.mT, alpha=1 / math.sqrt(D))
        else:
            scores = (q @ k.mT).div_(math.sqrt(D))
        pattern = torch.softmax(scores, -1)  # (B·H, T, T)
        ctx.config = config
        ctx.save_for_backward(q, k, v, pattern, scale, gains, normed, qkv, q_gain, k_gain, cosines, sines)
        return torch.bmm(pattern, v).view(B, H, T, D).transpose(1, 2).flatten(2)

    @staticmethod
    def backward(ctx, grad):
        q, k, v, pattern, scale, gains, normed, *inputs = ctx.saved_tensors
        qkv, q_gain, _, cosines, sines = inputs
        if torch.is_grad_enabled():
            return Blend.differentiate(grad, qkv, ctx.config, *inputs[1:])
        B, T, H, D = *qkv.shape[:2], ctx.config.n_heads, ctx.config.d_head
        dtype, share = q.dtype, 1 / math.sqrt(D)
        grad = _by_head(grad.view(B, T, H, D), dtype)
        to_v = torch.bmm(pattern.mT, grad)
        to_scores = torch._softmax_backward_data(torch.bmm(grad, v.mT), pattern, -1, dtype)
        to_q = torch.baddbmm(q, to_scores, k, beta=0, alpha=share)
        to_k = torch.baddbmm(k, to_scores.mT, q, beta=0, alpha=share)
        to_q_gain = to_k_gain = None
        out = torch.empty(B, T, 3 * H, D, dtype=qkv.dtype)
        to_qk = out[:, :, : 2 * H]
        exact = to_qk
        if q_gain is not None or cosines is not None:
            exact = torch.empty(B, T, 2 * H, D, dtype=_exact(dtype))
        exact[:, :, :H].copy_(to_q.view(B, H, T, D).transpose(1, 2))
        exact[:, :, H:].copy_(to_k.view(B, H, T, D).transpose(1, 2))
        out[:, :, 2 * H :].copy_(to_v.view(B, H, T, D).transpose(1, 2))
        if cosines is not None:
            exact = Rotation.value(exact, cosines, -sines)  # its transpose turns the other way
        if q_gain is not None:
            by_gain = (exact * normed).flatten(0, 1).sum(dim=0)  # (2·H, D)
            to_q_gain, to_k_gain = by_gain[:H].sum(dim=0), by_gain[H:].sum(dim=0)
            exact = exact * gains
            mean = torch.linalg.vecdot(exact, normed).unsqueeze(-1).div_(-D)
            exact = exact.addcmul_(normed, mean).mul_(scale)
        if exact is not to_qk:
            to_qk.copy_(exact)
        return out.view_as(qkv), None, to_q_gain, to_k_gain, None, None


def _linear(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return rows @ weight.t() if bias is None else torch.addmm(bias.to(rows.dtype), rows, weight.t())


def _to_weight(
    grad: torch.Tensor, rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The gradients of a product's weight (m, n) and bias (m,) from that of its result (N, m) and its rows (N, n)."""
    to_bias = None if bias is None else grad.sum(dim=0, dtype=bias.dtype)
    return (grad.t() @ rows).to(weight.dtype), to_bias


def _by_head(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """(B, T, H, D) → (B·H, T, D), cast and copied in one pass."""
    B, T, H, D = x.shape
    return torch.empty(B, H, T, D, dtype=dtype).copy_(x.transpose(1, 2)).view(B * H, T, D)


def _dtype(x: torch.Tensor) -> torch.dtype:
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype


def _exact(dtype: torch.dtype) -> torch.dtype:
    """What norms and rotations are computed in: sums of squares want all digits."""
    return torch.float32 if dtype is torch.bfloat16 else dtype


@functools.lru_cache(maxsize=8)
def _future(T: int, dtype: torch.dtype) -> torch.Tensor:
    """(T, T): −∞ where a query must not look, else 0."""
    return torch.full((T, T), -math.inf, dtype=dtype).triu(1)
