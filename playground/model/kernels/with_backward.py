"""with_backward: a plain formula, and beside it the same function with its backward pass written out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


class HandWritten(torch.autograd.Function):
    """A formula whose backward is written out, because autograd's own takes more passes over the numbers.

    It gives first derivatives only: for second ones, use the plain formula.
    """

    value: Callable[..., torch.Tensor]
    """The formula if no gradient is wanted, so it may work in place; the plain one unless a subclass overrides it."""

    @staticmethod
    def pays(x: torch.Tensor, *others: Any) -> bool:
        """Whether to use it: x wants a gradient, and is on a CPU. A GPU's own kernels are better."""
        return x.requires_grad and x.is_cpu


def with_backward(plain: Callable[..., torch.Tensor], written: type[HandWritten]) -> Callable[..., torch.Tensor]:
    """The plain formula, computed by `written` where that pays. A compiler sees the plain one, and fuses it itself."""
    pays, value, compiling = written.pays, getattr(written, "value", plain), torch.compiler.is_compiling

    @functools.wraps(plain)
    def either(*inputs: Any) -> torch.Tensor:
        if compiling():
            return plain(*inputs)
        if pays(*inputs):
            return written.apply(*inputs)
        return plain(*inputs) if inputs[0].requires_grad else value(*inputs)

    return either
