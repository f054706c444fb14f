"""Work: something long that a visitor has begun, in a thread of the server: stopped, ended, looked at.

Training runs (`jobs.Job`) and comparisons (`comparisons.ComparisonJob`) are kinds of it. A kind says which events its
thread consumes, what each one changes, and what a page sees of it.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

logger = logging.getLogger(__name__)

ACTIVE = ("preparing", "training", "stopping")


class Work:
    """One piece of work: its thread, its state, and what is to be said about it."""

    kind: ClassVar[str] = "run"
    """What it is called in `Jobs` and in sentences."""

    def __init__(self, work_id: str, visitor: str, name: str, folder: Path):
        self.id, self.visitor, self.name, self.folder = work_id, visitor, name, folder
        self.began = time.monotonic()
        self._lock = threading.Lock()
        self._stop = threading.Event()  # a new one per attempt: a thread whose own is not this any more was given up
        self._thread: threading.Thread | None = None
        self._state, self._message, self._version = "preparing", "Reading the text …", 0

    @property
    def has_result(self) -> bool:
        """Whether there is something to keep already."""
        raise NotImplementedError

    @property
    def state(self) -> str:
        """preparing, training, stopping, finished (done, stopped or out of time) or failed."""
        return self._state

    @property
    def active(self) -> bool:
        """Whether it is still going on."""
        return self._state in ACTIVE

    @property
    def version(self) -> int:
        """Grows with every change, so that nobody copies what they have seen already."""
        return self._version

    @property
    def busy(self) -> bool:
        """Whether its thread still works, be it only to put things away."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def settled(self) -> bool:
        """Whether nothing more will change."""
        return not self.active and not self.busy

    def begin(
        self,
        message: str,
        events: Callable[[Callable[[], bool]], Iterator[Any]],
        take: Callable[[Any], None],
    ) -> None:
        """Consume `events(should_stop)` in a thread of its own, handing each to `take`."""
        self._stop = stop = threading.Event()
        self._set(state="preparing", message=message)
        # in the context of whoever asked: on ZeroGPU their request says whose quota a run may use
        self._thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(self._run, stop, events, take),
            name=f"{self.kind}-{self.id[:6]}",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end after the current step; what was learned is kept."""
        with self._lock:
            self._stop.set()
            if self._state == "preparing":
                self._stop = threading.Event()
                nothing = "Stopped before training began: there is nothing to keep."
                self._state, self._message = ("finished", "Stopped.") if self.has_result else ("failed", nothing)
            elif self._state == "training":
                self._state, self._message = "stopping", "Stopping after this step …"
            self._version += 1

    def _run(self, stop: threading.Event, events: Callable, take: Callable[[Any], None]) -> None:
        try:
            for event in events(stop.is_set):
                if self._stop is not stop:
                    return  # stopped while preparing: nobody waits for this any more
                take(event)
        except ValueError as problem:
            self._fail(stop, str(problem))
        except Exception:
            logger.exception("a %s failed", self.kind)
            self._fail(stop, f"Something went wrong on our side and the {self.kind} cannot go on. Try again.")

    def _fail(self, stop: threading.Event, message: str) -> None:
        if stop is self._stop and self.active:  # not a thread that was given up, nor what follows a finished run
            self._set(state="finished" if self.has_result else "failed", message=message)

    def _set(self, *, state: str, message: str | None = None) -> None:
        with self._lock:
            self._state = state
            if message is not None:
                self._message = message
            self._version += 1
