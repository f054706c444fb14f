"""What precision costs a model, worked out once for all who ask."""

from __future__ import annotations

from ..data import Corpus
from ..inspection.precision import PrecisionCost, precision_cost
from ..storage import Checkpoint
from .kept import Kept
from .limits import PRECISION_TOKENS, PRECISION_WRITTEN
from .runs import Source
from .unseen import beside_the_run, unseen

_kept = Kept(entries=64, megabytes=4)


def seen(checkpoint: Checkpoint) -> tuple[PrecisionCost, str] | None:
    """What was measured already, and, in words, what it was judged by and why the run's own loss is another."""
    return _kept.peek(_key(checkpoint), owner=checkpoint.model)


def measured(source: Source | None, checkpoint: Checkpoint, most: int) -> tuple[PrecisionCost, str]:
    """The same, measured now unless it was; with texts of `most` tokens at the most.

    Raises ValueError where no text is known to judge the model by.
    """

    def measure() -> tuple[PrecisionCost, str]:
        found = unseen(source, checkpoint)
        if found is None:
            raise ValueError("the text this model was judged by is not here, so nothing can be measured on it")
        cost = cost_on(found.corpus, checkpoint, new_tokens=min(PRECISION_WRITTEN, most))
        return cost, found.words + beside_the_run(found, checkpoint, _count(checkpoint.config.context_length))

    return _kept.get(_key(checkpoint), measure, owner=checkpoint.model)


def cost_on(
    corpus: Corpus, checkpoint: Checkpoint, tokens: int = PRECISION_TOKENS, new_tokens: int = PRECISION_WRITTEN
) -> PrecisionCost:
    """What precision costs, judged by the first windows held out: about `tokens`, and at least two."""
    context = checkpoint.config.context_length
    inputs, targets = corpus.windows("val", context, _count(context, tokens))
    return precision_cost(checkpoint.model, inputs, targets, new_tokens)


def _count(context: int, tokens: int = PRECISION_TOKENS) -> int:
    return max(2, tokens // context)


def _key(checkpoint: Checkpoint) -> int:
    return checkpoint.history.last_step  # which its best weights may have taken back
