"""A checkpoint in memory: a model with all that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..data.tokenizers import Tokenizer
from ..model import ModelConfig, Transformer
from ..training.history import History
from .snapshots import Snapshots


@dataclass(frozen=True)
class Checkpoint:
    """A model with all that belongs to it."""

    model: Transformer
    tokenizer: Tokenizer
    history: History
    name: str = "model"
    """What to call it."""
    about: dict[str, Any] = field(default_factory=dict)
    """How it was made: corpus, ladder, training settings, prompt. Plain values, any of them may be missing."""
    snapshots: Snapshots | None = None
    """The weights at many moments of the run, where they were kept."""

    @property
    def config(self) -> ModelConfig:
        """The model's config."""
        return self.model.config
