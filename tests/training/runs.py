"""A short text and what tests of training do with runs on it: their losses, a stop after some steps, spoilt weights."""

import itertools
import math
from collections.abc import Callable

import torch

from playground.data import corpus_from_text
from playground.model import Transformer
from playground.training import Stepped

TEXT = "a stitch in time saves nine. " * 60
CORPUS = corpus_from_text(TEXT)


def losses(events) -> list[float]:
    """The loss of each step."""
    return [event.loss for event in events if isinstance(event, Stepped)]


def stop_after(steps: int) -> Callable[[], bool]:
    """Asked before every step: true once so many have been made."""
    asked = itertools.count()
    return lambda: next(asked) >= steps


class Spoiling:
    """CORPUS, but before a batch the model's weights are overwritten with infinity, as an overflow does."""

    def __init__(self, model: Transformer, before: int):
        self.model, self.before, self.drawn = model, before, 0

    def __getattr__(self, name):
        return getattr(CORPUS, name)

    def batch(self, *arguments):
        self.drawn += 1
        if self.drawn == self.before:
            with torch.no_grad():
                self.model.blocks[0].attention.out.weight.fill_(math.inf)
        return CORPUS.batch(*arguments)
