"""The one error of this room."""

from __future__ import annotations


class CheckpointError(ValueError):
    """What is wrong with a model's files, in a sentence meant to be shown."""
