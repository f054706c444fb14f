"""Three small formulas with their backward written out: autograd's own takes two to four times as many passes."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F

from .quicker import HandWritten


class RootMeanSquare(HandWritten):
    """`norms.rms_norm`: x (…, d) and gain (d,) of one dtype, eps."""

    @staticmethod
    def value(x, weight, eps):
        if not x.is_cpu:
            return RootMeanSquare.plain(x, weight, eps)
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)  # one pass where torch's own takes three
        return x * torch.addcmul(_constant(eps, x.dtype), length, length, value=1 / x.shape[-1]).rsqrt_() * weight

    @staticmethod
    def forward(ctx, x, weight, eps):
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = (length.square_() / x.shape[-1]).add_(eps).rsqrt_()
        ctx.eps = eps
        ctx.save_for_backward(x, weight, scale)
        return x * scale * weight

    @staticmethod
    def backward(ctx, grad):
        x, weight, scale = ctx.saved_tensors
        if torch.is_grad_enabled():
            return RootMeanSquare.differentiate(grad, x, weight, ctx.eps)
        toward = grad * x
        grad_weight = toward.flatten(0, -2).mT @ scale.flatten()
        mean = (toward @ weight).unsqueeze(-1).mul_(scale.square()).div_(-x.shape[-1])
        return (grad * weight).addcmul_(x, mean).mul_(scale), grad_weight, None


class SquaredReLU(HandWritten):
    """`activations.squared_relu`: x of any shape."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return F.relu(x).square_()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            return SquaredReLU.differentiate(grad, x)
        return F.relu(x).mul_(grad).mul_(2)


class Rotation(HandWritten):
    """`positions.rotate`: x (B, T, H, D), cosines and sines (T, 1, D), which have no gradient."""

    @staticmethod
    def value(x, cosines, sines):
        return torch.addcmul(x * cosines, torch.roll(x, x.shape[-1] // 2, dims=-1), sines)

    @staticmethod
    def forward(ctx, x, cosines, sines):
        ctx.save_for_backward(cosines, sines)
        return Rotation.value(x, cosines, sines)

    @staticmethod
    def backward(ctx, grad):
        cosines, sines = ctx.saved_tensors
        return Rotation.value(grad, cosines, -sines), None, None  # its transpose turns the other way; linear, so exact


@functools.cache
def _constant(number: float, dtype: torch.dtype) -> torch.Tensor:
    """A number as addcmul wants it."""
    return torch.tensor(number, dtype=dtype)
