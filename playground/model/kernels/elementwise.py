"""Normalisation, activation and rotation: each plain formula, and its backward pass written out beside it.

Autograd's own backward takes two to four times as many passes over the numbers: without these a training step of
"Small" takes 15 to 25 % longer on one core.
"""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

from ..config import ModelConfig
from .with_backward import HandWritten, with_backward


def rms_norm_reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x (…, d) / √(mean(x²) + eps) · weight (d,) (Zhang and Sennrich 2019)."""
    return F.rms_norm(x, weight.shape, weight, eps)


class RMSNormWithBackward(HandWritten):
    """`rms_norm_reference` with its backward pass; x and weight have one dtype."""

    @staticmethod
    def value(x, weight, eps):
        if not x.is_cpu:
            return rms_norm_reference(x, weight, eps)
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)  # one pass where torch's own takes three
        scale = torch.addcmul(_constant(eps, x.dtype), length, length, value=1 / x.shape[-1]).rsqrt_()
        return (x * scale).mul_(weight)

    @staticmethod
    def forward(ctx, x, weight, eps):
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = (length.square_() / x.shape[-1]).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight, scale)
        return x * scale * weight

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight, scale = ctx.saved_tensors
        product = grad * x
        grad_weight = product.flatten(0, -2).mT @ scale.flatten()
        mean = (product @ weight).unsqueeze(-1).mul_(scale.square()).div_(-x.shape[-1])
        return (grad * weight).addcmul_(x, mean).mul_(scale), grad_weight, None


rms_norm = with_backward(rms_norm_reference, RMSNormWithBackward)


def squared_relu_reference(x: torch.Tensor) -> torch.Tensor:
    """max(x, 0)², number by number (So et al. 2021, "Primer")."""
    return F.relu(x).square()


class SquaredReLUWithBackward(HandWritten):
    """`squared_relu_reference` with its backward pass."""

    @staticmethod
    def value(x):
        positive = F.relu(x)
        return positive.mul_(positive)  # in place: no second matrix has to be fetched from memory

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return F.relu(x).square_()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return F.relu(x).mul_(grad).mul_(2)


squared_relu = with_backward(squared_relu_reference, SquaredReLUWithBackward)


def rotate_reference(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Turn each pair of numbers of x (B, T, H, D) by its position's angle, with cosines and sines (T, 1, D).

    Both tables come from `transformer.rotary_table`; the sines carry the signs of the rotation matrix. They get no
    gradient.
    """
    return x * cosines + torch.roll(x, x.shape[-1] // 2, dims=-1) * sines


class RotationWithBackward(HandWritten):
    """`rotate_reference` with its backward pass."""

    @staticmethod
    def value(x, cosines, sines):
        return (x * cosines).addcmul_(torch.roll(x, x.shape[-1] // 2, dims=-1), sines)

    @staticmethod
    def forward(ctx, x, cosines, sines):
        ctx.save_for_backward(cosines, sines)
        return RotationWithBackward.value(x, cosines, sines)

    @staticmethod
    def backward(ctx, grad):
        cosines, sines = ctx.saved_tensors  # the transpose of a rotation turns the other way; linear, so exact
        return RotationWithBackward.value(grad, cosines, -sines), None, None


rotate = with_backward(rotate_reference, RotationWithBackward)


def activate(config: ModelConfig, x: torch.Tensor, gate: torch.Tensor | None = None) -> torch.Tensor:
    """The MLP's nonlinearity, number by number; swiglu (Shazeer 2020) scales x by the SiLU of a `gate` of x's shape."""
    if gate is not None:
        return F.silu(gate) * x
    if config.activation == "relu":
        return F.relu(x)
    if config.activation == "relu2":
        return squared_relu(x)
    return F.gelu(x, approximate=_gelu_formula(config))


def activation_backward(
    config: ModelConfig, grad: torch.Tensor, x: torch.Tensor, gate: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The gradients for x and gate, from the gradient `grad` of `activate`'s result; `grad` is overwritten."""
    if gate is not None:
        grad_gate = torch.ops.aten.silu_backward(grad * x, gate)
        return grad.mul_(F.silu(gate)), grad_gate
    if config.activation == "relu":
        return grad.mul_(x > 0), None
    if config.activation == "relu2":
        return grad.mul_(F.relu(x)).mul_(2), None
    return torch.ops.aten.gelu_backward.grad_input(grad, x, approximate=_gelu_formula(config), grad_input=grad), None


def _gelu_formula(config: ModelConfig) -> str:
    """torch's name for the exact GELU, or for its approximation by a hyperbolic tangent."""
    return "tanh" if config.gelu_tanh else "none"


@functools.cache
def _constant(number: float, dtype: torch.dtype) -> torch.Tensor:
    """A number in the form that addcmul wants."""
    return torch.tensor(number, dtype=dtype)
