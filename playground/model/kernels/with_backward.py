"""with_backward: a plain formula, and beside it the same function with its backward pass written out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


class HandWritten(torch.autograd.Function):
    """A formula whose backward is written out, because autograd's own takes more passes over the numbers.

    A graph of the backward itself (`create_graph=True`) is that of the plain formula: the written one gives the first
    gradient only. A subclass therefore saves the inputs of its `forward`, and its `backward` begins with
    `if torch.is_grad_enabled(): return ….differentiate(grad, *inputs)`.
    """

    plain: Callable[..., torch.Tensor]
    """The formula; `with_backward` sets it."""

    value: Callable[..., torch.Tensor]
    """The value where no gradient is wanted; the plain formula, unless a subclass has a faster one."""

    @staticmethod
    def pays(x: torch.Tensor, *others: Any) -> bool:
        """Whether to use it: x wants a gradient, and is on a CPU. A GPU's own kernels are better."""
        return x.requires_grad and x.is_cpu

    @classmethod
    def differentiate(cls, grad: torch.Tensor, *inputs: Any) -> tuple[torch.Tensor | None, ...]:
        """The gradients of the plain formula for each of its inputs, with a graph of their own."""
        wanted = [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
        gradients = iter(torch.autograd.grad(cls.plain(*inputs), wanted, grad, create_graph=True))
        return tuple(next(gradients) if isinstance(x, torch.Tensor) and x.requires_grad else None for x in inputs)


def with_backward(plain: Callable[..., torch.Tensor], written: type[HandWritten]) -> Callable[..., torch.Tensor]:
    """The plain formula, computed by `written` where that pays. A compiler sees the plain one, and fuses it itself."""
    written.plain = staticmethod(plain)
    pays, value, compiling = written.pays, getattr(written, "value", plain), torch.compiler.is_compiling

    @functools.wraps(plain)
    def either(*inputs: Any) -> torch.Tensor:
        if compiling():
            return plain(*inputs)
        return written.apply(*inputs) if pays(*inputs) else value(*inputs)

    return either
