"""Attention and other maps over tokens: one pattern, signed values, and all heads at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def pattern_map(
    pattern: np.ndarray, queries: Sequence[str], keys: Sequence[str] | None = None, *, causal: bool = True
) -> dict[str, Any]:
    """Attention weights (Tq, Tk) on a fixed 0–1 scale from white to one hue; cells the mask removes are blank.

    Args:
        queries, keys: visible token texts of rows and columns; keys default to the queries. With a cache Tq < Tk and
            the queries are the last rows.
    """
    raise NotImplementedError


def describe_pattern(pattern: np.ndarray, queries: Sequence[str], keys: Sequence[str] | None = None) -> str:
    """Where the weight goes in this picture: previous token, first token, itself, or spread out."""
    raise NotImplementedError


def signed_map(
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    blank: np.ndarray | None = None,
    name: str = "value",
    limit: float | None = None,
) -> dict[str, Any]:
    """Signed values (R, C) on one diverging scale centred on 0; `blank` (R, C) marks cells not to draw."""
    raise NotImplementedError


def head_grid(
    patterns: np.ndarray,
    titles: Sequence[str],
    tokens: Sequence[str] = (),
    *,
    columns: int = 4,
    causal: bool = True,
    quantised: bool = True,
) -> dict[str, Any]:
    """All heads (N, T, T) as small pictures in one figure; a click's `trace` is the head's index.

    `quantised` sends steps of 1/254 (one byte per weight); the page shows two decimals either way.
    """
    raise NotImplementedError
