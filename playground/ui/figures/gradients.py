"""Gradient norms by layer over training: which parts are being pushed, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def gradient_map(records: Sequence[Mapping[str, Any]], *, height: int | None = None) -> dict[str, Any]:
    """Heat map, part of the model × step, colour on a log scale; records are `History.gradients` ({step, norms})."""
    raise NotImplementedError


def gradient_lines(records: Sequence[Mapping[str, Any]], *, height: int = 280) -> dict[str, Any]:
    """The same as one line per part, on a log axis."""
    raise NotImplementedError


def describe_gradients(records: Sequence[Mapping[str, Any]]) -> str:
    """Which part is pushed hardest now, and how the whole changed since the start."""
    raise NotImplementedError
