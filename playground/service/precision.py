"""What precision costs a model, worked out once for all who ask."""

from __future__ import annotations

import math

from ..inspection.precision import PrecisionCost, precision_cost
from ..storage import Checkpoint
from .kept import Kept
from .limits import PRECISION_TOKENS, PRECISION_WRITTEN
from .runs import RunSpec
from .unseen import unseen

_kept = Kept(entries=64, megabytes=4)


def seen(checkpoint: Checkpoint) -> tuple[PrecisionCost, str] | None:
    """What was measured already, and, in words, what it was judged by and why the run's own loss is another."""
    return _kept.peek(_key(checkpoint), owner=checkpoint.model)


def measured(spec: RunSpec | None, checkpoint: Checkpoint, most: int) -> tuple[PrecisionCost, str]:
    """The same, measured now unless it was; with texts of `most` tokens at the most.

    Raises ValueError where no text is known to judge the model by.
    """

    def measure() -> tuple[PrecisionCost, str]:
        found = unseen(spec, checkpoint)
        if found is None:
            raise ValueError("the text this model was judged by is not here, so nothing can be measured on it")
        context = checkpoint.config.context_length
        inputs, targets = found.corpus.windows("val", context, max(2, PRECISION_TOKENS // context))
        cost = precision_cost(checkpoint.model, inputs, targets, min(PRECISION_WRITTEN, most))
        # of a language, the windows are those of a part of the text that its runs are judged by
        all_of_it = found.corpus.language is None and len(found.corpus.windows("val", context)[0]) == len(inputs)
        return cost, found.words + ("" if all_of_it else _beside_the_run(checkpoint))

    return _kept.get(_key(checkpoint), measure, owner=checkpoint.model)


def _beside_the_run(checkpoint: Checkpoint) -> str:
    """That the validation loss of the model's run is another number, since it was measured on more of the text."""
    loss = checkpoint.history.val_loss
    if loss is None or not math.isfinite(loss):
        return ""
    return f"; its run's validation loss, {loss:.4f}, is of another choice of windows"


def _key(checkpoint: Checkpoint) -> int:
    return checkpoint.history.last_step  # which its best weights may have taken back
