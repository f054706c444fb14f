"""Sweeps: a run with several values of one setting, as a job that a visitor can leave and find again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter

from ..processes import threads_for
from ..studies.sweep import Row, Sweep, Trying, add_result, run_sweep
from ..training import Stepped
from .job import Job
from .limits import Limits
from .models import Registry
from .runs import RunSpec, corpus_for
from .views import View

_OVER = object()


@dataclass(frozen=True)
class SweepView(View):
    """What a page shows of a sweep."""

    setting: str = ""
    rows: tuple[Row, ...] = ()


def sweep_runs(spec: RunSpec, sweep: Sweep, limits: Limits, should_stop: Callable[[], bool]) -> Iterator[Trying]:
    """Read the text and train every run. Raises ValueError if a value does not fit the text or exceeds a limit."""
    corpus = corpus_for(spec, limits)
    shape = spec.model.replace(vocab_size=corpus.vocab_size)
    for config, training in (sweep.configs(shape, spec.training, value) for value in sweep.values):
        limits.check_training(config, training)
        corpus.check_context(config.context_length)
    with threads_for(shape.numbers_in_step(spec.training.batch_size)):
        yield from run_sweep(sweep, shape, spec.training, corpus, should_stop=should_stop)


class SweepJob(Job):
    """One sweep: its thread and its table so far. The models are not kept."""

    kind = "sweep"

    def __init__(
        self, job_id: str, visitor: str, name: str, spec: RunSpec, sweep: Sweep, limits: Limits, registry: Registry
    ):
        super().__init__(job_id, visitor, name, limits, registry)
        self.spec, self.sweep = spec, sweep
        self._rows: list[Row] = []

    @property
    def has_result(self) -> bool:
        """Whether a run has ended."""
        return bool(self._rows)

    def expected(self, seconds: Callable[..., float]) -> float:
        runs = len(self.sweep.values) * self.sweep.seeds
        return min(runs * seconds(self.spec.model, self.spec.training), self.limits.seconds)

    def start(self) -> None:
        """Begin; after a restart, from the beginning."""
        self._rows = []

        def events(should_stop: Callable[[], bool]) -> Iterator[Any]:
            stops = lambda: should_stop() or self.worked > self.limits.seconds  # noqa: E731
            yield from sweep_runs(self.spec, self.sweep, self.limits, stops)
            yield _OVER

        self.begin("Reading the text …", events, self._take)

    def view(self) -> SweepView:
        """A consistent copy of the sweep's present state."""
        with self._lock:
            corpus, rows = self.spec.source.title, tuple(self._rows)
            return SweepView(**self.seen_as(), corpus=corpus, setting=self.sweep.name, rows=rows)

    def _take(self, tried: Any) -> None:
        if tried is _OVER:
            self._set(state="finished" if self._rows else "failed", message="" if self._rows else "Stopped.")
            return
        with self._lock:
            before, self._rows = len(self._rows), add_result(self._rows, tried)
            if self.state == "preparing":
                self.state, self.message = "training", ""
            if isinstance(tried.event, Stepped):
                steps, runs = self.spec.training.steps, len(self.sweep.values) * self.sweep.seeds
                ended = sum(len(row.losses) for row in self._rows)
                self.done = (ended + tried.event.step / steps) / runs
            if isinstance(tried.event, Stepped) or len(self._rows) != before:
                self.version += 1

    def noted(self) -> dict[str, Any]:
        with self._lock:
            rows = [[row.value, list(row.losses)] for row in self._rows]
            return {"spec": asdict(self.spec), "sweep": asdict(self.sweep), "rows": rows, "message": self.message}

    @classmethod
    def found(cls, row: Mapping[str, Any], noted: Mapping[str, Any], limits: Limits, registry: Registry) -> SweepJob:
        """The sweep for a row of the index; one that was at work begins again."""
        sweep = TypeAdapter(Sweep).validate_python(noted["sweep"])
        spec = TypeAdapter(RunSpec).validate_python(noted["spec"])
        job = cls(row["id"], row["visitor"], row["name"], spec, sweep, limits, registry)
        job._rows = [Row(value, tuple(losses)) for value, losses in noted["rows"]]
        if row["state"] == "over":
            job._find_over(noted)
        return job
