"""Settings for a whole process that trains or serves small models: memory and threads.

A library must not do this behind its user's back, so importing the package never calls `tune_process`; `app.py`, the
shell command and the benchmarks do.
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
    """Set this process up for training small models; call once, before it starts other threads.

    serves: how many trainings visitors may run at once; 0 if there are no visitors.
    """
    keep_freed_memory()
    if serves:
        leave_helpers_to_training(serves)


def keep_freed_memory() -> None:
    """Let glibc keep buffers of up to 64 MB for the next step instead of returning them to the system after each.

    A training step frees and asks for the same megabytes over and over; with glibc's defaults all of them are
    unmapped and their pages faulted in anew. On a CPU that costs the elementwise parts of a small model a third of
    their time. Other threads than the main one would have their own heaps, which return even more memory. If this is
    called before other threads start, all share one heap. Does nothing without glibc.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            glibc = ctypes.CDLL("libc.so.6")
            glibc.mallopt(-3, 64 << 20)  # M_MMAP_THRESHOLD
            glibc.mallopt(-1, 256 << 20)  # M_TRIM_THRESHOLD
            glibc.mallopt(-8, 1)  # M_ARENA_MAX


_helpers: int | None = None
"""Threads for large steps if other threads compute alone; None if each has what torch gives it."""


def leave_helpers_to_training(at_once: int = 1) -> None:
    """Let every thread in this process compute alone from now on, except in `threads_for` a large step.

    at_once: how many trainings share the processors. On two cores, two trainings are 1.27 times as fast with one thread
    each.

    OpenMP's helper threads wait awake for the next operation unless they and the threads that use them outnumber the
    processors (libgomp). Then they sleep at once, and each of a step's 500 operations has to wake them. On two cores,
    after one look at a pattern, a page trained at only 0.6 of a shell's speed. A thread that ends, as a run's does,
    takes its helpers along.
    """
    global _helpers
    _helpers = max(torch.get_num_threads() // at_once, 1)
    torch.set_num_threads(1)


SMALL_STEP = 50_000
"""With fewer numbers, a training step is not worth sharing among processors that also do other work."""


def threads_used(numbers: int) -> int:
    """How many threads `threads_for` gives."""
    return 1 if numbers < SMALL_STEP else _helpers or torch.get_num_threads()


@contextlib.contextmanager
def threads_for(numbers: int) -> Iterator[None]:
    """Let this thread compute without helpers if it handles fewer than `SMALL_STEP` numbers.

    numbers: in an activation when training, in the weights when decoding.

    Two threads make small steps 1.07 times as fast as one on two idle cores, and 0.8 times beside a browser on the same
    cores: every operation waits for the slower of the two. Other threads keep the helpers they have.
    """
    before = torch.get_num_threads()  # also fixes this thread's number, which its first operation would set
    threads = threads_used(numbers)
    if threads != before:
        torch.set_num_threads(threads)
        _let_new_threads_have(before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


SMALL_MODEL = 5_000_000
"""With fewer parameters, a second thread adds nothing to decoding and, beside other work, costs most of its speed."""


def in_decoding_threads(
    n_parameters: int, device: torch.device, work: Callable[..., Result], *arguments: Any
) -> Result:
    """The result of decoding work with a model of this many active parameters, using as many threads as help."""
    if decodes_alone(n_parameters, device):
        return lone_threads().submit(work, *arguments).result()
    with threads_for(n_parameters):
        return work(*arguments)


class Aside(Generic[Result]):
    """Work for another thread, if one is idle. Otherwise the thread that wants the result does it, so nothing waits.

    offered: whether the lone threads may take it; for work with a model that `decodes_alone`.
    """

    def __init__(self, work: Callable[[], Result], offered: bool):
        self._work = work
        self._task = lone_threads().submit(work) if offered else None

    @property
    def underway(self) -> bool:
        """Whether another thread is doing the work."""
        return self._task is not None and self._task.running()

    def result(self) -> Result:
        """The result, computed by this thread if no other has begun."""
        return self._work() if self._task is None or self._task.cancel() else self._task.result()


def decodes_alone(n_parameters: int, device: torch.device) -> bool:
    """Whether a model with this many active parameters decodes as fast with one thread as with several."""
    return device.type == "cpu" and n_parameters < SMALL_MODEL


@functools.cache
def lone_threads() -> ThreadPoolExecutor:
    """Threads that compute without helpers, one for each processor.

    For work so small that helpers gain nothing, such as decoding with a small model. Beside other work on the same
    cores, every operation waits for the slower of two threads, so one thread alone is many times as quick.
    """
    threads = torch.get_num_threads()

    def alone() -> None:
        torch.get_num_threads()  # fixes this thread's number of helpers, which its first operation would otherwise set
        torch.set_num_threads(1)
        _let_new_threads_have(threads)

    return ThreadPoolExecutor(processors(), thread_name_prefix="alone", initializer=alone)


def _let_new_threads_have(threads: int) -> None:
    """Give new threads this number of helpers: torch uses what was last set anywhere, here by a brief thread."""
    setter = threading.Thread(target=torch.set_num_threads, args=(threads,))
    setter.start()
    setter.join()
