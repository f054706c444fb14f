"""The curve's picture: a run's losses and its ladder as a PNG, for places that show pictures but run no scripts."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

from ..training.history import History

WIDTH, HEIGHT = 960, 480
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 30, 60
TRAIN, VALIDATION, RUNG, INK, GRID = "#9db4e8", "#2f4fb8", "#b7791f", "#333333", "#e6e6e6"


def curve_png(history: History, rungs: Sequence[tuple[str, float]] = ()) -> bytes | None:
    """Validation (dots) and training loss in nats per token over steps, the ladder's `rungs` (name, loss) as dashes.

    None where the history holds fewer than two points to draw.
    """
    from PIL import Image, ImageDraw, ImageFont

    training = _finite(history.steps["step"], history.steps["loss"])
    validation = _finite(history.evaluations["step"], history.evaluations["val_loss"])
    if max(len(training), len(validation)) < 2:
        return None
    losses = [loss for _, loss in (*training, *validation)] + [loss for _, loss in rungs]
    low, high = min(losses), max(losses)
    pad = 0.05 * (high - low) or 0.1
    low, high, last = max(low - pad, 0.0), high + pad, max(step for step, _ in (*training, *validation)) or 1

    def place(step: float, loss: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * step / last
        return x, TOP + (HEIGHT - TOP - BOTTOM) * (high - loss) / (high - low)

    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(15)
    for loss in ticks(low, high):
        y = place(0, loss)[1]
        draw.line([(LEFT, y), (WIDTH - RIGHT, y)], fill=GRID)
        draw.text((LEFT - 8, y), f"{loss:g}", fill=INK, font=font, anchor="rm")
    for step in ticks(0, last):
        draw.text((place(step, low)[0], HEIGHT - BOTTOM + 8), f"{step:,.0f}", fill=INK, font=font, anchor="mt")
    draw.text(((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 22), "step", fill=INK, font=font, anchor="mt")
    draw.text((LEFT, 6), "loss, nats per token", fill=INK, font=font)
    below = -math.inf
    for name, loss in sorted(rungs, key=lambda rung: -rung[1]):  # from the top downwards
        y = place(0, loss)[1]
        for x in range(LEFT, WIDTH - RIGHT, 10):
            draw.line([(x, y), (x + 5, y)], fill=RUNG)
        below = max(y, below + 17)  # names of close rungs stand one below the other
        draw.text((WIDTH - RIGHT + 8, below), f"{name} {loss:.2f}", fill=RUNG, font=font, anchor="lm")
    if len(training) > 1:
        draw.line([place(*point) for point in training], fill=TRAIN, width=1)
    if len(validation) > 1:
        draw.line([place(*point) for point in validation], fill=VALIDATION, width=3)
    for point in validation:
        x, y = place(*point)
        draw.ellipse([x - 4, y - 4, x + 4, y + 4], fill=VALIDATION)
    draw.text((WIDTH - RIGHT - 140, 6), "training", fill=TRAIN, font=font, anchor="ra")
    draw.text((WIDTH - RIGHT, 6), "validation (dots)", fill=VALIDATION, font=font, anchor="ra")
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers from low to high, about so many of them."""
    raw = (high - low) / about
    scale = 10 ** math.floor(math.log10(raw))
    stride = next(m * scale for m in (1, 2, 5, 10) if m * scale >= raw)
    first = math.ceil(low / stride)
    return [round(i * stride, 10) for i in range(first, math.floor(high / stride) + 1)]


def _finite(steps: Sequence[float], losses: Sequence[float]) -> list[tuple[float, float]]:
    return [(step, loss) for step, loss in zip(steps, losses) if loss is not None and math.isfinite(loss)]
