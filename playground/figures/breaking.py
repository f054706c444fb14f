"""Pictures of breaking a mixture: what pulls on the routers, runs without balance, and what each expert is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import palette
from .wire import axis, colorbar, colorscale, escaped, layout, numbers, signed

RUN_COLORS = (palette.MOE, palette.KEY, palette.SCORES, palette.DENSE)
RUN_DASHES = ("solid", "dash", "dot", "dashdot")


def evenness_lines(
    runs: Mapping[str, tuple[Sequence[int], Sequence[float]]], most: float, planned_steps: int
) -> dict[str, Any]:
    """Entropy of the load along several runs: name → (steps, bits), with a line where all experts are used evenly."""
    return _run_lines(runs, "load entropy, bits", planned_steps, [0, 1.06 * most], most)


def loss_lines(runs: Mapping[str, tuple[Sequence[int], Sequence[float]]], planned_steps: int) -> dict[str, Any]:
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
    verdict = (
        f"The load of “{worst}” has collapsed." if entropy[worst] < most / 2
        else f"None has collapsed; “{worst}” is the least even." if entropy[worst] < most - 0.1
        else "None has collapsed so far."
    )  # fmt: skip
    return f"After {step:,} steps – {'; '.join(parts)}. {verdict}"


def describe_losses(loss: Mapping[str, float]) -> str:
    """Which run predicts best so far, and by how much the others lag behind."""
    best = min(loss, key=loss.__getitem__)
    others = ", ".join(f"“{name}” {value - loss[best]:.4f}" for name, value in loss.items() if name != best)
    return f"The lowest loss is that of “{best}”, {loss[best]:.4f} nats per token; above it: {others}."


def cost_map(costs: np.ndarray, layers: Sequence[int], plain: float) -> dict[str, Any]:
    """By how many nats per token the loss rises when one expert is switched off (L, E); a click is that expert."""
    L, E = costs.shape
    limit = max(float(np.abs(costs).max()), 1e-6)
    cells = {
        "type": "heatmap",
        "z": numbers(costs),
        "text": [[signed(cost, 3 if abs(cost) < 0.095 else 2) for cost in row] for row in costs.tolist()],
        "texttemplate": "%{text}" if E <= 16 else "",
        "textfont": {"size": 11},
        "colorscale": colorscale(palette.DIVERGING_SCALE),
        "zmin": -limit,
        "zmax": limit,
        "xgap": 2,
        "ygap": 2,
        "hovertemplate": "%{y}, expert %{x}<br>loss rises by %{z:.4f}<extra></extra>",
        "colorbar": colorbar("nats"),
    }
    return {
        "data": [cells],
        "layout": layout(
            76 + 36 * L,
            margin={"l": 8, "r": 8, "t": 8, "b": 36},
            narrow={"xaxis.tickfont.size": 9},
            xaxis=axis("expert switched off", tickvals=list(range(E)), showgrid=False, fixedrange=True),
            yaxis=axis(
                tickvals=list(range(L)), ticktext=[f"layer {n}" for n in layers], autorange="reversed", showgrid=False,
                fixedrange=True,
            ),
            uirevision=f"{L} {E} {plain}",
        ),
    }  # fmt: skip


def describe_costs(costs: np.ndarray, layers: Sequence[int], plain: float) -> str:
    """The dearest and the cheapest expert."""
    i, e = np.unravel_index(int(costs.argmax()), costs.shape)
    j, f = np.unravel_index(int(costs.argmin()), costs.shape)
    return (
        f"The loss is {plain:.4f} with all experts. Missed most: expert {e} of layer {layers[i]}, whose absence costs "
        f"{costs[i, e]:.4f} nats per token; missed least: expert {f} of layer {layers[j]} ({signed(costs[j, f], 4)})."
    )


def _run_lines(
    runs: Mapping[str, tuple[Sequence[int], Sequence[float]]],
    title: str,
    planned_steps: int,
    span: list[float] | None,
    line_at: float | None,
) -> dict[str, Any]:
    lines = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": escaped(name),
            "x": numbers(steps),
            "y": numbers(values),
            "line": {"width": 2, "color": RUN_COLORS[i % 4], "dash": RUN_DASHES[i % 4]},
            "marker": {"size": 4},
            "hovertemplate": "%{y:.4f}",
        }
        for i, (name, (steps, values)) in enumerate(runs.items())
    ]
    even = {"color": palette.MUTED, "width": 1, "dash": "dash"}
    shapes = [] if line_at is None else [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": line_at, "y1": line_at, "line": even}
    ]  # fmt: skip
    return {
        "data": lines,
        "layout": layout(
            280,
            margin={"l": 52, "r": 12, "t": 40, "b": 44},
            showlegend=True,
            legend={
                "orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom",
                "font": {"size": 11, "color": palette.MUTED},
            },
            narrow={"legend.font.size": 9, "margin.l": 42},
            xaxis=axis("optimizer steps", range=[0, planned_steps]),
            yaxis=axis(title, **({"range": span} if span else {})),
            shapes=shapes,
            hovermode="x unified",
            uirevision=f"{title} {planned_steps}",
        ),
    }  # fmt: skip
