"""Transformer Playground: train a tiny transformer, talk to it, and look inside every number.

The handful of names a script needs:

    >>> from playground import ModelConfig, Transformer, TrainConfig, corpus_from_text, train, generate, load, save
"""

from .data import corpus_from_language, corpus_from_text
from .decoding import SamplingConfig, generate
from .model import ModelConfig, Transformer, trace
from .storage import load, save
from .training import TrainConfig, train

__all__ = [
    "ModelConfig",
    "SamplingConfig",
    "TrainConfig",
    "Transformer",
    "corpus_from_language",
    "corpus_from_text",
    "generate",
    "load",
    "save",
    "trace",
    "train",
]
