"""A model's forward pass without nn.Module's bookkeeping, for decoding, where each step is short."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from ..config import ModelConfig
from . import packed
from .elementwise import activate
from .layers import Linear
from .packed import Product, product, rounded

FEW = 16
"""Up to this many tokens, one expert after the other is quicker than sorting tokens by expert."""


def strip_module_calls(module: nn.Module, precision: str = "fp32") -> Any:
    """A twin that is called like the module, runs the same `forward` code on the same weights, and starts quicker.

    Every call of an nn.Module looks for hooks, and every `self.weight` goes through `__getattr__`: some microseconds
    each, together a third of the time of a small model's decoding step. The twin's parts are plain
    attributes and its call is its `forward`. It is made in about a millisecond and shares the module's tensors, so that
    training the module trains the twin, except for `products_of`: large matrices may be copies in another order, and
    in another precision all are. The twin does not notice parts replaced in the module later. A module whose call
    does more than its class's `forward`, because of a hook, say, is returned as it is.
    """
    if any(map(does_more, module.modules())):
        if precision != "fp32":
            raise ValueError(f"a model with hooks is decoded in fp32 only, not in {precision}")
        return module
    twin = _twin(module, precision)
    if precision != "fp32" and isinstance(getattr(module, "embedding", None), nn.Embedding):
        vars(twin).update(embedding=_embedding(module.embedding.weight.detach(), precision))
    return twin


def products_of(part: Any) -> list[Product]:
    """Those products of a twin that hold copies of weights."""
    if isinstance(part, Product):
        return [part] if part.nbytes else []
    if isinstance(part, (nn.Module, Experts)):
        part = [value for name, value in vars(part).items() if not name.startswith("_")]
    return [each for inner in part for each in products_of(inner)] if isinstance(part, (list, tuple)) else []


def does_more(module: nn.Module) -> bool:
    """Whether a call of the module would run anything besides its class's `forward`."""
    everywhere = torch.nn.modules.module
    hooks = (module._forward_hooks, module._forward_pre_hooks)
    hooks += (everywhere._global_forward_hooks, everywhere._global_forward_pre_hooks)
    return any(hooks) or "forward" in vars(module) or type(module).__call__ is not nn.Module.__call__


def _twin(module: nn.Module, precision: str) -> Any:
    if isinstance(module, nn.ModuleList):
        return [_twin(part, precision) for part in module]
    if type(module).forward in (nn.Linear.forward, Linear.forward):
        return product(module.weight, module.bias, precision)
    twin = object.__new__(_stripped(type(module)))
    vars(twin).update(vars(module))
    vars(twin).update(module._parameters)
    vars(twin).update(module._buffers)
    vars(twin).update({name: _twin(part, precision) for name, part in module._modules.items()})
    if hasattr(module, "router"):
        experts = Experts(module, precision)
        # the choice of experts is not a matter of rounding
        vars(twin).update(few_tokens=experts, router=product(module.router.weight, None, "fp32"))
        if precision != "fp32":
            vars(twin).update(apply_experts=experts)
    return twin


@functools.cache
def _stripped(kind: type[nn.Module]) -> type[nn.Module]:
    """A subclass, so that isinstance still answers, whose instances are called without nn.Module's detour."""
    return type(kind.__name__, (kind,), {"__call__": kind.forward})


def _embedding(table: torch.Tensor, precision: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """ids → rows of the table, rounded to the precision; a tied head has the very same rounded rows."""
    if table.numel() < packed.LARGE:
        table = rounded(table, precision)
        return lambda ids: F.embedding(ids, table)
    return lambda ids: rounded(F.embedding(ids, table), precision)


class Experts:
    """`MixtureOfExperts.apply_experts`, expert by expert: for few tokens, or another precision."""

    def __init__(self, module: nn.Module, precision: str):
        self.config: ModelConfig = module.config
        self.for_many = functools.partial(type(module).apply_experts, module) if precision == "fp32" else None
        self.experts = [
            tuple(_expert_product(module._parameters, name, e, precision) for name in ("up", "gate", "down"))
            for e in range(self.config.n_experts)
        ]

    def __call__(self, x: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """(B, T, d) from x (B, T, d) and each token's experts and their weights, (B, T, K)."""
        tokens = x.reshape(-1, x.shape[-1])  # (N, d)
        if self.for_many is not None and len(tokens) > FEW:
            return self.for_many(x, experts, weights)
        experts, weights = experts.reshape(len(tokens), -1), weights.reshape(len(tokens), -1)  # (N, K)
        if len(tokens) == 1:
            outputs = torch.cat([self._mlp(e, tokens) for e in experts[0].tolist()])  # (K, d)
            return (weights.to(outputs.dtype) @ outputs).view_as(x)
        out = torch.zeros_like(tokens)
        for e in experts.unique().tolist():
            rows, places = (experts == e).nonzero(as_tuple=True)
            out.index_add_(0, rows, self._mlp(e, tokens[rows]) * weights[rows, places, None].to(x.dtype))
        return out.view_as(x)

    def _mlp(self, e: int, x: torch.Tensor) -> torch.Tensor:
        up, gate, down = self.experts[e]
        return down(activate(self.config, up(x), None if gate is None else gate(x)))


def _expert_product(parameters: dict, name: str, e: int, precision: str) -> Product | None:
    if parameters.get(name) is None:
        return None
    bias = parameters.get(f"{name}_bias")
    return product(parameters[name][e].t(), None if bias is None else bias.detach()[e], precision)
