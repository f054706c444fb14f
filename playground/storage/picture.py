"""The curve's picture: a run's losses and its ladder as a PNG, for places that show pictures but run no scripts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..figures.loss import Run, loss_curve
from ..figures.stills import png
from ..training.history import History


def curve_png(history: History, rungs: Sequence[tuple[str, float]] = ()) -> bytes | None:
    """Validation and training loss in nats per token over steps, and the ladder's `rungs` (name, nats).

    None where the history holds fewer than two points to draw.
    """
    if max(np.isfinite(losses).sum() for losses in (history.steps["loss"], history.evaluations["val_loss"])) < 2:
        return None
    return png(loss_curve(Run("run", history.steps, history.evaluations), rungs, height=480))
