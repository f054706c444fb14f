"""What a program may set for its whole process before it trains or serves small models: memory and threads.

A library must not do this behind its user's back, so nothing in the package calls `tune_process` by itself: the page,
the shell command and the benchmarks do.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import torch

from .devices import processors

Result = TypeVar("Result")


def tune_process(*, serves: int = 0) -> None:
    """Set this process up for training small models; to be called once, before it has begun other threads.

    serves: how many trainings at once visitors begin here; 0 where nobody is served.
    """
    keep_freed_memory()
    if serves:
        leave_helpers_to_training(serves)


def keep_freed_memory() -> None:
    """Let glibc keep buffers of up to 64 MB for the next step instead of returning them to the system after each.

    A training step frees and asks for the same megabytes over and over; with glibc's defaults every one of them is
    unmapped and its pages are faulted in anew, which costs the elementwise parts of a small model a third of their
    time on a CPU. A thread that is not the main one would have a heap of its own, of which more is returned: as long as
    no other thread was begun before this, all share one. Does nothing where there is no glibc.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            glibc = ctypes.CDLL("libc.so.6")
            glibc.mallopt(-3, 64 << 20)  # M_MMAP_THRESHOLD
            glibc.mallopt(-1, 256 << 20)  # M_TRIM_THRESHOLD
            glibc.mallopt(-8, 1)  # M_ARENA_MAX


_helpers: int | None = None
"""Threads for large steps where others compute alone; None where each has what torch gives it."""


def leave_helpers_to_training(at_once: int = 1) -> None:
    """Let every thread of this process compute alone from now on, but inside `threads_for` a large step.

    at_once: trainings that share the processors' threads. Two on two cores are 1.27 times as fast with one each.

    OpenMP's helpers wait awake for the next operation, unless all threads that have helpers, with these, are more than
    the processors (libgomp): then they sleep at once, and each of a step's 500 operations has to wake them. On two
    cores a page on which somebody had looked at a pattern once trained at 0.6 of a shell's speed from then on. A thread
    that ends, as a run's does, takes its helpers along.
    """
    global _helpers
    _helpers = max(torch.get_num_threads() // at_once, 1)
    torch.set_num_threads(1)


SMALL_STEP = 50_000
"""Numbers below which a training step is not worth sharing among processors that do other work too."""


def threads_used(numbers: int) -> int:
    """How many threads `threads_for` gives."""
    return 1 if numbers < SMALL_STEP else _helpers or torch.get_num_threads()


@contextlib.contextmanager
def threads_for(numbers: int) -> Iterator[None]:
    """Let this thread compute without helpers where what it goes through has fewer than `SMALL_STEP` numbers.

    numbers: of an activation in training, of the weights in decoding.

    Two threads make small steps 1.07 times as fast as one on two idle cores, and 0.8 times beside a browser on the same
    cores: every operation waits for the slower of the two. Other threads keep the helpers they have.
    """
    before = torch.get_num_threads()  # also settles this thread's number, which its first operation would set
    threads = threads_used(numbers)
    if threads != before:
        torch.set_num_threads(threads)
        _let_new_threads_have(before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


SMALL_MODEL = 5_000_000
"""Parameters below which a second thread adds nothing to decoding, and beside other work costs most of its speed."""


def in_decoding_threads(
    n_parameters: int, device: torch.device, work: Callable[..., Result], *arguments: Any
) -> Result:
    """The result of work with a model that decodes, which has so many active parameters, by as many threads as help."""
    if decodes_alone(n_parameters, device):
        return lone_threads().submit(work, *arguments).result()
    with threads_for(n_parameters):
        return work(*arguments)


class Aside(Generic[Result]):
    """Work for another thread, if one is idle. Otherwise whoever wants the result does it, so nobody waits in a queue.

    offered: whether the lone threads may have it; for work with a model that `decodes_alone`.
    """

    def __init__(self, work: Callable[[], Result], offered: bool):
        self._work = work
        self._task = lone_threads().submit(work) if offered else None

    @property
    def underway(self) -> bool:
        """Whether another thread is at it."""
        return self._task is not None and self._task.running()

    def result(self) -> Result:
        """The result, by this thread if no other has begun."""
        return self._work() if self._task is None or self._task.cancel() else self._task.result()


def decodes_alone(n_parameters: int, device: torch.device) -> bool:
    """Whether a model with so many active parameters decodes as fast with one thread as with several."""
    return device.type == "cpu" and n_parameters < SMALL_MODEL


@functools.cache
def lone_threads() -> ThreadPoolExecutor:
    """Threads that compute without helpers, one for each processor.

    For work so small that helpers gain nothing, such as decoding with a small model: beside other work on the same
    cores, where every operation waits for the slower of two threads, one alone is many times as quick.
    """
    threads = torch.get_num_threads()

    def alone() -> None:
        torch.get_num_threads()  # settles this thread's number, which its first operation would set otherwise
        torch.set_num_threads(1)
        _let_new_threads_have(threads)

    return ThreadPoolExecutor(processors(), thread_name_prefix="alone", initializer=alone)


def _let_new_threads_have(threads: int) -> None:
    """torch starts a new thread with the number that was set last anywhere; here by one that ends at once."""
    setter = threading.Thread(target=torch.set_num_threads, args=(threads,))
    setter.start()
    setter.join()
