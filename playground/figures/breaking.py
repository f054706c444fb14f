"""Pictures of breaking a mixture: what pulls on the routers, runs without balance, and what each expert is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..words.numbers import signed
from . import palette
from .heads import on_one_level
from .shapes import DASHES, Figure, axis, cells, counted, heatmap, layers_down, line, lines, rule

RUN_COLORS = (palette.MOE, palette.KEY, palette.SCORES, palette.DENSE)


def evenness_lines(
    runs: Mapping[str, tuple[Sequence[int], Sequence[float]]], most: float, planned_steps: int
) -> Figure:
    """Entropy of the load along several runs: name → (steps, bits), with a line where all experts are used evenly."""
    return _run_lines(runs, "load entropy, bits", planned_steps, [0, 1.06 * most], most)


def loss_lines(runs: Mapping[str, tuple[Sequence[int], Sequence[float]]], planned_steps: int) -> Figure:
    """Validation loss along several runs: name → (steps, nats per token)."""
    return _run_lines(runs, "validation loss, nats", planned_steps, None, None)


def describe_runs(
    entropy: Mapping[str, float], most: float, dead: Mapping[str, int], loss: Mapping[str, float], step: int
) -> str:
    """Where each run stands: its entropy, its dead experts, its loss; and whether anything collapsed."""
    parts = [
        f"{name}: {bits:.2f} of {most:.2f} bits, {dead[name]} dead, loss {loss[name]:.4f}"
        for name, bits in entropy.items()
    ]
    worst = min(entropy, key=entropy.__getitem__)
    uneven = entropy[worst] < most - 0.1 and _apart(entropy, worst)
    verdict = (
        f"The load of “{worst}” has collapsed." if entropy[worst] < most / 2
        else f"None has collapsed; “{worst}” is the least even." if uneven
        else "None has collapsed so far."
    )  # fmt: skip
    return f"After {step:,} steps – {'; '.join(parts)}. {verdict}"


def _apart(entropy: Mapping[str, float], worst: str) -> bool:
    """Whether a run is less even than every other by more than one decimal of what is said of them."""
    return all(bits - entropy[worst] > 0.05 for name, bits in entropy.items() if name != worst)


def describe_losses(loss: Mapping[str, float], noise: float, step: int) -> str:
    """The runs' losses, and why one seed makes no winner: two of them are asked the same and differ all the same."""
    found = ", ".join(f"“{name}” {value:.4f}" for name, value in loss.items())
    spread = round(max(loss.values()), 4) - round(min(loss.values()), 4)
    words = f"Nats per token at step {step:,}: {found}. One seed each, so no winner."
    if not spread:
        return f"{words} They are alike to four decimals."
    if spread <= 3 * noise:
        return f"{words} They differ by {spread:.4f}, hardly more than two runs that are asked the same ({noise:.4f})."
    return f"{words} They differ by {spread:.4f}; another seed could land elsewhere."


def cost_map(costs: np.ndarray, margins: np.ndarray, layers: Sequence[int], plain: float) -> Figure:
    """By how many nats per token the loss rises when one expert is switched off (L, E); a click is that expert.

    Args:
        margins: (L, E) half the widths of the 95 % intervals; what lies within its own is written in brackets.
    """
    L, E = costs.shape
    limit = max(float(np.abs(costs).max()), 1e-6)
    written = [
        [_within(signed(cost, 3 if abs(cost) < 0.095 else 2), abs(cost) <= margin) for cost, margin in zip(*rows)]
        for rows in zip(costs.tolist(), margins.tolist())
    ]
    hover = [[f"± {margin:.4f}" if np.isfinite(margin) else "" for margin in row] for row in margins.tolist()]
    trace = cells(
        costs,
        "%{y}, expert %{x}<br>loss rises by %{z:.4f} %{customdata}",
        scale=palette.DIVERGING_SCALE,
        ends=(-limit, limit),
        gap=2,
        bar="nats",
        text=written if E <= 16 else None,
        customdata=hover,
    )
    return heatmap(
        trace,
        76 + 36 * L,
        counted(E, "expert switched off"),
        layers_down(layers),
        margin={"l": 8, "r": 8, "t": 8, "b": 36},
        uirevision=f"{L} {E} {plain}",
    )


def describe_costs(
    costs: np.ndarray, margins: np.ndarray, layers: Sequence[int], plain: float, judged: str, first: np.ndarray
) -> str:
    """The dearest expert with its interval, or all that may be, and how many make no difference that can be told."""
    i, e = np.unravel_index(int(costs.argmax()), costs.shape)
    missed = f"expert {e} of layer {layers[i]}, whose absence costs {signed(costs[i, e], 4)}"
    if np.isfinite(margins).all() and first.sum() > 1:
        missed = on_one_level(costs, margins, first, layers, "expert")
    elif np.isfinite(margins[i, e]):
        missed += f" ± {margins[i, e]:.4f}"
    if np.isfinite(margins).all() and not (costs > margins).any():
        return f"The loss is {plain:.4f} with all experts, on {judged}. No expert is missed that this text could tell."
    idle = int((np.abs(costs) <= margins).sum())
    make = "makes" if idle == 1 else "make"
    none = f" {idle} of {costs.size} {make} no difference that this text could tell (in brackets)." if idle else ""
    return f"The loss is {plain:.4f} with all experts, on {judged}. Missed most: {missed} nats per token.{none}"


def _within(cost: str, idle: bool) -> str:
    return f"({cost})" if idle else cost


def _run_lines(
    runs: Mapping[str, tuple[Sequence[int], Sequence[float]]],
    title: str,
    planned_steps: int,
    span: list[float] | None,
    line_at: float | None,
) -> dict[str, Any]:
    curves = [
        line(steps, values, name, RUN_COLORS[i % 4], dash=DASHES[i % 4], marks=4)
        for i, (name, (steps, values)) in enumerate(runs.items())
    ]
    return lines(
        curves,
        280,
        axis("optimizer steps", range=[0, planned_steps]),
        axis(title, **({"range": span} if span else {})),
        margin={"l": 52, "r": 12, "t": 40, "b": 44},
        shapes=[] if line_at is None else [rule(y=line_at)],
        uirevision=f"{title} {planned_steps}",
    )
