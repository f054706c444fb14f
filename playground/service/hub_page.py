"""The page of a model's repository on the Hub: its card and the picture of its curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..figures.curve_svg import curve_svg
from ..figures.loss import Run
from ..storage import Checkpoint
from ..training import History
from ..words.card import model_card

PICTURE = "curve.svg"


def hub_page(checkpoint: Checkpoint, repo_id: str) -> dict[str, bytes]:
    """Name → content of README.md and, if there is a curve, of its picture. For `storage.hub.push`."""
    baselines = checkpoint.baselines
    picture = curve_picture(checkpoint.history, baselines.losses() if baselines else ())
    card = model_card(checkpoint, repo_id=repo_id, picture=PICTURE if picture else None)
    return {"README.md": card.encode(), **({PICTURE: picture} if picture else {})}


def curve_picture(history: History, rungs: Sequence[tuple[str, float]] = ()) -> bytes | None:
    """Validation and training loss in nats per token over steps, and the baselines `rungs` (name, nats), as an SVG.

    None if the history holds fewer than two points to draw.
    """
    if max(np.isfinite(losses).sum() for losses in (history.steps["loss"], history.evaluations["val_loss"])) < 2:
        return None
    run = Run("run", history.steps, history.evaluations)
    return curve_svg(run, rungs).encode()
