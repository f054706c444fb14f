"""History: the curves of a run, gathered from its events; what a checkpoint remembers and a chart draws."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, field, replace
from typing import Any

from .events import (
    Evaluated,
    Finished,
    GradientsMeasured,
    LoadMeasured,
    Sampled,
    SettingsChanged,
    SkillMeasured,
    Stepped,
    TrainEvent,
)

_COLUMNS = {
    "steps": ("step", "loss", "learning_rate", "gradient_norm", "tokens_per_second", "seconds"),
    "evaluations": ("step", "train_loss", "val_loss", "seconds"),
}
_RECORDS = {"samples": (), "gradients": ("norms",), "load": ("load",), "changes": (), "judged": ()}  # what is numbers


@dataclass
class History:
    """Columns of numbers, one list per curve, in the order of the run.

    `steps` and `evaluations` hold equally long lists by column name; `samples`, `gradients`, `load`, `changes` (of
    settings, when the run went on) and `judged` are lists of plain records.
    """

    steps: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in _COLUMNS["steps"]})
    evaluations: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in _COLUMNS["evaluations"]})
    samples: list[dict[str, Any]] = field(default_factory=list)
    gradients: list[dict[str, Any]] = field(default_factory=list)
    load: list[dict[str, Any]] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)
    finished: dict[str, Any] | None = None
    judged: list[dict[str, Any]] = field(default_factory=list)

    def add(self, event: TrainEvent) -> None:
        """Take in one event; those that draw no curve leave no trace."""
        if isinstance(event, Stepped):
            for name, column in self.steps.items():
                column.append(getattr(event, name))
        elif isinstance(event, Evaluated):
            for name, column in self.evaluations.items():
                column.append(getattr(event, name))
        elif isinstance(event, Sampled):
            self.samples.append({"step": event.step, "prompt": event.prompt, "text": event.text})
        elif isinstance(event, GradientsMeasured):
            self.gradients.append({"step": event.step, "norms": event.norms})
        elif isinstance(event, LoadMeasured):
            self.load.append({"step": event.step, "load": event.load})
        elif isinstance(event, SkillMeasured):
            self.judged.append({"step": event.step, "right": event.right, "of": event.of, "left": event.left})
        elif isinstance(event, SettingsChanged):
            settings = {name: list(values) for name, values in event.settings.items()}
            self.changes.append({"step": event.step, "settings": settings})
        elif isinstance(event, Finished):
            self.finished = event.to_dict()

    @property
    def last_step(self) -> int:
        """Steps done, 0 before the first."""
        return int(self.steps["step"][-1]) if self.steps["step"] else 0

    @property
    def val_loss(self) -> float | None:
        """The last validation loss, if there was any evaluation."""
        return self.evaluations["val_loss"][-1] if self.evaluations["val_loss"] else None

    @property
    def best(self) -> tuple[int, float] | None:
        """(step, validation loss) of the best evaluation; None where none gave a number."""
        evaluated = zip(self.evaluations["val_loss"], self.evaluations["step"])
        loss, step = min(((loss, step) for loss, step in evaluated if math.isfinite(loss)), default=(None, 0))
        return None if loss is None else (int(step), loss)

    def until(self, step: int) -> History:
        """A copy that ends with this step: what a run remembers whose weights of then are used."""
        kept = History(*({name: list(column) for name, column in t.items()} for t in (self.steps, self.evaluations)))
        for table in (kept.steps, kept.evaluations):
            inside = sum(1 for at in table["step"] if at <= step)
            for column in table.values():
                del column[inside:]
        for name in _RECORDS:
            setattr(kept, name, [record for record in getattr(self, name) if record["step"] <= step])
        return kept

    def copied(self) -> History:
        """A copy whose lists are its own."""
        tables = ({name: list(column) for name, column in t.items()} for t in (self.steps, self.evaluations))
        return History(*tables, **{name: list(getattr(self, name)) for name in _RECORDS}, finished=self.finished)

    def thinned(self, points: int = 400) -> History:
        """A copy whose step curves keep about `points` evenly spread entries, for files and for the wire."""
        stride = max(1, -(-len(self.steps["step"]) // points))
        kept = {name: column[::stride] for name, column in self.steps.items()}
        if self.steps["step"] and kept["step"][-1] != self.steps["step"][-1]:
            for name, column in self.steps.items():
                kept[name].append(column[-1])
        return replace(self, steps=kept)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: getattr(self, name) for name in (*_COLUMNS, *_RECORDS, "finished")}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> History:
        """The inverse of `to_dict`; null, as which files hold what is not a finite number, is read as NaN.

        Raises ValueError where columns are missing, uneven or no numbers.
        """
        if not isinstance(values, dict):
            raise ValueError("a history is a table of columns")
        history = cls()
        for table, columns in _COLUMNS.items():
            given = values.get(table, {})
            lists = {name: given.get(name, []) for name in columns}
            if not all(isinstance(column, list) for column in lists.values()):
                raise ValueError(f"the columns of {table} must be lists")
            lists = {name: column if name == "step" else _numbers(column) for name, column in lists.items()}
            if len({len(column) for column in lists.values()}) > 1:
                raise ValueError(f"the columns of {table} are not equally long")
            if not all(isinstance(x, (int, float)) for column in lists.values() for x in column):
                raise ValueError(f"the columns of {table} must hold numbers")
            setattr(history, table, lists)
        for name, numbers in _RECORDS.items():
            records = values.get(name, [])
            if not isinstance(records, list) or not all(isinstance(r, dict) and "step" in r for r in records):
                raise ValueError(f"{name} must be a list of records with a step")
            setattr(history, name, [{k: _numbers(v) if k in numbers else v for k, v in r.items()} for r in records])
        if not all(map(_is_change, history.changes)):
            raise ValueError("changes must name settings, each with what it was and what it became")
        history.finished = values.get("finished")
        return history

    def to_csv(self) -> str:
        """One row per step that is kept or was evaluated: with its evaluation, if any, and empty where not kept."""
        evaluated = {
            int(step): row
            for step, row in zip(
                self.evaluations["step"], zip(self.evaluations["train_loss"], self.evaluations["val_loss"])
            )
        }
        rows = {
            int(step): (int(step), "", "", "", "", seconds)
            for step, seconds in zip(self.evaluations["step"], self.evaluations["seconds"])
        } | {int(row[0]): row for row in zip(*self.steps.values())}
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow((*_COLUMNS["steps"], "train_loss", "val_loss"))
        for step, row in sorted(rows.items()):
            writer.writerow((*row, *evaluated.get(step, ("", ""))))
        return out.getvalue()


def _numbers(value: Any) -> Any:
    """The same lists and tables with NaN for null."""
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    if isinstance(value, dict):
        return {name: _numbers(each) for name, each in value.items()}
    return math.nan if value is None else value


def _is_change(record: dict[str, Any]) -> bool:
    settings = record.get("settings")
    return isinstance(settings, dict) and all(isinstance(pair, list) and len(pair) == 2 for pair in settings.values())
