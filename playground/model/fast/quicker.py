"""quicker: how a hand-written function stands beside a plain formula, with the same value and the same derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


class HandWritten(torch.autograd.Function):
    """A formula whose backward is written out, because autograd's own takes more passes over the numbers.

    Whoever asks for a graph of the backward (`create_graph=True`) gets that of the plain formula instead: what is
    written out knows the gradient only. A subclass therefore saves the inputs of its `forward`, and its `backward`
    begins with `if torch.is_grad_enabled(): return ….differentiate(grad, *inputs)`.
    """

    plain: Callable[..., torch.Tensor]
    """The formula it stands beside; `quicker` sets it."""

    value: Callable[..., torch.Tensor]
    """The value where no gradient is wanted; the formula itself, unless a subclass knows better."""

    @staticmethod
    def pays(x: torch.Tensor, *others: Any) -> bool:
        """Whether to use it: there will be a backward, and it is on a CPU. A GPU's own kernels are better."""
        return torch.is_grad_enabled() and x.is_cpu

    @classmethod
    def differentiate(cls, grad: torch.Tensor, *inputs: Any) -> tuple[torch.Tensor | None, ...]:
        """The gradients of the plain formula for each of its inputs, with a graph of their own."""
        asked = [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
        found = iter(torch.autograd.grad(cls.plain(*inputs), asked, grad, create_graph=True))
        return tuple(next(found) if isinstance(x, torch.Tensor) and x.requires_grad else None for x in inputs)


def quicker(by: type[HandWritten]) -> Callable[[Callable[..., torch.Tensor]], Callable[..., torch.Tensor]]:
    """Decorates a plain formula: where it pays, `by` computes it. A compiler sees the plain formula, and fuses it."""

    def stand_beside(plain: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        by.plain = staticmethod(plain)
        pays, value, compiling = by.pays, getattr(by, "value", plain), torch.compiler.is_compiling

        @functools.wraps(plain)
        def either(*inputs: Any) -> torch.Tensor:
            if compiling():
                return plain(*inputs)
            return by.apply(*inputs) if pays(*inputs) else value(*inputs)

        return either

    return stand_beside
