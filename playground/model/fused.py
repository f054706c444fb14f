"""Three small functions with their backward written out, because autograd's own takes two to four times as many passes.

Each equals its plain formula (a test holds it to that, gradients too). On a GPU, or while tracing a compiled graph, the
plain formula is used: there the compiler or the kernel library fuses it better.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    """x / √(mean(x²) + eps) · gain over the last dimension (Zhang and Sennrich 2019)."""

    def __init__(self, width: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.register_buffer("floor", torch.tensor(eps), persistent=False)  # eps once more, as addcmul wants it

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.device.type == "cpu" and x.dtype == torch.float32 and not torch.compiler.is_compiling():
            if torch.is_grad_enabled():
                return _RMSNorm.apply(x, self.weight, self.eps)
            length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)  # one pass where torch's own takes three
            scale = torch.addcmul(self.floor, length, length, value=1.0 / x.shape[-1]).rsqrt_()
            return x * scale * self.weight
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def squared_relu(x: torch.Tensor) -> torch.Tensor:
    """max(x, 0)², number by number."""
    return _SquaredReLU.apply(x) if written_out(x) else F.relu(x).square()


def rotate_pairs(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """x · cosines + (x with its halves swapped) · sines, for x (B, T, H, D) and tables (T, 1, D)."""
    return _Rotate.apply(x, cosines, sines) if written_out(x) else _rotated(x, cosines, sines)


def written_out(x: torch.Tensor) -> bool:
    """Whether the hand-written backward pays: there will be one, on a CPU, and nobody is compiling."""
    return torch.is_grad_enabled() and x.device.type == "cpu" and not torch.compiler.is_compiling()


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = (length.square_() / x.shape[-1]).add_(eps).rsqrt_()
        normed = x * scale
        ctx.save_for_backward(normed, weight, scale)
        return normed * weight

    @staticmethod
    def backward(ctx, grad):
        normed, weight, scale = ctx.saved_tensors
        toward = grad * normed
        grad_weight = toward.flatten(0, -2).sum(dim=0)
        mean = (toward @ weight).unsqueeze(-1).div_(-normed.shape[-1])  # −mean of grad · weight · normed
        grad_x = (grad * weight).addcmul_(normed, mean).mul_(scale)
        return grad_x, grad_weight, None


class _SquaredReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        positive = F.relu(x)
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx, grad):
        (positive,) = ctx.saved_tensors
        return (grad * positive).mul_(2)


class _Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cosines, sines):
        ctx.save_for_backward(cosines, sines)
        return _rotated(x, cosines, sines)

    @staticmethod
    def backward(ctx, grad):
        cosines, sines = ctx.saved_tensors
        return _rotated(grad, cosines, -sines), None, None  # a rotation's transpose turns the other way


def _rotated(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    return torch.addcmul(x * cosines, torch.roll(x, x.shape[-1] // 2, dims=-1), sines)
