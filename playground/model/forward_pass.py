"""Pass: everything a forward pass may be given besides the token ids; and `trace`, a pass that records everything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from .cache import KVCache
from .trace import Recorder, Tap, Trace, chain, no_tap


@dataclass(frozen=True)
class Pass:
    """`model(ids, Pass(...))`: B = batch, T = tokens. With nothing given, the pass is an ordinary evaluation."""

    cache: KVCache | None = None
    """Keys and values of the tokens before these; the call adds those of the T new ones."""
    tap: Tap = no_tap
    """Sees each named intermediate and may replace it, see `trace.py`."""
    generator: torch.Generator | None = None
    """Switches dropout and router noise on, and draws their random numbers."""
    mask: torch.Tensor | None = None
    """(B, T), True for real tokens and False for the padding that follows them; None if all are real.

    No expert computes or counts padding. Attention needs no mask for it: a causal model never lets a real token
    see what follows.
    """
    last_only: bool = False
    """Only the last token's logits, (B, 1, V), and nothing about experts. Takes no mask."""


PLAIN = Pass()


@torch.no_grad()
def trace(
    model: torch.nn.Module, ids: torch.Tensor, *, edit: Tap = no_tap, names: Iterable[str] | None = None
) -> Trace:
    """Run ids (B, T) through the model and return every intermediate; `edit` may change them on the way."""
    recorder = Recorder(names)
    model(ids, Pass(tap=recorder if edit is no_tap else chain(edit, recorder)))
    return recorder.trace
