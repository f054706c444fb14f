"""Transformer Playground: train a tiny transformer, talk to it, and look inside every number.

The handful of names a script needs:

    >>> from playground import ModelConfig, Transformer, TrainConfig, corpus_from_text, train, generate, load, save
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "data": ("corpus_from_language", "corpus_from_text"),
    "engine": ("SamplingConfig", "generate"),
    "model": ("ModelConfig", "Transformer", "trace"),
    "storage": ("load", "save"),
    "training": ("TrainConfig", "train"),
}

__all__ = [name for names in _HOMES.values() for name in names]


def __getattr__(name: str) -> Any:
    """A name from its module, imported on first use: torch takes seconds, which many commands do not need."""
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{home}", __name__), name)
