"""Writers: how often a text that grows is shown, beside others that grow at the same moment."""

from __future__ import annotations

from ..engine import writers_with
from ..model import Transformer

UPDATES_PER_SECOND = 15
"""Of one text alone: smooth to the eye, and little work for a browser."""
UPDATES_OF_ALL = 60
"""Of all texts of a model together: each costs the server as much as writing some tokens does."""


def seconds_between_updates(model: Transformer) -> float:
    """For each of those who write with this model now."""
    return max(1 / UPDATES_PER_SECOND, writers_with(model) / UPDATES_OF_ALL)
