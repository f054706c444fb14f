"""bare: a model's forward pass without nn.Module's bookkeeping, for decoding, where each step is short."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn

from .layers import Linear


def bare(module: nn.Module) -> Any:
    """A twin that is called like the module, runs the same `forward` code on the same weights, and starts quicker.

    Every call of an nn.Module looks for hooks, and every `self.weight` goes through `__getattr__`: some microseconds
    each, which together are a third of the time of a small model's decoding step. The twin's parts are plain
    attributes and its call is its `forward`. It shares the module's tensors (training the module trains the twin) and
    is made in about a millisecond; parts replaced in the module later stay unknown to it. A module that does more than
    its class's `forward` when it is called, because of a hook, say, has no twin: it is returned itself.
    """
    return module if any(map(does_more, module.modules())) else _twin(module)


def does_more(module: nn.Module) -> bool:
    """Whether a call of the module would run anything besides its class's `forward`."""
    everywhere = torch.nn.modules.module
    hooks = (module._forward_hooks, module._forward_pre_hooks)
    hooks += (everywhere._global_forward_hooks, everywhere._global_forward_pre_hooks)
    return any(hooks) or "forward" in vars(module) or type(module).__call__ is not nn.Module.__call__


def _twin(module: nn.Module) -> Any:
    if isinstance(module, nn.ModuleList):
        return [_twin(part) for part in module]
    if type(module).forward in (nn.Linear.forward, Linear.forward) and module.bias is None:
        return _BareLinear(module)
    twin = object.__new__(_bare_class(type(module)))
    vars(twin).update(vars(module))
    vars(twin).update(module._parameters)
    vars(twin).update(module._buffers)
    vars(twin).update({name: _twin(part) for name, part in module._modules.items()})
    return twin


@functools.cache
def _bare_class(kind: type[nn.Module]) -> type[nn.Module]:
    """A subclass, so that isinstance still answers, whose instances are called without nn.Module's detour."""
    return type(kind.__name__, (kind,), {"__call__": kind.forward})


class _BareLinear(nn.Linear):
    """A linear layer without bias, whose weight is turned once instead of in every call."""

    def __init__(self, module: nn.Linear):
        vars(self).update(vars(module))
        vars(self).update(weight=module.weight, bias=None, turned=module.weight.detach().t())

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.turned
