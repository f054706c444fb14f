"""Autosave: everything a run needs to continue exactly where it stopped, in one file that is replaced in one move.

The file is safetensors. As tensors it holds the weights (`model/`), the optimizers' state (`optimizer/`), the random
states (`generator/`), the weights with the lowest validation loss (`best/`, if they are not the model's present ones)
and the curves of the steps (`steps/`); all else is JSON in its metadata. Nothing in it can run. `resume.py` reads it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from filelock import FileLock, Timeout
from safetensors.torch import save_file

from ..atomic_files import forget_halves, write_file
from ..data.corpus import Corpus
from .events import NOT_SAVED, Finished, Noticed, Saved, Started, TrainEvent

if TYPE_CHECKING:
    from .loop import Run

FILE = "resume.safetensors"
LOCK = ".lock"


class Autosave:
    """Observer that saves the run into `folder` every `autosave_seconds` and at its end, unless it diverged.

    If saving fails, the run reports it once and continues.
    """

    def __init__(self, folder: Path):
        self.folder, self._saved_at, self._told = folder, time.perf_counter(), False

    def __call__(self, run: Run, event: TrainEvent) -> Iterator[TrainEvent]:
        if isinstance(event, Started):
            self._saved_at = time.perf_counter()
        elif isinstance(event, Finished):
            if event.reason != "diverged":
                yield from self._saved(run)
        elif time.perf_counter() - self._saved_at >= run.config.autosave_seconds:
            yield from self._saved(run)
            self._saved_at = time.perf_counter()

    def _saved(self, run: Run) -> Iterator[TrainEvent]:
        try:
            yield save(run, self.folder)
        except OSError as problem:
            if not self._told:
                yield Noticed(run.step, run.seconds, NOT_SAVED, {"error": problem.strerror or "the disk may be full"})
            self._told = True


def save(run: Run, folder: Path) -> Saved:
    """Write the run's state into `folder`. If the process is killed, the previous file or the new one is left whole."""
    tensors = {f"model/{name}": tensor for name, tensor in run.model.state_dict().items()}
    for i, optimizer in enumerate(run.optimizers):
        for index, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{i}/{index}/{name}": tensor for name, tensor in state.items()}
    tensors |= {f"generator/{name}": generator.get_state() for name, generator in run.generators.items()}
    if run.best is not None and run.best.step != run.step:
        tensors |= {f"best/{name}": tensor for name, tensor in run.best.state.items()}
    history = run.history.to_dict()
    for name, column in history.pop("steps").items():  # metadata has less room than a long run's curves need
        tensors[f"steps/{name}"] = torch.tensor(column, dtype=torch.float64)
    notes = {
        "step": run.step,
        "seconds": run.seconds,
        "history": history,
        "best": run.best and {"step": run.best.step, "val_loss": run.best.val_loss},
        "scaler": run.scaler.state_dict(),
        "config": run.config.to_dict(),
        "model": run.model.config.to_dict(),
        "machine": machine_of(run),
        **reads(run.corpus),
    }
    seen, on_cpu = set(), {}
    for name, tensor in tensors.items():
        on_cpu[name] = tensor.detach().to("cpu").contiguous()
        if tensor.data_ptr() in seen:  # a tied head, which the file holds twice
            on_cpu[name] = on_cpu[name].clone()
        seen.add(tensor.data_ptr())
    path = folder / FILE
    folder.mkdir(parents=True, exist_ok=True)
    write_file(path, lambda partial: save_file(on_cpu, partial, metadata={"notes": json.dumps(notes)}))
    return Saved(run.step, run.seconds, str(path))


def owned(folder: Path) -> FileLock:
    """Take the folder's lock, so that one process at a time trains into it. `release` gives it back, and so does the
    end of the process.

    Half-written files of an earlier owner are removed. Raises ValueError if another process holds the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # from any thread: a page's runs begin in one and may end in another
    lock = FileLock(folder / LOCK, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise ValueError(
            f"another run is being trained into {folder}: wait until it ends, or choose another folder"
        ) from None
    forget_halves(folder)
    return lock


def machine_of(run: Run) -> str:
    """A run's device and precision; on a CPU, also the number of threads among which each sum is divided."""
    threads = f", threads: {torch.get_num_threads()}" if run.device.type == "cpu" else ""
    precision = str(run.dtype).removeprefix("torch.")
    return f"{precision} on {run.device.type}{threads}"


def reads(corpus: Corpus) -> dict[str, str]:
    """What a run learns from, as two fingerprints: one of the text and its split, one of the tokenizer."""
    tokenizer = json.dumps(corpus.tokenizer.to_dict(), sort_keys=True).encode()
    return {
        "text": f"{corpus.sha256} {len(corpus.train)} {len(corpus.val)}",
        "tokenizer": hashlib.sha256(tokenizer).hexdigest(),
    }
