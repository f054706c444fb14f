"""History: the curves of a run, gathered from its events; what a checkpoint remembers and a chart draws."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
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

_COLUMNS: dict[type[TrainEvent], tuple[str, tuple[str, ...]]] = {
    Stepped: ("steps", ("step", "loss", "learning_rate", "gradient_norm", "tokens_per_second", "seconds")),
    Evaluated: ("evaluations", ("step", "train_loss", "val_loss", "seconds")),
}
_RECORDS: dict[type[TrainEvent], tuple[str, tuple[str, ...]]] = {
    Sampled: ("samples", ("step", "prompt", "text")),
    GradientsMeasured: ("gradients", ("step", "norms")),
    LoadMeasured: ("load", ("step", "load")),
    SettingsChanged: ("changes", ("step", "settings")),
    SkillMeasured: ("judged", ("step", "right", "of")),
}
_NUMBERS = ("norms", "load")
"""Those parts of the records that are numbers only."""


@dataclass
class History:
    """Columns of numbers, one list per curve, in the order of the run.

    `steps` and `evaluations` hold equally long lists by column name; `samples`, `gradients`, `load`, `changes` (of
    settings, when the run went on) and `judged` are lists of plain records.
    """

    steps: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in _COLUMNS[Stepped][1]})
    evaluations: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in _COLUMNS[Evaluated][1]})
    samples: list[dict[str, Any]] = field(default_factory=list)
    gradients: list[dict[str, Any]] = field(default_factory=list)
    load: list[dict[str, Any]] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)
    finished: dict[str, Any] | None = None
    judged: list[dict[str, Any]] = field(default_factory=list)

    def add(self, event: TrainEvent) -> None:
        """Take in one event; events that belong to no curve leave no trace."""
        kind = type(event)
        if kind in _COLUMNS:
            for name, column in getattr(self, _COLUMNS[kind][0]).items():
                column.append(getattr(event, name))
        elif kind in _RECORDS:
            table, names = _RECORDS[kind]
            getattr(self, table).append({name: getattr(event, name) for name in names})
        elif kind is Finished:
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
        """(step, validation loss) of the best evaluation; None if no loss was a number."""
        evaluated = zip(self.evaluations["val_loss"], self.evaluations["step"])
        loss, step = min(((loss, step) for loss, step in evaluated if math.isfinite(loss)), default=(None, 0))
        return None if loss is None else (int(step), loss)

    def until(self, step: float) -> History:
        """A copy that ends with this step, for a run whose weights from that step are used."""
        kept = History()
        for table, _ in _COLUMNS.values():
            columns = getattr(self, table)
            inside = sum(1 for at in columns["step"] if at <= step)
            setattr(kept, table, {name: column[:inside] for name, column in columns.items()})
        for table, _ in _RECORDS.values():
            setattr(kept, table, [record for record in getattr(self, table) if record["step"] <= step])
        return kept

    def copied(self) -> History:
        """A copy whose lists are its own."""
        return replace(self.until(math.inf), finished=self.finished)

    def thinned(self, points: int = 400) -> History:
        """A copy whose step curves keep about `points` evenly spread entries, for files and for the browser."""
        n = len(self.steps["step"])
        kept = [i for i in range(n) if i % -(-n // points) == 0 or i == n - 1]
        return replace(self, steps={name: [column[i] for i in kept] for name, column in self.steps.items()})

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> History:
        """The inverse of `to_dict`. Files store non-finite numbers as null, which is read as NaN.

        Raises ValueError if columns are missing, of unequal length or not numbers.
        """
        if not isinstance(values, dict):
            raise ValueError("a history is a table of columns")
        history = cls(finished=values.get("finished"))
        for table, names in _COLUMNS.values():
            given = {name: values.get(table, {}).get(name, []) for name in names}
            columns = {name: column if name == "step" else _numbers(column) for name, column in given.items()}
            if not all(isinstance(c, list) and all(isinstance(x, (int, float)) for x in c) for c in columns.values()):
                raise ValueError(f"the columns of {table} must hold numbers")
            if len(set(map(len, columns.values()))) > 1:
                raise ValueError(f"the columns of {table} are not equally long")
            setattr(history, table, columns)
        for table, _ in _RECORDS.values():
            records = values.get(table, [])
            if not isinstance(records, list) or not all(isinstance(r, dict) and "step" in r for r in records):
                raise ValueError(f"{table} must be a list of records with a step")
            setattr(history, table, [{k: _numbers(v) if k in _NUMBERS else v for k, v in r.items()} for r in records])
        for settings in (record.get("settings") for record in history.changes):
            pairs = settings.values() if isinstance(settings, dict) else [None]
            if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
                raise ValueError("changes must name settings, each with what it was and what it became")
        return history


def _numbers(value: Any) -> Any:
    """The same lists and tables with NaN in place of null."""
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    if isinstance(value, dict):
        return {name: _numbers(each) for name, each in value.items()}
    return math.nan if value is None else value
