"""Snapshots: the weights of a run at many moments, in half precision, as safetensors beside it.

A running job writes one file per moment; a finished checkpoint carries all of them in one `snapshots.safetensors`,
whose tensors are called `step/name`. The moment of the lowest validation loss, if it is not the last, has a file of
its own, `best.safetensors`, in full precision. All are read the same way, and checked against the config before use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import torch
from safetensors.torch import save_file

from ..atomic_files import write_file
from ..model import ModelConfig, Transformer
from .errors import CheckpointError
from .tensors import State, check_belongs, expected_shapes, read_header, read_tensors

FILE, BEST = "snapshots.safetensors", "best.safetensors"
FOLDER = "snapshots"
MOST = 48
"""Most moments kept of a run, however long; beyond that, the densest go first."""


class Snapshots:
    """The kept moments of one run. Files are opened only when a moment is asked for."""

    def __init__(self, config: ModelConfig, places: dict[int, tuple[Path, str]], best: int | None = None):
        self.config, self.best = config, best  # the step whose weights were kept because they were the best
        self._places = dict(sorted(places.items()))  # step → file, and the prefix of its tensors' names

    @property
    def steps(self) -> tuple[int, ...]:
        """Optimizer steps after which the weights were kept, ascending."""
        return tuple(self._places)

    def until(self, step: int) -> Snapshots:
        """The snapshots up to a step."""
        return Snapshots(self.config, {at: place for at, place in self._places.items() if at <= step}, self.best)

    def model(self, step: int) -> Transformer:
        """A new model with the weights of that moment, as float32. Raises CheckpointError if they cannot be read."""
        model = Transformer(self.config)
        model.load_state_dict(self.weights(step))
        return model

    def weights(self, step: int) -> State:
        """The state dict of that moment, as float32. Raises CheckpointError if it cannot be read."""
        if step not in self._places:
            raise CheckpointError(f"no weights were kept after step {step:,}")
        path, prefix = self._places[step]
        try:
            here = {n.removeprefix(prefix): t for n, t in read_header(path).items() if n.startswith(prefix)}
            try:
                check_belongs(here, self._shapes, path.name)
            except CheckpointError as problem:
                raise CheckpointError(f"the snapshots belong to another model: {problem}") from problem
            read = read_tensors(path, [prefix + name for name in self._shapes])
        except (OSError, CheckpointError) as problem:
            raise CheckpointError(f"the weights after step {step:,} cannot be read: {problem}") from problem
        tensors = {name.removeprefix(prefix): tensor for name, tensor in read.items()}
        if self.config.tie_embeddings:
            tensors["head.weight"] = tensors["embedding.weight"]
        return tensors

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return expected_shapes(self.config)


def find_snapshots(folder: str | Path | None, config: ModelConfig) -> Snapshots | None:
    """The snapshots in a run's or a checkpoint's folder, or None. Reads headers only."""
    if folder is None:
        return None
    folder = Path(folder)
    places = _moments(folder / FILE)
    for path in (folder / FOLDER).glob("*.safetensors"):
        if re.fullmatch(r"[0-9]{8,12}", path.stem):
            places[int(path.stem)] = (path, "")
    best = _moments(folder / BEST)
    return Snapshots(config, places | best, next(iter(best), None)) if places or best else None


def _moments(file: Path) -> dict[int, tuple[Path, str]]:
    """The moments in a file whose tensors are called `step/name`; none if there is no such file."""
    if not file.is_file():
        return {}
    found = (name.partition("/") for name in read_header(file))
    return {int(step): (file, f"{step}/") for step, _, rest in found if re.fullmatch(r"[0-9]{1,12}", step) and rest}


def keep_best(folder: str | Path, step: int, state: State, *, tied: bool = False) -> None:
    """Write a run's best moment into its folder, in place of the former best."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = _stored(state, tied, torch.float32, f"{step}/")
    write_file(folder / BEST, lambda partial: save_file(tensors, partial))


def drop_best(folder: str | Path) -> None:
    """Delete the kept best moment, since the last one is the best again."""
    (Path(folder) / BEST).unlink(missing_ok=True)


def keep_snapshot(folder: str | Path, step: int, state: State, *, tied: bool = False) -> None:
    """Add one moment of a run to its folder, in half precision; beyond `MOST` moments, the one closest to its
    neighbours goes. After a crash the file is either whole or missing."""
    folder = Path(folder) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{step:08d}.safetensors"
    write_file(path, lambda partial: save_file(_stored(state, tied), partial))
    steps = sorted(int(p.stem) for p in folder.glob("*.safetensors"))
    while len(steps) > MOST:
        # the gap between neighbours relative to the step: early moments lie densely on purpose
        spare = min(range(1, len(steps) - 1), key=lambda i: (steps[i + 1] - steps[i - 1]) / (steps[i] + 1))
        (folder / f"{steps.pop(spare):08d}.safetensors").unlink(missing_ok=True)


def drop_after(folder: str | Path, step: int) -> None:
    """Delete the moments after this step, because the run continues differently from here."""
    for path in (Path(folder) / FOLDER).glob("*.safetensors"):
        if path.stem.isdecimal() and int(path.stem) > step:
            path.unlink(missing_ok=True)
    if any(best > step for best in _moments(Path(folder) / BEST)):
        drop_best(folder)


def save_snapshots(folder: str | Path, moments: Iterable[tuple[int, State]], *, tied: bool = False) -> Path:
    """Put all moments of a run into one file of a checkpoint folder."""
    tensors = {name: t for step, state in moments for name, t in _stored(state, tied, prefix=f"{step}/").items()}
    return write_file(Path(folder) / FILE, lambda partial: save_file(tensors, partial))


def _stored(state: State, tied: bool, dtype: torch.dtype = torch.float16, prefix: str = "") -> State:
    """The tensors to store, without a tied head, which is the embedding."""
    own = {name: tensor for name, tensor in state.items() if not (tied and name == "head.weight")}
    return {prefix + name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in own.items()}
