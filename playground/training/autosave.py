"""Autosave: everything a run needs to go on exactly where it was, in one file that is replaced in one move.

The file is safetensors: weights, optimizer tensors and random states as tensors, the rest as JSON in its metadata.
Nothing in it can run.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

FILE = "resume.safetensors"


def save(
    folder: Path,
    model: torch.nn.Module,
    optimizers: list[torch.optim.Optimizer],
    generators: dict[str, torch.Generator],
    notes: dict[str, Any],
) -> Path:
    """Write the run's state into `folder`; a kill at any moment leaves the previous file or the new one, never half."""
    tensors = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
    numbers: dict[str, float] = {}
    for i, optimizer in enumerate(optimizers):
        for index, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                if isinstance(value, torch.Tensor):
                    tensors[f"optimizer/{i}/{index}/{name}"] = value
                else:
                    numbers[f"optimizer/{i}/{index}/{name}"] = value
    for name, generator in generators.items():
        tensors[f"generator/{name}"] = generator.get_state()
    kept = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}
    folder.mkdir(parents=True, exist_ok=True)
    path, partial = folder / FILE, folder / (FILE + ".partial")
    save_file(kept, partial, metadata={"notes": json.dumps({**notes, "numbers": numbers})})
    with open(partial, "r+b") as file:  # Windows forces to disk only what may be written
        os.fsync(file.fileno())
    os.replace(partial, path)
    return path


def load(
    folder: Path,
    model: torch.nn.Module,
    optimizers: list[torch.optim.Optimizer],
    generators: dict[str, torch.Generator],
) -> dict[str, Any]:
    """Put a saved state back into freshly made objects and return its notes. Raises ValueError where it cannot."""
    path = folder / FILE
    if not path.exists():
        raise ValueError(f"there is nothing to resume in {folder}: it has no {FILE}")
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            notes = json.loads(file.metadata()["notes"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"{path} is damaged and cannot be resumed: {problem}") from problem
    try:
        model.load_state_dict(_under(tensors, "model/"))
        for i, optimizer in enumerate(optimizers):
            state: dict[int, dict[str, Any]] = {}
            for name, value in (
                _under(tensors, f"optimizer/{i}/") | _under(notes["numbers"], f"optimizer/{i}/")
            ).items():
                index, key = name.split("/")
                state.setdefault(int(index), {})[key] = value
            optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        for name, generator in generators.items():
            kept = tensors[f"generator/{name}"]
            # another kind of device has another kind of state: there, dropout goes on from its seed
            if kept.numel() == generator.get_state().numel():
                generator.set_state(kept)
    except (KeyError, RuntimeError, ValueError) as problem:
        raise ValueError(f"{path} belongs to another model or another way of training: {problem}") from problem
    return notes


def _under(values: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name[len(prefix) :]: value for name, value in values.items() if name.startswith(prefix)}
