"""bare: a model's forward pass without nn.Module's bookkeeping, for decoding, where each step is short."""

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
"""Tokens up to which one expert after the other is quicker than sorting their visits."""


def bare(module: nn.Module, precision: str = "fp32") -> Any:
    """A twin that is called like the module, runs the same `forward` code on the same weights, and starts quicker.

    Every call of an nn.Module looks for hooks, and every `self.weight` goes through `__getattr__`: some microseconds
    each, which together are a third of the time of a small model's decoding step. The twin's parts are plain
    attributes and its call is its `forward`. It is made in about a millisecond and shares the module's tensors, so that
    training the module trains the twin, but for what `products_of` lists: large matrices may have a copy in another
    order, and with another precision all do. Parts replaced in the module later stay unknown to it. A module that does
    more than its class's `forward` when it is called, because of a hook, say, has no twin: it is returned itself.
    """
    if any(map(does_more, module.modules())):
        if precision != "fp32":
            raise ValueError(f"a model that something was hung into is decoded in fp32 only, not in {precision}")
        return module
    twin = _twin(module, precision)
    if precision != "fp32" and isinstance(getattr(module, "embedding", None), nn.Embedding):
        vars(twin).update(embedding=_embedding(module.embedding.weight.detach(), precision))
    return twin


def products_of(twin: Any) -> list[Product]:
    """The twin's products that hold weights of their own."""
    found: list[Product] = []
    parts = [twin]
    while parts:
        part = parts.pop()
        if isinstance(part, Product):
            found += [part] if part.nbytes else []
        elif isinstance(part, (list, tuple)):
            parts += part
        elif isinstance(part, (nn.Module, _Experts)):
            parts += [value for name, value in vars(part).items() if not name.startswith("_")]
    return found


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
    twin = object.__new__(_bare_class(type(module)))
    vars(twin).update(vars(module))
    vars(twin).update(module._parameters)
    vars(twin).update(module._buffers)
    vars(twin).update({name: _twin(part, precision) for name, part in module._modules.items()})
    if hasattr(module, "router"):
        one_by_one = _Experts(module, precision)
        vars(twin).update(one_by_one=one_by_one)
        vars(twin).update(
            router=product(module.router.weight, None, "fp32")
        )  # who is chosen is not a matter of rounding
        if precision != "fp32":
            vars(twin).update(apply_experts=one_by_one)
    return twin


@functools.cache
def _bare_class(kind: type[nn.Module]) -> type[nn.Module]:
    """A subclass, so that isinstance still answers, whose instances are called without nn.Module's detour."""
    return type(kind.__name__, (kind,), {"__call__": kind.forward})


def _embedding(table: torch.Tensor, precision: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """ids → rows of the table as they come back from the precision: those of a tied head are the very same."""
    if table.numel() < packed.LARGE:
        table = rounded(table, precision)
        return lambda ids: F.embedding(ids, table)
    return lambda ids: rounded(F.embedding(ids, table), precision)


class _Experts:
    """`MixtureOfExperts.apply_experts`, expert by expert: for few tokens, or another precision."""

    def __init__(self, module: nn.Module, precision: str):
        self.config: ModelConfig = module.config
        self.together = functools.partial(type(module).apply_experts, module) if precision == "fp32" else None
        named = module._parameters
        self.experts = [
            tuple(
                None if named.get(name) is None else self._product(named, name, e, precision)
                for name in ("up", "gate", "down")
            )
            for e in range(self.config.n_experts)
        ]

    @staticmethod
    def _product(named: dict, name: str, e: int, precision: str) -> Product:
        bias = named.get(f"{name}_bias")
        return product(named[name][e].t(), None if bias is None else bias.detach()[e], precision)

    def __call__(self, x: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        tokens = x.reshape(-1, x.shape[-1])
        if self.together is not None and len(tokens) > FEW:
            return self.together(x, experts, weights)
        chosen = experts.reshape(len(tokens), -1)
        if len(tokens) == 1:
            answers = torch.cat([self._answer(e, tokens) for e in chosen[0].tolist()])  # (K, d)
            return (weights.reshape(1, -1).to(answers.dtype) @ answers).view_as(x)
        weights, out = weights.reshape(len(tokens), -1), torch.zeros_like(tokens)
        visits: dict[int, list[tuple[int, int]]] = {}
        for row, own in enumerate(chosen.tolist()):
            for place, e in enumerate(own):
                visits.setdefault(e, []).append((row, place))
        for e, pairs in visits.items():
            rows, places = torch.tensor(pairs, device=x.device).unbind(dim=1)
            out.index_add_(0, rows, self._answer(e, tokens[rows]) * weights[rows, places, None].to(x.dtype))
        return out.view_as(x)

    def _answer(self, e: int, x: torch.Tensor) -> torch.Tensor:
        up, gate, down = self.experts[e]
        return down(activate(self.config, up(x), None if gate is None else gate(x)))
