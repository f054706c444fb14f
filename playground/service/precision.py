"""What lower precision costs a model, measured once and kept for all visitors."""

from __future__ import annotations

from ..inspection.precision import PrecisionCost, precision_cost
from ..kept import Kept
from ..storage import Checkpoint
from .limits import PRECISION_TOKENS, PRECISION_WRITTEN
from .runs import Source
from .texts import unseen

_kept = Kept(entries=64, megabytes=4)


def seen(checkpoint: Checkpoint) -> tuple[PrecisionCost, str] | None:
    """The costs, if already measured, and the text used, in words."""
    return _kept.peek(_key(checkpoint), owner=checkpoint.model)


def measured(source: Source | None, checkpoint: Checkpoint, most: int) -> tuple[PrecisionCost, str]:
    """What `seen` returns, measured now if unknown, with greedy texts of at most `most` tokens.

    Raises ValueError if the model's validation text is unknown.
    """

    def measure() -> tuple[PrecisionCost, str]:
        found = unseen(source, checkpoint)
        if found is None:
            raise ValueError("this model's validation text is not available, so nothing can be measured on it")
        context = checkpoint.config.context_length
        windows = max(2, PRECISION_TOKENS // context)
        inputs, targets = found.corpus.windows("val", context, windows)
        cost = precision_cost(checkpoint.model, inputs, targets, min(PRECISION_WRITTEN, most))
        return cost, found.words

    return _kept.get(_key(checkpoint), measure, owner=checkpoint.model)


def _key(checkpoint: Checkpoint) -> int:
    return checkpoint.history.last_step  # the run's best weights may have taken its place
