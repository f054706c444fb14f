"""Writers: how often a growing text is updated, while others grow at the same time."""

from __future__ import annotations

from ..engine import writers_with
from ..model import Transformer

UPDATES_PER_SECOND = 15
"""Updates of a single text: smooth to the eye, and little work for a browser."""
UPDATES_OF_ALL = 60
"""Updates of all of a model's texts together: each costs the server as much as writing some tokens."""


def seconds_between_updates(model: Transformer) -> float:
    """Seconds between updates of each text that this model is writing now."""
    return max(1 / UPDATES_PER_SECOND, writers_with(model) / UPDATES_OF_ALL)
