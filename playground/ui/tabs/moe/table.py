"""The table: what the two models are, cost and reach, row by row; what a record cannot tell is timed here, in turns."""

from __future__ import annotations

import copy
import statistics
import threading
import time
import weakref
from collections.abc import Callable

import torch

from ....engine import SamplingConfig, generate
from ....kept import Kept
from ....model import ModelConfig, Transformer
from ....service.limits import training_memory
from ....service.views import PairView, SideView
from ....training import loss_of
from ....training.comparison import SIDES
from ....words.numbers import signed
from ... import theme
from ...theme import duration, table

DECODED = 24
ROUNDS = 5
TRAINED_WINDOWS = 8
"""Windows in a step that is timed."""


def pair_table(
    view: PairView | None, decoding: dict[str, float] | None = None, training: dict[str, float] | None = None
) -> str:
    """The rows that are known. Everything is escaped.

    Args:
        decoding: tokens per second of each side, from `decoding_speeds`; None where it was not timed yet.
        training: the same of training steps, from `training_speeds`, for two that were not trained in turns: what
            their records say of time was measured at different hours.
    """
    if view is None or not view.sides:
        return theme.notice("Both models appear here, side by side, once there are two.")
    dense, moe = view.sides["dense"], view.sides["moe"]
    apart = view.matched is None  # two records, not one comparison
    later = "timed at the end" if view.active else "being timed …"
    told = None if apart else {side: training_speed(view.sides[side]) for side in SIDES}
    turns = "timed here" if training or apart else "recorded while they trained"
    rows = [
        _counted("parameters in all", dense.config.n_parameters, moe.config.n_parameters),
        _counted("active parameters (used by one token)", *(s.config.n_active_parameters for s in (dense, moe))),
        _counted("FLOPs per token", dense.config.flops_per_token(), moe.config.flops_per_token()),
        _speeds(f"training, tokens/s, {turns}", training or told, later),
        _speeds("decoding, tokens/s, timed here", decoding, later),
    ]
    one = ", first seed" if view.seeds > 1 and not apart else ""  # whose models these are
    took = _compared(
        f"time in training, with evaluations{one}",
        seconds(dense),
        seconds(moe),
        lambda s: f"{s:.1f} s" if s < 10 else duration(s),
    )
    if training or apart:
        took = ["time in training, recorded one after the other", took[1], took[2], "not comparable"]
    rows += [
        took,
        _compared(f"FLOPs of training{one}", spent(dense), spent(moe), lambda v: f"{v:.3g}"),
        _compared("memory of the weights", weights(dense.config), weights(moe.config), _megabytes),
        _compared("… read for one token", active_bytes(dense.config), active_bytes(moe.config), _megabytes),
        _compared("memory of a training step, about", _step_memory(dense), _step_memory(moe), _megabytes),
    ]
    rows += _losses(view)
    whose = "" if apart else f"{view.name}, under way" if view.active else view.name
    return table((whose, "Dense", "MoE", "MoE ÷ dense, or MoE − dense"), rows, save="dense-vs-moe-table")


def _speeds(title: str, speeds: dict[str, float | None] | None, later: str) -> list[str]:
    """A row of tokens per second, or of when there will be some."""
    if not speeds:
        return [title, later, later, ""]
    *row, times = _compared(title, speeds["dense"], speeds["moe"], two_digits)
    return [*row, times and f"{speeds['moe'] / speeds['dense']:.2g}×"]


def two_digits(speed: float) -> str:
    """A speed to the two digits that another measurement would give again."""
    return f"{float(f'{speed:.2g}'):,.{1 if speed < 9.95 else 0}f}"


def training_speed(side: SideView) -> float | None:
    """Tokens per second of the first seed's steps, the middle of all; None before the first."""
    measured = side.histories[0].steps["tokens_per_second"] if side.histories else []
    return statistics.median(measured) if measured else None


def seconds(side: SideView) -> float | None:
    """Of the first seed's training, evaluations included."""
    taken = side.histories[0].steps["seconds"] if side.histories else []
    return taken[-1] if taken else None


def spent(side: SideView) -> float | None:
    """Floating-point operations of the first seed's training so far."""
    steps = side.histories[0].last_step if side.histories else 0
    return float(steps * side.tokens_per_step * side.config.flops_per_token(training=True)) if steps else None


def weights(config: ModelConfig) -> float:
    """Bytes of all weights in fp32."""
    return 4.0 * config.n_parameters


def active_bytes(config: ModelConfig) -> float:
    """Bytes of the weights that one token needs, in fp32."""
    return 4.0 * config.n_active_parameters


def decoding_speeds(dense: Transformer, moe: Transformer) -> dict[str, float]:
    """Tokens per second of both from the cache, decoded in turns, token by token; the middle of some rounds. Kept."""
    return _once(_time_decoding, dense, moe)


def training_speeds(dense: Transformer, moe: Transformer) -> dict[str, float]:
    """Tokens per second of both models, forward and backward, in turns on the same tokens: a median. Cached."""
    return _once(_time_training, dense, moe)


def _once(timing: Callable[..., dict[str, float]], dense: Transformer, moe: Transformer) -> dict[str, float]:
    def time_both() -> dict[str, float]:
        with _clock:
            return timing({"dense": dense, "moe": moe})

    return _timed.get((timing, weakref.ref(dense)), time_both, owner=moe)


def _time_training(models: dict[str, Transformer]) -> dict[str, float]:
    copies = {side: copy.deepcopy(model).train() for side, model in models.items()}  # gradients belong to nobody
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


def _time_decoding(models: dict[str, Transformer]) -> dict[str, float]:
    rates: dict[str, list[float]] = {side: [] for side in SIDES}
    length = max(min(DECODED, min(model.config.context_length for model in models.values()) - 2), 1)
    for _ in range(ROUNDS):
        runs = {side: generate(model, [0], length, SamplingConfig(seed=0)) for side, model in models.items()}
        taken = dict.fromkeys(SIDES, 0.0)
        for steps in zip(*runs.values()):
            for side, step in zip(runs, steps):
                taken[side] += step.seconds if step.index else 0.0  # the first one allocates the cache
        for side in SIDES:
            rates[side].append(max(length - 1, 1) / max(taken[side], 1e-9))
    return {side: statistics.median(found) for side, found in rates.items()}


_clock = threading.Lock()  # two timings at once would disturb each other
_timed = Kept(entries=256)


def _step_memory(side: SideView) -> float:
    return float(training_memory(side.config, max(side.tokens_per_step // side.config.context_length, 1)))


def _counted(name: str, dense: int, moe: int) -> list[str]:
    return [name, f"{dense:,}", f"{moe:,}", _times(dense, moe)]


def _compared(name: str, dense: float | None, moe: float | None, written: Callable[[float], str]) -> list[str]:
    if dense is None or moe is None:
        return [name, *("–" if v is None else written(v) for v in (dense, moe)), ""]
    return [name, written(dense), written(moe), _times(dense, moe)]


def _megabytes(count: float) -> str:
    return f"{count / 1e6:,.{2 if count < 1e7 else 0}f} MB"


def _times(dense: float, moe: float) -> str:
    return f"{moe / dense:.2f}×" if dense else ""


def _losses(view: PairView) -> list[list[str]]:
    # only complete pairs compare: a pair that is under way, or of which one was stopped, would tilt the mean
    n = view.verdict.seeds if view.verdict else 1
    found = {side: view.sides[side].val_losses[:n] for side in SIDES}
    if not all(found.values()):
        return []
    means = {side: statistics.fmean(losses) for side, losses in found.items()}
    over = f", mean of {n} seeds" if n > 1 else ""
    if view.verdict is None and (view.active or any(side.reasons[:1] != ("done",) for side in view.sides.values())):
        over = ", as far as they came"
    if view.verdict is not None and view.matched is None:
        over = ", as recorded"  # the verdict is on fresh text
    difference = f"{signed(means['moe'] - means['dense'], 4, plus=True)} nats"
    if not view.alike:
        over, difference = ", each recorded on its own windows", "not comparable"
    rows = [[f"validation loss{over}", f"{means['dense']:.4f}", f"{means['moe']:.4f}", difference]]
    floors = [view.sides[side].floor for side in SIDES]
    if any(floor is not None for floor in floors):
        gaps = [None if floor is None else means[side] - floor for side, floor in zip(SIDES, floors)]
        written = ["–" if gap is None else signed(gap, 4) for gap in gaps]
        rows.append([f"above the best possible{over}", *written, difference if None not in gaps else ""])
    return rows
