"""Records from elsewhere: of what a checkpoint says about its run, only that which has the right form is kept."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from ..data import Ladder
from ..training import History, TrainConfig
from .checkpoint import Checkpoint

MAX_NAME = 80
MAX_TEXT = 20_000
MAX_POINTS = 4000


def regular(checkpoint: Checkpoint) -> Checkpoint:
    """The same with only that of its record which has the right form: a page shows it, and anybody may have written it.

    Names and texts lose control characters and what is beyond a sane length; samples, gradients, loads and notes of
    another form are left out.
    """
    history, about = checkpoint.history, checkpoint.about
    kept = History(
        _finite(history.steps),
        _finite(history.evaluations),
        samples=[
            {"step": sample["step"], "prompt": _text(sample["prompt"]), "text": _text(sample["text"])}
            for sample in history.samples
            if _is_step(sample.get("step")) and all(isinstance(sample.get(k), str) for k in ("prompt", "text"))
        ],
        gradients=[
            {"step": record["step"], "norms": {str(k)[:MAX_NAME]: float(v) for k, v in record["norms"].items()}}
            for record in history.gradients
            if _is_step(record.get("step")) and _numbers_by_name(record.get("norms"))
        ],
        load=[
            {"step": record["step"], "load": record["load"]}
            for record in history.load
            if _is_step(record.get("step")) and _table(record.get("load"))
        ],
        finished=_finished(history.finished),
    )
    notes = {key: _line(about[key]) for key in ("corpus", "language", "text_sha256") if isinstance(about.get(key), str)}
    if isinstance(about.get("prompt"), str):
        notes["prompt"] = _text(about["prompt"])
    for key, make in (("ladder", _ladder), ("training", _training)):
        if isinstance(about.get(key), dict) and (value := make(about[key])) is not None:
            notes[key] = value
    return Checkpoint(checkpoint.model, checkpoint.tokenizer, kept, _line(checkpoint.name) or "model", notes)


def _finite(columns: dict[str, list[float]]) -> dict[str, list[float]]:
    """The rows whose every number is one, as many as a chart can show; none if steps do not rise."""
    rows = [row for row in zip(*columns.values()) if all(map(_is_number, row))]
    names = list(columns)
    steps = [row[names.index("step")] for row in rows]
    if not all(_is_step(step) for step in steps) or any(b <= a for a, b in pairwise(steps)):
        rows = []
    rows = rows[:: max(1, -(-len(rows) // MAX_POINTS))]
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _ladder(values: dict[str, Any]) -> dict[str, Any] | None:
    try:
        ladder = Ladder(**values)
    except TypeError:
        return None
    rungs = ladder.to_dict()
    floor = rungs.pop("floor")
    fine = all(_is_number(v) for v in rungs.values()) and (floor is None or _is_number(floor))
    return ladder.to_dict() if fine else None


def _training(values: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return TrainConfig.from_dict(values).to_dict()
    except (ValueError, TypeError):
        return None


def _finished(values: Any) -> dict[str, Any] | None:
    if not isinstance(values, dict):
        return None
    texts = {key: _line(values[key]) for key in ("event", "reason", "message") if isinstance(values.get(key), str)}
    return texts | {key: values[key] for key in ("step", "seconds", "val_loss") if _is_number(values.get(key))}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12


def _numbers_by_name(values: Any) -> bool:
    return isinstance(values, dict) and len(values) < 1000 and all(map(_is_number, values.values()))


def _table(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(row, list) and all(map(_is_number, row)) for row in values)


def _text(text: str) -> str:
    return "".join(c for c in text[:MAX_TEXT] if c.isprintable() or c in "\n\t ")


def _line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text[: 2 * MAX_NAME]).strip()[:MAX_NAME]
