"""Devices and precisions: the one place that decides where tensors live and how many bits they have."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Iterator

import torch

PRECISIONS = ("auto", "fp32", "bf16", "fp16")


def on_zerogpu() -> bool:
    """Whether this is a Space whose GPU is lent to marked functions only, for seconds (see `service/zerogpu.py`)."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def pick_device(name: str = "auto") -> torch.device:
    """`auto` is CUDA, then Apple's GPU, then the CPU. Raises ValueError for a device this machine does not have."""
    if name == "auto":
        if on_zerogpu():
            return torch.device("cpu")  # there torch claims a GPU everywhere; those who were lent it ask for cuda
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"there is no device called {name!r}: choose auto, cpu, cuda or mps") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("no CUDA device is to be had on this machine: choose auto or cpu")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError("no Apple GPU is to be had on this machine: choose auto or cpu")
    return device


def has_fast_bf16(device: torch.device) -> bool:
    """Whether bfloat16 products run in hardware: they are several times slower than fp32 where they do not."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type == "cpu":
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    return False


def pick_precision(precision: str, device: torch.device) -> torch.dtype:
    """The dtype of matrix products. `auto`: bf16 where the hardware has it, fp16 on older GPUs, else fp32."""
    if precision == "auto":
        if has_fast_bf16(device):
            return torch.bfloat16
        return torch.float16 if device.type == "cuda" else torch.float32
    if precision == "fp16" and device.type == "cpu":
        raise ValueError("fp16 training needs a GPU: choose fp32 or bf16 on a CPU")
    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]


def mixed(dtype: torch.dtype, device: torch.device) -> contextlib.AbstractContextManager:
    """A context in which matrix products run in `dtype`; weights and sums stay fp32 (Micikevicius et al. 2018)."""
    if dtype == torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=dtype)


SMALL_STEP = 50_000
"""Numbers per activation below which a training step is not worth sharing among processors that do other work too."""


@contextlib.contextmanager
def alone_if_small(numbers: int) -> Iterator[None]:
    """Let this thread compute without helpers where activations have fewer than `SMALL_STEP` numbers.

    Two threads make such steps 1.07 times as fast as one on two idle cores, and 0.8 times beside a browser on the same
    cores: every operation waits for the slower of the two. Other threads keep the helpers they have.
    """
    threads = torch.get_num_threads()  # also settles this thread's number, which its first operation would set
    if numbers < SMALL_STEP and threads > 1:
        torch.set_num_threads(1)
        _let_new_threads_have(threads)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _let_new_threads_have(threads: int) -> None:
    """torch starts a new thread with the number that was set last anywhere; here by one that ends at once."""
    setter = threading.Thread(target=torch.set_num_threads, args=(threads,))
    setter.start()
    setter.join()


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
