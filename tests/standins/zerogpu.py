"""A stand-in for ZeroGPU's `spaces.GPU`: generators run in a forked worker that shares nothing and runs ahead.

    lend = Lender()
    marked = lend.GPU(duration=25)(work)       # a generator function
    for value in marked(argument): ...         # `work` runs in another process

Like the real one: arguments and yields are pickled, a worker serves several calls and keeps its own memory, it does not
wait for whoever consumes, closing the iterator stops it at its next yield, a worker that dies ends the call with an
error, and so does a lender who has no GPU to lend (`lend.calls_left`).
"""

import functools
import multiprocessing
import os
import pickle
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

_fork = multiprocessing.get_context("fork")


class Refusal(Exception):
    """No GPU, or no longer."""


class Lender:
    """Lends a pretended GPU. `slices` counts the calls, `pids` the workers that served them."""

    def __init__(self) -> None:
        self.calls_left: int | None = None
        self.slices = 0
        self.durations: list[int] = []
        self.pids: list[int] = []
        self._workers: list[_Worker] = []

    def GPU(self, duration: int) -> Callable:
        """The mark. Give it back with `close` when the test is over."""

        def mark(work: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
            worker: _Worker | None = None

            @functools.wraps(work)
            def lent(*arguments: Any) -> Iterator[Any]:
                nonlocal worker
                if self.calls_left is not None:
                    if not self.calls_left:
                        raise Refusal("quota exceeded")
                    self.calls_left -= 1
                self.slices += 1
                self.durations.append(duration)
                if worker is None or not worker.process.is_alive():
                    worker = _Worker(work)
                    self._workers.append(worker)
                self.pids.append(worker.process.pid)
                yield from worker.call(arguments)

            return lent

        return mark

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.process.kill()
            worker.process.join()


class _Worker:
    """A forked process that runs one generator after the other."""

    def __init__(self, work: Callable[..., Iterator[Any]]):
        self._stop = _fork.Event()
        self._tasks, tasks = _fork.Pipe()
        self.process = _fork.Process(target=_serve, args=(work, tasks, self._stop), daemon=True)
        self.process.start()
        tasks.close()

    def call(self, arguments: tuple) -> Iterator[Any]:
        self._stop.clear()
        self._tasks.send_bytes(pickle.dumps(arguments))
        arrived: queue.Queue = queue.Queue()  # without bound: nothing holds the worker back
        reader = threading.Thread(target=self._read, args=(arrived,), daemon=True)
        reader.start()
        try:
            while True:
                kind, value = arrived.get()
                if kind == "error":
                    raise Refusal(value)
                if kind == "end":
                    return
                yield value
        finally:
            self._stop.set()
            reader.join()  # the worker is free again only after its next yield

    def _read(self, arrived: queue.Queue) -> None:
        while True:
            try:
                kind, value = pickle.loads(self._tasks.recv_bytes())
            except (EOFError, OSError):
                kind, value = "error", "the worker is gone"
            arrived.put((kind, value))
            if kind != "value":
                return


def _serve(work: Callable[..., Iterator[Any]], tasks: Any, stop: Any) -> None:
    while True:
        try:
            arguments = pickle.loads(tasks.recv_bytes())
        except EOFError:
            os._exit(0)
        try:
            for value in work(*arguments):
                tasks.send_bytes(pickle.dumps(("value", value)))
                if stop.is_set():
                    break
            tasks.send_bytes(pickle.dumps(("end", None)))
        except Exception as problem:
            tasks.send_bytes(pickle.dumps(("error", type(problem).__name__)))
