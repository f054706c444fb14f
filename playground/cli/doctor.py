"""Say what this machine is and what works on it: the lines that a report of something odd needs."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from ..devices import APPLE_GPU_FROM, DECLARED, has_bf16, on_zerogpu, pick_device, pick_precision, processor_name
from ..training.proof import fault, first_line
from ..words.training import device_fault

LIBRARIES = (
    "gradio", "plotly", "numpy", "tiktoken", "tokenizers", "safetensors", "huggingface_hub", "matplotlib",
    "transformers",
)  # fmt: skip
CPU = torch.device("cpu")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none of its own."""


def run(options: argparse.Namespace) -> int:
    """Ask everything, a section at a time, and print it. Nothing that is broken ends the asking."""
    facts = {}
    for section, questions in (("versions", _versions()), ("machine", _machine()), ("devices", _devices())):
        facts[section] = {name: _asked(question) for name, question in questions.items()}
        if not options.json:
            _print(section, facts[section])
    if options.json:
        print(json.dumps(facts))
    return 0


Questions = dict[str, Callable[[], Any]]


def _asked(question: Callable[[], Any]) -> Any:
    """The answer, or what went wrong; without the name of anybody's home."""
    try:
        answer = question()
    except Exception as problem:  # a report about a broken machine is what this command is for
        answer = f"failed: {first_line(problem)}"
    return answer.replace(str(Path.home()), "~") if isinstance(answer, str) else answer


def _print(section: str, facts: dict[str, Any]) -> None:
    print(section)
    for name, value in facts.items():
        print(f"  {name:<36} {f'{value:,.1f}' if isinstance(value, float) else value}", flush=True)


def _versions() -> Questions:
    def version(library: str) -> str:
        try:
            return metadata.version(library)
        except metadata.PackageNotFoundError:
            return "not installed"

    ours = {"python": platform.python_version, "torch": lambda: str(torch.__version__)}  # says what it was built for
    return ours | {name: lambda name=name: version(name) for name in LIBRARIES}


def _machine() -> Questions:
    return {
        "system": lambda: f"{platform.system()} {platform.release()}, {platform.machine()}",
        "processor": processor_name,
        "cores": os.cpu_count,
        "threads of torch": torch.get_num_threads,
        "kernels of torch": torch.backends.cpu.get_cpu_capability,
        "bfloat16 in hardware": lambda: "yes" if has_bf16(CPU) else "no",
        "bfloat16 declared": lambda: os.environ.get(DECLARED) or f"no ({DECLARED}=1 or 0 overrules the hardware)",
        "memory, GB": _memory,
        "free disk here, GB": lambda: round(shutil.disk_usage(".").free * 1e-9, 1),
    }


def _memory() -> float | str:
    ask = getattr(os, "sysconf", None)  # which Windows lacks
    return round(ask("SC_PAGE_SIZE") * ask("SC_PHYS_PAGES") * 1e-9, 1) if ask else "unknown"


def _devices() -> Questions:
    """What `auto` takes and why; for each device, whether it computes what the processor computes."""
    there = [CPU, *(torch.device("cuda", n) for n in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        there.append(torch.device("mps"))
    return {"auto": _choice} | {str(device): lambda device=device: _proof(device) for device in there}


def _choice() -> str:
    device = pick_device("auto", math.inf)
    precision = f"in {_short(pick_precision('auto', device))}"
    if on_zerogpu():
        return f"cpu {precision}: a GPU is lent to training runs only, for some seconds"
    if device.type == "cuda":
        return f"cuda {precision}: torch finds a GPU"
    if device.type == "mps":
        small = _short(pick_precision("auto", CPU))
        return (
            f"mps {precision} for steps of at least {APPLE_GPU_FROM * 1e-9:.0f} GFLOP, cpu in {small} for smaller ones"
        )
    if torch.version.cuda is None and torch.version.hip is None and shutil.which("nvidia-smi"):
        return f"cpu {precision}: there is an NVIDIA driver, but this torch was built without CUDA"
    return f"cpu {precision}: torch finds no GPU"


def _proof(device: torch.device) -> str:
    precision, what = pick_precision("auto", device), ""
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        what = f"{properties.name}, {properties.total_memory * 1e-9:.0f} GB: "
    both = "fp32" if precision == torch.float32 else f"fp32 and {_short(precision)}"
    problem = fault(device, precision)
    return what + (device_fault(problem) if problem else f"trains and decodes two tiny models as it should, in {both}")


def _short(dtype: torch.dtype) -> str:
    return {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}[dtype]
