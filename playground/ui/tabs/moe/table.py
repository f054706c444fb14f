"""The table: the two models' shape, cost and results, row by row; speeds without a record are timed here, in turns."""

from __future__ import annotations

import copy
import html
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
from ....words.numbers import signed
from ... import theme

ROUNDS = 5
TRAINED_WINDOWS = 8
"""How many windows a timed step has."""


def pair_table(view: PairView | None, speeds: dict[str, float | None] | None = None) -> str:
    """The table of both models, with the rows that are known. Escaped.

    Args:
        speeds: each side's tokens per second in training, recorded during their training or timed here.
    """
    if view is None or not view.sides:
        return theme.notice("Both models appear here, side by side, once there are two.")
    configs = [view.sides[side].config for side in SIDES]
    rows = [
        _compared("parameters in all", *(config.n_parameters for config in configs)),
        _compared("active parameters", *(config.n_active_parameters for config in configs)),
        _compared("FLOPs per token", *(config.flops_per_token() for config in configs)),
        _compared("training, tokens/s", *((speeds or {}).get(side) for side in SIDES), written=two_digits),
        *_losses(view),
    ]
    whose = "" if view.matched is None else f"{view.name}, under way" if view.active else view.name
    caption = f'<p class="quiet">{html.escape(whose)}</p>' if whose else ""
    return caption + theme.table(("", "Dense", "MoE", "MoE compared"), rows, save="dense-vs-moe-table")


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
_timed = Kept(entries=256)


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
    means = {side: statistics.fmean(losses) for side, losses in found.items()}
    over = f", mean of {n} seeds" if n > 1 else ""
    if view.verdict is None and (view.active or any(side.reasons[:1] != ("done",) for side in view.sides.values())):
        over = ", unfinished runs"
    gap, fresh = means["moe"] - means["dense"], ""
    if view.verdict is not None and view.matched is None:
        over, gap, fresh = " at the end of training", view.verdict.difference, "on fresh text: "
    difference = f"{fresh}{abs(gap):.4f} {'lower' if gap < 0 else 'higher'}"
    if not view.alike:
        over, difference = ", each recorded on its own windows", "not comparable"
    rows = [[f"validation loss{over}", f"{means['dense']:.4f}", f"{means['moe']:.4f}", difference]]
    floors = [view.sides[side].floor for side in SIDES]
    if any(floor is not None for floor in floors):
        gaps = [None if floor is None else means[side] - floor for side, floor in zip(SIDES, floors)]
        written = ["–" if gap is None else signed(gap, 4) for gap in gaps]
        rows.append([f"above the best possible{over}", *written, ""])
    return rows
