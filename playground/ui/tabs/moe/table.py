"""Both in numbers: the two models' size, cost and results; speeds without a record are timed here, in turns."""

from __future__ import annotations

import copy
import statistics
import threading
import time
import weakref
from collections.abc import Callable

import torch

from ....kept import Kept
from ....model import Transformer
from ....service.views import PairView
from ....training import loss_of
from ....training.comparison import SIDES
from ....words.matched_pair import cost_headline
from ....words.numbers import signed
from ... import theme
from ...panel import Slot, slot
from .selection import At

TITLE = "Both in numbers"
TEMPLATE = f'<div id="moe-table" class="stack">{slot("figures-note")}{slot("table", class_="stack")}</div>'
ROUNDS = 5
TRAINED_WINDOWS = 8
"""How many windows a timed step has."""


def slots(at: At) -> dict[str, Slot]:
    """The table."""
    view = at.view
    state = (at.about_both, view.id, view.state, view.version if view.active else 0) if view else None
    return {"table": Slot(state, lambda: pair_table(at.seen(), speeds_of(at)), slow=True)}


def speeds_of(at: At) -> dict[str, float | None]:
    """Each side's tokens per second in training: recorded if both were trained in turns, or else timed."""
    return at.view.speeds if at.job else training_speeds(*(checkpoint.model for checkpoint in at.pair))


def pair_table(view: PairView | None, speeds: dict[str, float | None]) -> str:
    """A headline and the table of both models, with the rows that are known."""
    if view is None or not view.sides:
        return theme.notice("Both models appear here, side by side, once both are trained.")
    dense, moe = configs = [view.sides[side].config for side in SIDES]
    rows = [
        _compared("parameters in all", *(config.n_parameters for config in configs)),
        _compared("active parameters", *(config.n_active_parameters for config in configs)),
        _compared("FLOPs per token", *(config.flops_per_token() for config in configs)),
        _compared("training, tokens/s", *(speeds[side] for side in SIDES), written=two_digits),
        *_losses(view),
    ]
    table = theme.table(("", "Dense", "MoE", "MoE compared"), rows, save="dense-vs-moe-table")
    return f"<h3>{cost_headline(dense, moe)}</h3>{table}"


def two_digits(speed: float) -> str:
    """A speed to two digits, which another measurement would repeat."""
    return f"{float(f'{speed:.2g}'):,.{1 if speed < 9.95 else 0}f}"


def training_speeds(dense: Transformer, moe: Transformer) -> dict[str, float]:
    """Tokens per second of both models, forward and backward, in turns on the same tokens: a median. Cached."""

    def time_both() -> dict[str, float]:
        with _clock:
            return _time_training({"dense": dense, "moe": moe})

    return _timed.get(weakref.ref(dense), time_both, owner=moe)


def _time_training(models: dict[str, Transformer]) -> dict[str, float]:
    copies = {side: copy.deepcopy(model).train() for side, model in models.items()}  # gradients must not stay behind
    length = min(model.config.context_length for model in models.values())
    most = min(model.config.vocab_size for model in models.values())
    ids = torch.randint(most, (TRAINED_WINDOWS, length), generator=torch.Generator().manual_seed(0))  # (B, T)
    taken: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(ROUNDS + 1):
        for side, model in copies.items():
            began = time.perf_counter()
            loss_of(model(ids).logits, ids).backward()
            taken[side].append(time.perf_counter() - began)
    # the first round also pays for what torch sets up
    return {side: ids.numel() / statistics.median(taken[side][1:]) for side in SIDES}


_clock = threading.Lock()  # two timings at once would disturb each other
_timed = Kept(entries=4)


def _compared(
    name: str, dense: float | None, moe: float | None, written: Callable[[float], str] = "{:,}".format
) -> list[str]:
    times = f"{moe / dense:.2f}\u00a0×" if dense and moe is not None else ""
    return [name, *("–" if value is None else written(value) for value in (dense, moe)), times]


def _losses(view: PairView) -> list[list[str]]:
    # only complete pairs are compared: one under way, or with a stopped side, would bias the mean
    n = view.verdict.seeds if view.verdict else 1
    found = {side: view.sides[side].val_losses[:n] for side in SIDES}
    if not all(found.values()):
        return []
    dense, moe = (statistics.fmean(found[side]) for side in SIDES)
    recorded = view.matched is None
    over = f", mean of {n} seeds" if n > 1 else " so far" if view.active else " at the end of training"
    gap = view.verdict.difference if recorded and view.verdict else moe - dense
    difference = f"{'on fresh text: ' * recorded}{abs(gap):.4f} {'lower' if gap < 0 else 'higher'}"
    rows = [[f"validation loss{over}", f"{dense:.4f}", f"{moe:.4f}", difference]]
    if view.baselines and (floor := view.baselines.floor) is not None:
        rows.append([f"above the best possible{over}", signed(dense - floor, 4), signed(moe - floor, 4), ""])
    return rows
