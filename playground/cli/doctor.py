"""Say what this machine is and what works on it: the lines to put in a bug report."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from ..devices import has_bf16, pick_device, pick_precision, processor_name
from ..training.proof import fault, first_line
from ..words.training import device_fault

LIBRARIES = ("gradio", "plotly", "numpy", "tiktoken", "tokenizers", "safetensors", "huggingface_hub", "transformers")
CPU = torch.device("cpu")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no options: `doctor` has none."""


def run(options: argparse.Namespace) -> int:
    """Check everything and print a line for each. A check that fails does not stop the others."""
    facts = {}
    for name, question in _questions().items():
        facts[name] = _asked(question)
        if not options.json:
            print(f"{name:<24} {facts[name]}", flush=True)
    if options.json:
        print(json.dumps(facts))
    return 0


def _questions() -> dict[str, Callable[[], Any]]:
    devices = [CPU, *(torch.device("cuda", n) for n in range(torch.cuda.device_count()))]
    devices += [torch.device("mps")] * torch.backends.mps.is_available()
    return {
        "python": platform.python_version,
        "torch": lambda: str(torch.__version__),  # the version says what torch was built for
        **{library: partial(metadata.version, library) for library in LIBRARIES},
        "system": platform.platform,
        "processor": lambda: f"{processor_name()}, {os.cpu_count()} cores, bfloat16: {has_bf16(CPU)}",
        "torch uses": lambda: f"{torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()} kernels",
        "trains large models on": lambda: f"{(device := pick_device('auto', math.inf))}, {_precision(device)}",
        **{f"device {device}": partial(_works, device) for device in devices},
    }


def _asked(question: Callable[[], Any]) -> Any:
    """The answer, or what went wrong; without the path of the home folder."""
    try:
        return str(question()).replace(str(Path.home()), "~")
    except Exception as problem:  # a report about a broken machine is what this command is for
        missing = isinstance(problem, metadata.PackageNotFoundError)
        return "not installed" if missing else f"failed: {first_line(problem)}".replace(str(Path.home()), "~")


def _works(device: torch.device) -> str:
    """Whether a device computes what the CPU computes."""
    problem = fault(device, pick_precision("auto", device))
    return device_fault(problem) if problem else f"trains and decodes tiny models as it should, {_precision(device)}"


def _precision(device: torch.device) -> str:
    return f"in {str(pick_precision('auto', device)).removeprefix('torch.')}"
