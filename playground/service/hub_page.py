"""What people see of a model's repository on the Hub: its card and the picture of its curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data import Baselines
from ..figures.loss import Run, loss_curve
from ..figures.stills import png
from ..storage import Checkpoint
from ..training import History
from ..words.card import model_card

PICTURE = "curve.png"


def hub_page(checkpoint: Checkpoint, repo_id: str) -> dict[str, bytes]:
    """Name → content of README.md, and of the curve's picture where there is a curve. For `storage.hub.push`."""
    baselines = checkpoint.about.get("ladder")
    picture = curve_png(checkpoint.history, Baselines.from_dict(baselines).losses() if baselines else ())
    card = model_card(checkpoint, repo_id=repo_id, picture=PICTURE if picture else None)
    return {"README.md": card.encode(), **({PICTURE: picture} if picture else {})}


def curve_png(history: History, rungs: Sequence[tuple[str, float]] = ()) -> bytes | None:
    """Validation and training loss in nats per token over steps, and the baselines `rungs` (name, nats), as a PNG.

    None where the history holds fewer than two points to draw.
    """
    if max(np.isfinite(losses).sum() for losses in (history.steps["loss"], history.evaluations["val_loss"])) < 2:
        return None
    return png(loss_curve(Run("run", history.steps, history.evaluations), rungs, height=480))
