"""Job: a visitor's long piece of work, in a thread of the server: it can wait, work, be stopped and be looked at.

Runs (`run_job`), comparisons (`comparisons`), sweeps and the searches and proofs of *Why?* are kinds of job. A kind
says which events its thread consumes (`start`), what each event changes, and what a page sees of the job (`view`). The
board says when it may begin.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from .limits import Limits
from .models import Registry

logger = logging.getLogger(__name__)

WARM = 0.02
"""Share of a job after which its rest is estimated: its first steps also get everything ready."""
ACTIVE = ("waiting", "preparing", "training", "stopping")


class Job:
    """One piece of work: its thread, its state and its messages."""

    kind: ClassVar[str] = "run"
    """The kind's name in sentences and in jobs' names."""
    gives_way: ClassVar[bool] = False
    """Whether the job ends as soon as its visitor begins something else."""
    STOPPED: ClassVar[str] = "Stopped {}: there is nothing to keep."
    """What is said of a job that was stopped at such a moment and has no result."""

    def __init__(self, job_id: str, visitor: str, name: str, limits: Limits, registry: Registry):
        self.id, self.visitor, self.name = job_id, visitor, name
        self.limits, self.registry, self.folder = limits, registry, registry.data.folder_of(job_id)
        self.state = "waiting"
        """waiting, preparing, training, stopping, finished (done, stopped or out of time) or failed."""
        self.message = ""
        """Its latest message, as a sentence."""
        self.version = 0
        """Grows with every change, so that a page can skip what it has already seen."""
        self.done = 0.0
        """The share that is done, see `View.done`."""
        self.busy = False
        """Whether it takes up a place: its thread still works, even if it is only saving results."""
        self.began = time.monotonic()
        self.seen: float | None = self.began
        """When its visitor's page last looked; None after a restart, before it has."""
        self.by_program = False
        """Whether a program requested it, not a page."""
        self.share = ""
        """The address from which it was requested, see `Board`."""
        self.turn = 0
        """Its place among all requests: the smaller begins first, see `Line`."""
        self.number = 0
        """Its number among the visitor's jobs of this kind."""
        self.place: int | None = None
        """Its place in the queue, from 1; None for a job that does not wait."""
        self.wait: float | None = None
        """Seconds until there should be a place for it."""
        self.tries = 0
        """How many times the server ended while the job was at work, since it last made progress."""
        self.unwanted = False
        """Whether its visitor has asked to delete it."""
        self.models: dict[str, bool] = {}
        """The ids of the models that it trains, and whether each is in the registry now."""
        self.emptied = False
        """Whether all that the job produced has been removed."""
        self._lock = threading.Lock()
        self._stop = threading.Event()  # a new one per attempt: a thread with another one was given up
        self._ended: Callable[[], None] = lambda: None
        self._noting: Callable[[], None] = lambda: None
        self._context = contextvars.copy_context()
        self._warm: tuple[float, float] | None = None  # seconds and share done when the rest was first estimated

    @property
    def where(self) -> str:
        """Where to find it, to follow *in progress*; empty for one that its tab shows whatever is chosen."""
        return ""

    @property
    def worked(self) -> float:
        """Seconds since the job began."""
        return time.monotonic() - self.began

    def rest_of(self, done: float) -> float | None:
        """Expected seconds for the rest, at the speed since the share WARM was done; None before that."""
        if done < WARM:
            return None
        if self._warm is None or done < self._warm[1]:
            self._warm = self.worked, done
        since, first = self._warm
        return (self.worked - since) * (1 - done) / (done - first) if done > first else None

    @property
    def learned(self) -> list[str]:
        """The ids of its models that are in the registry."""
        return [model_id for model_id, here in self.models.items() if here]

    @property
    def has_result(self) -> bool:
        """Whether there is already a result to keep."""
        return bool(self.learned)

    @property
    def time_left(self) -> float | None:
        """Expected seconds until the job is done, from the time so far; None before that can be estimated."""
        return self.rest_of(self.done) if self.state == "training" else None

    def expected(self, seconds: Callable[..., float]) -> float:
        """Rough seconds for the whole job; `seconds(config, training)` estimates one training."""
        raise NotImplementedError

    @property
    def network(self) -> str:
        """The address from which a page or a program requested the job."""
        return self.share.rpartition(" ")[0]

    def left(self, seconds: Callable[..., float]) -> float:
        """Rough seconds for which the job still needs its place; see `expected`."""
        if not self.active or self.state == "stopping":
            return 1.0
        left = self.time_left
        return left if left is not None else max(self.expected(seconds) - self.worked, 1.0)

    def start(self) -> None:
        """Called when the job's turn has come: call `begin`."""
        raise NotImplementedError

    def let_go(self, model_id: str) -> None:
        """Called when one of the job's models has been removed; its others stay."""
        with self._lock:
            self.models[model_id] = False
            self.emptied = not self.has_result
            self.version += 1

    def renamed(self, model_id: str, name: str) -> None:
        """Called when one of the job's models was renamed."""

    def noted(self) -> dict[str, Any]:
        """What is needed to find the job again after a restart, as plain values."""
        return {}

    def _find_over(self, noted: Mapping[str, Any]) -> None:
        """Set the job to the finished state in its notes."""
        self.state, self.message = "finished" if self.has_result else "failed", noted["message"]

    def put_away(self) -> None:
        """Save the job's results, because its thread ends."""

    def attempt_over(self) -> None:
        """Called when the job was stopped, gave up its place or failed: drop changes that never took effect."""

    @property
    def active(self) -> bool:
        """Whether the job is running or waiting to run."""
        return self.state in ACTIVE

    @property
    def settled(self) -> bool:
        """Whether nothing more will change."""
        return not self.active and not self.busy

    def seen_as(self) -> dict[str, Any]:
        """The fields of `View`, which every view of a job holds."""
        names = ("id", "name", "state", "message", "time_left", "place", "wait", "version", "busy", "done")
        return {name: getattr(self, name) for name in names}

    # ---- its life ----------------------------------------------------------------------------------------------------

    def queue(self, ended: Callable[[], None], noting: Callable[[], None]) -> None:
        """Join the queue: `go` will call `start`, which begins the job; `ended` is called when its thread has ended.

        `noting` is called in the thread before it works, to note that it does.
        """
        self._ended, self._noting = ended, noting
        # in the requester's context: on ZeroGPU the request says whose quota a run may use
        self._context = contextvars.copy_context()
        self.seen = time.monotonic()
        self._set(state="waiting", message="Waiting for a place …")

    def stands(self, place: int, wait: float) -> None:
        """Take in the job's present place in the queue, and its expected waiting time in seconds."""
        with self._lock:
            changed = self.wait is None or place != self.place or abs(wait - self.wait) >= 1
            if changed and self.state == "waiting":
                self.place, self.wait = place, wait
                self.version += 1

    def go(self) -> None:
        """Called when there is a place: begin."""
        self.began = time.monotonic()
        self.start()

    def begin(
        self,
        message: str,
        events: Callable[[Callable[[], bool]], Iterator[Any]],
        take: Callable[[Any], None],
    ) -> None:
        """Consume `events(should_stop)` in a new thread, handing each to `take`; does nothing if the job was stopped.

        `take` sets the state by `_set`: "training" when that begins (until then Stop gives everything up), "finished"
        with the last event. A stopped thread gives up its place at its next event, so events must come often.
        """
        with self._lock:
            if self.state != "waiting":
                return
            self._stop = stop = threading.Event()
            self.busy, self.place, self.wait = True, None, None
            self.state, self.message = "preparing", message
            self.version += 1
        thread = threading.Thread(
            target=self._context.run,
            args=(self._run, stop, events, take),
            name=f"{self.kind}-{self.id[:6]}",
            daemon=True,
        )
        thread.start()

    def stop(self) -> None:
        """Ask the job to end after the current step, or to leave the queue; what was learned is kept."""
        with self._lock:
            self._stop.set()
            if self.state in ("waiting", "preparing"):
                self._stop = threading.Event()
                when = "while it waited in line" if self.state == "waiting" else "before training began"
                self._give_up("Stopped." if self.has_result else self.STOPPED.format(when))
            elif self.state == "training":
                self.state, self.message = "stopping", "Stopping after this step …"
            self.version += 1

    def leave(self, message: str) -> None:
        """Give up the place in the queue, for this reason."""
        with self._lock:
            if self.state == "waiting":
                self._give_up(message)
                self.version += 1

    def _give_up(self, message: str) -> None:
        """End a job that has not begun. The caller holds the lock."""
        self.state, self.message = "finished" if self.has_result else "failed", message
        self.place = self.wait = None
        self.attempt_over()

    def _run(self, stop: threading.Event, events: Callable, take: Callable[[Any], None]) -> None:
        try:
            self._noting()
            for event in events(stop.is_set):
                if self._stop is not stop:
                    return  # stopped while preparing: nobody waits for this event any more
                take(event)
        except ValueError as problem:
            self._fail(stop, str(problem).replace(str(self.folder), "the run's folder"))
        except Exception:
            logger.exception("a %s failed", self.kind)
            self._fail(stop, f"Something went wrong on our side, and the {self.kind} stopped. Try again.")
        finally:
            try:
                self.put_away()
            except Exception:
                logger.exception("a %s could not be put away", self.kind)
            self.busy = False
            self._ended()

    def _fail(self, stop: threading.Event, message: str) -> None:
        if stop is self._stop and self.active:  # ignore a thread that was given up, and what follows a finished run
            self.attempt_over()
            self._set(state="finished" if self.has_result else "failed", message=message)

    def _set(self, *, state: str, message: str | None = None) -> None:
        with self._lock:
            self.state = state
            if message is not None:
                self.message = message
            self.version += 1
