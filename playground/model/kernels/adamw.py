"""AdamW: torch's own, stepping without the wrapper that imports torch's compiler, which takes seconds."""

from __future__ import annotations

import inspect

import torch


class AdamW(torch.optim.AdamW):
    """`torch.optim.AdamW` (Loshchilov and Hutter 2019), the same numbers to the last bit."""

    @torch.no_grad()
    def step(self, closure=None):
        return inspect.unwrap(torch.optim.AdamW.step)(self, closure)
