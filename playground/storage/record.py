"""A checkpoint's records of its run: only those of the right form are kept, and from a stranger only sane ones."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..data import Baselines
from ..training.config import TrainConfig
from ..training.history import History

MAX_NAME = 80
MAX_TEXT = 20_000
MAX_GUESSED = 2000
MAX_POINTS = 4000
MAX_RECORDS = 500


def sanitised_history(history: History, *, own: bool = False) -> History:
    """The history with only records of the right form: numbers that are numbers, texts without control characters.

    A stranger's history keeps only finite numbers at rising steps, only some of very many records, and no changes of
    settings. Our `own` may hold NaN, since a run may have diverged.
    """
    is_number, columns, some = (_is_float, _at_steps, list) if own else (_is_number, _finite, _some)
    return replace(
        history if own else History(),
        steps=columns(history.steps),
        evaluations=columns(history.evaluations),
        samples=[
            {"step": record["step"], "prompt": _text(record["prompt"]), "text": _text(record["text"])}
            for record in some(history.samples)
            if _is_step(record.get("step")) and all(isinstance(record.get(k), str) for k in ("prompt", "text"))
        ],
        gradients=[
            {"step": record["step"], "norms": {k[:MAX_NAME]: v for k, v in _numbers(record["norms"]).items()}}
            for record in some(history.gradients)
            if _is_step(record.get("step"))
            and isinstance(record.get("norms"), dict)
            and len(record["norms"]) < 1000
            and all(map(is_number, _numbers(record["norms"]).values()))
        ],
        load=[
            {"step": record["step"], "load": record["load"]}
            for record in some(history.load)
            if _is_step(record.get("step")) and _is_table(record.get("load"))
        ],
        judged=[
            {name: record[name] for name in ("step", "right", "of")}
            for record in some(history.judged)
            if all(map(_is_step, (record.get("step"), record.get("right"), record.get("of"))))
            and record["right"] <= record["of"]
        ],
        finished=history.finished if own and isinstance(history.finished, dict) else _finished(history.finished),
    )


def sound_notes(about: Any) -> dict[str, Any]:
    """A record's notes on its run, without a prompt or baselines of the wrong form."""
    if not isinstance(about, dict):
        return {}
    fine = {"prompt": lambda value: isinstance(value, str), "ladder": lambda value: _baselines(value) is not None}
    return {key: value for key, value in about.items() if value is None or key not in fine or fine[key](value)}


def sanitised_notes(about: dict[str, Any]) -> dict[str, Any]:
    """A stranger's notes, for a page: only known ones of the right form."""
    texts = ("corpus", "language", "text_sha256")
    notes = {key: single_line(about[key]) for key in texts if isinstance(about.get(key), str)}
    if isinstance(about.get("prompt"), str):
        notes["prompt"] = _text(about["prompt"])
    for key, make in (("ladder", _baselines), ("training", _training)):
        if isinstance(about.get(key), dict) and (value := make(about[key])) is not None:
            notes[key] = value
    return notes


def single_line(text: str, longest: int = MAX_NAME) -> str:
    """A name fit to be shown: without control characters, of a sane length."""
    return "".join(c if c.isprintable() else " " for c in text[: 2 * longest]).strip()[:longest]


def _at_steps(columns: dict[str, list[float]]) -> dict[str, list[float]]:
    rows = [i for i, step in enumerate(columns["step"]) if _is_step(step)]
    return {name: [column[i] for i in rows] for name, column in columns.items()}


def _some(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return records[:: max(1, -(-len(records) // MAX_RECORDS))]


def _numbers(by_name: dict[str, Any]) -> dict[str, Any]:
    """Numbers from JSON, which has null in place of NaN."""
    return {name: math.nan if value is None else value for name, value in by_name.items()}


def _finite(columns: dict[str, list[float]]) -> dict[str, list[float]]:
    """The rows with only finite numbers, as many as a chart can show; none if steps do not rise."""
    rows = [i for i, row in enumerate(zip(*columns.values())) if all(map(_is_number, row))]
    if any(columns["step"][b] <= columns["step"][a] for a, b in pairwise(rows)):
        rows = []
    rows = rows[:: max(1, -(-len(rows) // MAX_POINTS))]
    return {name: [column[i] for i in rows] for name, column in columns.items()}


def _baselines(values: Any) -> dict[str, Any] | None:
    try:
        baselines = Baselines.from_dict(values)
    except ValueError:
        return None
    return baselines.to_dict() | {"texts": {name: _text(text[:MAX_GUESSED]) for name, text in baselines.texts.items()}}


def _training(values: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return TrainConfig.from_dict(values).to_dict()
    except (ValueError, TypeError):
        return None


def _finished(values: Any) -> dict[str, Any] | None:
    if not isinstance(values, dict):
        return None
    texts = {
        key: single_line(values[key]) for key in ("event", "reason", "message") if isinstance(values.get(key), str)
    }
    numbers = [key for key in ("step", "seconds", "steps", "val_loss", "weights_step") if key in values]
    return texts | {key: values[key] for key in numbers if values[key] is None or _is_number(values[key])}


def _is_float(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_float(value) and math.isfinite(value)


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12


def _is_table(values: Any) -> bool:
    rows = values if isinstance(values, list) else [None]
    return len(rows) <= 1024 and all(
        isinstance(row, list) and len(row) <= 1024 and all(map(_is_number, row)) for row in rows
    )


def _text(text: str) -> str:
    return "".join(c for c in text[:MAX_TEXT] if c.isprintable() or c in "\n\t ")
