"""Devices and precisions: the one place that decides where tensors live and how many bits they have."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import subprocess
from functools import cache
from pathlib import Path

import torch

PRECISIONS = ("auto", "fp32", "bf16", "fp16")


def processors() -> int:
    """How many processors this process may use, which may be fewer than the machine has."""
    allowed = getattr(os, "sched_getaffinity", None)  # which only Linux has
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def on_zerogpu() -> bool:
    """Whether this is a Space whose GPU is lent to marked functions only, for seconds (see `service/zerogpu.py`)."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def free_memory(device: torch.device) -> int | None:
    """Free bytes of memory on the device that would train a model; None if they are not known."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None


APPLE_GPU_FROM = 2e10
"""From this many FLOPs in a training step (one batch forward and backward), `auto` takes Apple's GPU.

Not measured, since no such machine was available. A step of a few layers starts some 500 kernels, which costs even an
NVIDIA H100 20 ms however small they are. Apple's processors alone do some 200 GFLOP a second. So below 100 ms of
arithmetic there is little to gain. Our `tiny` and `small` stay below that.
"""


def pick_device(name: str = "auto", work: float = math.inf) -> torch.device:
    """`auto` is CUDA, then Apple's GPU for steps of at least `APPLE_GPU_FROM` FLOPs of `work`, then the CPU.

    Raises ValueError for a device this machine does not have.
    """
    if name == "auto":
        if on_zerogpu():
            return torch.device("cpu")  # there torch always claims a GPU; functions that were lent it ask for cuda
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() and work >= APPLE_GPU_FROM else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda", "mps"):
        raise ValueError(f"there is no device called {name!r}: choose auto, cpu, cuda or mps")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("no CUDA device is to be had on this machine: choose auto or cpu")
    if device.index and device.type != "cuda":
        raise ValueError(f"there is one {device.type} on every machine: choose {device.type}, not {name!r}")
    if device.index and device.index >= torch.cuda.device_count():
        raise ValueError(f"this machine has {torch.cuda.device_count()} CUDA devices, numbered from 0: not {name!r}")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError("no Apple GPU is to be had on this machine: choose auto or cpu")
    return device


DECLARED = "PLAYGROUND_BF16"
"""The environment variable that declares bfloat16 to be fast on this machine (1) or not (0)."""


def has_fast_bf16(device: torch.device) -> bool:
    """Whether bfloat16 products count as fast: as `PLAYGROUND_BF16` declares, or else as the hardware suggests.

    With the variable, either way of computing can be tried on any machine. Raises ValueError if it is neither 1 nor 0.
    """
    declared = os.environ.get(DECLARED, "")
    if declared not in ("", "0", "1"):
        raise ValueError(f"{DECLARED} is {declared!r}: set it to 1 or 0, or leave it out to ask the hardware")
    return declared == "1" if declared else has_bf16(device)


def has_bf16(device: torch.device) -> bool:
    """Whether bfloat16 products run in hardware; if not, they are several times slower than fp32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type == "cpu":
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    return False


def pick_precision(precision: str, device: torch.device) -> torch.dtype:
    """The dtype for matrix products. `auto`: bf16 if the hardware has it, fp16 on older GPUs, else fp32."""
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


def machine_kind(device: str, precision: str, threads: int = 1) -> str:
    """What decides the last digits of a loss: instructions, number format, threads, torch, processor.

    It names the processor as well as its instructions, because torch's libraries choose kernels by both.
    """
    version = torch.__version__
    if device == "cuda" and torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()[:40]} {precision}, torch {version}"
    if device == "cpu":
        instructions = torch.backends.cpu.get_cpu_capability()
        count = f"{threads} thread{'s' if threads > 1 else ''}"
        return f"cpu {instructions} {precision}, {count}, torch {version}, {processor_name()[:60]}"
    return f"{device} {precision}, torch {version}"


@cache
def processor_name() -> str:
    """The maker's name for this machine's processor; "unknown processor" if it cannot be found."""
    try:
        if platform.system() == "Linux":
            lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        if platform.system() == "Darwin":
            command = ("sysctl", "-n", "machdep.cpu.brand_string")
            return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, StopIteration, subprocess.SubprocessError):
        pass
    return platform.processor() or "unknown processor"
