"""Step: one step of the walk, and the small arithmetic that all steps share.

Formulas and sentences mark the four roles as {q:…}, {k:…}, {v:…} and {s:…}, so that a page can colour them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..look import Look

TOP = 10
"""Candidates, neurons or experts that a step lists."""


@dataclass(frozen=True, eq=False)
class Step:
    """One step of the walk at one layer, head and token."""

    name: str
    title: str
    formula: str
    """With the real shapes of this model and prompt."""
    code: str
    """The PyTorch line that does it."""
    sentence: str
    """What to look for in these very numbers."""
    arrays: dict[str, np.ndarray]
    """What its picture draws; the function of the step says what is what."""
    labels: tuple[str, ...] = ()
    """Names of the rows of what is drawn, where they are not the prompt's tokens."""


def rows(look: Look, name: str, layer: int | None = None) -> np.ndarray:
    """One intermediate of the prompt without its batch axis, in float64."""
    return double(look.trace[name, layer][0])


def double(tensor: torch.Tensor) -> np.ndarray:
    """A tensor in float64."""
    return tensor.detach().cpu().double().numpy()


def norm(vector: np.ndarray) -> float:
    """Length of a vector."""
    return float(np.linalg.norm(vector))


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """How alike two vectors point: 1 the same way, 0 across, −1 against."""
    return float(a @ b / max(norm(a) * norm(b), 1e-12))
