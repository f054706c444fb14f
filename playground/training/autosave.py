"""Autosave: everything a run needs to go on exactly where it was, in one file that is replaced in one move.

The file is safetensors: weights, optimizer tensors, random states and the steps' curves as tensors, the rest as JSON in
its metadata. Nothing in it can run. What it is good for later is said in resume.py.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ..data.corpus import Corpus
from ..whole import write_file
from . import best
from .events import Finished, Rested, Saved, Started, TrainEvent

if TYPE_CHECKING:
    from .trainer import Run

FILE = "resume.safetensors"


def saved(run: Run, folder: Path, events: Iterator[TrainEvent]) -> Iterator[TrainEvent]:
    """The same events, with the run saved to `folder` every `autosave_seconds` and at its end, unless it diverged."""
    saved_at = time.perf_counter()
    for event in events:
        if isinstance(event, Started):
            saved_at = time.perf_counter()
        elif isinstance(event, Finished) and event.reason != "diverged":
            yield save(run, folder)
        yield event
        waited = time.perf_counter() - saved_at
        if isinstance(event, Rested) and event.step and waited >= run.config.autosave_seconds:
            yield save(run, folder)
            saved_at = time.perf_counter()


def save(run: Run, folder: Path) -> Saved:
    """Write the run's state into `folder`; a kill at any moment leaves the previous file or the new one, never half."""
    tensors = {f"model/{name}": tensor for name, tensor in run.model.state_dict().items()}
    numbers: dict[str, float] = {}
    for i, optimizer in enumerate(run.learner.optimizers):
        for index, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                kept = tensors if isinstance(value, torch.Tensor) else numbers
                kept[f"optimizer/{i}/{index}/{name}"] = value
    for name, generator in run.learner.generators.items():
        tensors[f"generator/{name}"] = generator.get_state()
    best_note, best_tensors = best.noted(run.best, run.step)
    tensors |= best_tensors
    history = run.history.to_dict()
    for name, column in history.pop("steps").items():  # metadata has less room than a long run's curves need
        tensors[f"steps/{name}"] = torch.tensor(column, dtype=torch.float64)
    notes = {
        "step": run.step,
        "seconds": run.seconds,
        "history": history,
        "best": best_note,
        "scaler": run.learner.scaler.state_dict(),
        "numbers": numbers,
        "config": run.config.to_dict(),
        "model": run.model.config.to_dict(),
        "machine": run.machine,
        **reads(run.corpus),
    }
    on_cpu = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}
    path = folder / FILE
    folder.mkdir(parents=True, exist_ok=True)
    write_file(path, lambda partial: save_file(on_cpu, partial, metadata={"notes": json.dumps(notes)}))
    return Saved(run.step, run.seconds, str(path))


def read(folder: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The notes and tensors that `save` wrote. Raises ValueError where there are none."""
    path = folder / FILE
    if not path.exists():
        raise ValueError(f"there is nothing to resume in {folder}: it has no {FILE}")
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            notes = json.loads(file.metadata()["notes"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        columns = under(tensors, "steps/")
        notes["history"]["steps"] = {name: column.tolist() for name, column in columns.items()}
        notes["history"]["steps"]["step"] = columns["step"].long().tolist()
    except (SafetensorError, KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"{path} is damaged and cannot be resumed: {problem}") from problem
    return notes, tensors


def reads(corpus: Corpus) -> dict[str, str]:
    """What a run learns from, as two fingerprints: of the text and its parts, and of how it is taken apart."""
    tokenizer = json.dumps(corpus.tokenizer.to_dict(), sort_keys=True).encode()
    return {
        "text": f"{corpus.sha256} {len(corpus.train)} {len(corpus.val)}",
        "tokenizer": hashlib.sha256(tokenizer).hexdigest(),
    }


def under(values: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The values whose names begin with the prefix, by the rest of their names."""
    return {name[len(prefix) :]: value for name, value in values.items() if name.startswith(prefix)}
