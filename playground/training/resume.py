"""Resume: continue a saved run exactly, or say that its last digits will differ, or refuse and say why.

The last digits differ on another machine. `config.ON_RESUME` says which settings may change; the model, the text and
the tokenizer may not. The whole file is checked (`SavedRun.check`) before anything is changed (`restore`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open

from ..data.corpus import Corpus
from ..model import ModelConfig
from . import autosave
from .config import FREELY, NEVER, NOTICED, ON_RESUME, TrainConfig
from .events import OTHER_MACHINE
from .history import History
from .weights import Weights

if TYPE_CHECKING:
    from .loop import Run


@dataclass(frozen=True)
class SavedRun:
    """A run as it was last saved."""

    step: int
    """Optimizer steps done."""
    seconds: float
    """Training time so far."""
    model: ModelConfig
    training: TrainConfig
    reads: dict[str, str]
    """Fingerprints of the text and the tokenizer, see `autosave.reads`."""
    history: History
    """The whole history, to the last step."""
    machine: str
    """What it was trained with, see `autosave.machine_of`."""
    file: Path = Path(autosave.FILE)
    best: Mapping[str, Any] | None = None
    """The step and validation loss of the best weights."""
    scaler: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, torch.Tensor] = field(default_factory=dict, repr=False)
    """Named as `autosave` describes, without the curves."""

    @classmethod
    def of(cls, folder: Path) -> SavedRun:
        """The run in `folder`. Raises ValueError if there is none, or one from another version of this program."""
        path = folder / autosave.FILE
        if not path.exists():
            raise ValueError(f"there is nothing to resume in {folder}: it has no {autosave.FILE}")
        try:
            with safe_open(path, framework="pt", device="cpu") as file:
                notes = json.loads(file.metadata()["notes"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            columns = _under(tensors, "steps/")
            notes["history"]["steps"] = {name: column.tolist() for name, column in columns.items()}
            notes["history"]["steps"]["step"] = columns["step"].long().tolist()
        except (SafetensorError, KeyError, TypeError, ValueError) as problem:
            raise ValueError(f"{path} is damaged and cannot be resumed: {problem}") from problem
        try:
            return cls(
                notes["step"],
                notes["seconds"],
                ModelConfig.from_dict(notes["model"]),
                TrainConfig.from_dict(notes["config"]),
                {what: notes[what] for what in ("text", "tokenizer")},
                History.from_dict(notes["history"]),
                notes["machine"].replace(", processes: 1", ""),  # of which earlier versions could have several
                path,
                notes.get("best"),
                notes["scaler"],
                tensors,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise ValueError(f"{path} was written by another version of this program: {problem}") from problem

    @property
    def weights(self) -> dict[str, torch.Tensor]:
        """The model's weights."""
        return _under(self.tensors, "model/")

    def changes(self, model: ModelConfig, training: TrainConfig, corpus: Corpus) -> dict[str, list]:
        """Settings that differ from the saved run's and are allowed to: name → [before, now].

        Raises ValueError that names the settings that have to be the same and are not.
        """
        changed = self.training.differences(training)
        other = self.model.differences(model) | {name: changed[name] for name in changed if ON_RESUME[name][0] == NEVER}
        words = [f"{name} was {before!r}, is now {now!r}" for name, (before, now) in other.items()]
        given = autosave.reads(corpus)
        words += [f"the {what} is another one" for what in given if given[what] != self.reads[what]]
        if words:
            raise ValueError(
                f"this run must continue as it began: {'; '.join(words)}. "
                "Use its old settings, or begin a new run in another folder"
            )
        return {name: list(values) for name, values in changed.items() if ON_RESUME[name][0] != FREELY}

    def check(self, run: Run) -> None:
        """Raise ValueError unless the new `run` can continue exactly from this saved one. Changes nothing."""
        self.changes(run.model.config, run.config, run.corpus)
        try:
            self._check_tensors(run)
        except (LookupError, TypeError, RuntimeError, ValueError) as problem:
            raise ValueError(f"{self.file} is damaged and cannot be resumed: {problem}") from problem

    def _check_tensors(self, run: Run) -> None:
        shapes = {name: tensor.shape for name, tensor in run.model.state_dict().items()}
        _check_shapes(self.weights, shapes)
        for i, optimizer in enumerate(run.optimizers):
            parameters = dict(enumerate(p for group in optimizer.param_groups for p in group["params"]))
            for number, memory in self._optimizer_state(i).items():
                shape = parameters[number].shape
                _check_shapes(memory, {name: shape if name != "step" else torch.Size() for name in optimizer.MEMORY})
        for name, state in self._generator_states(run).items():
            torch.Generator(run.generators[name].device).set_state(state)  # one that is thrown away
        if run.scaler.is_enabled() and self.scaler:
            torch.amp.GradScaler(run.device.type).load_state_dict(dict(self.scaler))
        if self.best is not None:
            float(self.best["val_loss"])
            if self.best["step"] != self.step:
                _check_shapes(_under(self.tensors, "best/"), shapes)

    def _optimizer_state(self, number: int) -> dict[int, dict[str, torch.Tensor]]:
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, tensor in _under(self.tensors, f"optimizer/{number}/").items():
            index, key = name.split("/")
            state.setdefault(int(index), {})[key] = tensor
        return state

    def _generator_states(self, run: Run) -> dict[str, torch.Tensor]:
        """Generators' states by name. On another kind of device their form differs: dropout restarts from its seed."""
        states = {name: self.tensors[f"generator/{name}"] for name in run.generators}
        if states["dropout"].numel() != run.generators["dropout"].get_state().numel():
            del states["dropout"]
        return states


def restore(run: Run, saved: SavedRun) -> None:
    """Set a run to the state of a saved one that has passed `check`, so that it continues with the next step."""
    run.changes = saved.changes(run.model.config, run.config, run.corpus)
    spoken = {name: values for name, values in run.changes.items() if ON_RESUME[name][0] == NOTICED}
    machine = autosave.machine_of(run)
    if saved.machine != machine or spoken:
        run.notices.append((OTHER_MACHINE, {"before": saved.machine, "now": machine, "settings": spoken}))
    run.model.load_state_dict(saved.weights)
    for i, optimizer in enumerate(run.optimizers):
        state = saved._optimizer_state(i)
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    for name, state in saved._generator_states(run).items():
        run.generators[name].set_state(state)
    if run.scaler.is_enabled() and saved.scaler:
        run.scaler.load_state_dict(dict(saved.scaler))
    run.step, run.seconds_before, run.history = saved.step, saved.seconds, saved.history
    run.history.finished = None
    best, device = saved.best, run.device
    val_loss = best["val_loss"] if best and best["step"] == saved.step else None
    run.good = Weights.of(run.model, saved.step, val_loss)
    if best is not None and best["step"] == saved.step:
        run.best = run.good
    elif best is not None:
        state = {name: tensor.to(device) for name, tensor in _under(saved.tensors, "best/").items()}
        run.best = Weights(best["step"], best["val_loss"], state)


def _check_shapes(tensors: Mapping[str, torch.Tensor], shapes: Mapping[str, torch.Size]) -> None:
    if missing := sorted(set(shapes) ^ set(tensors)):
        raise ValueError(f"{missing[0]} is missing or not known")
    for name, tensor in tensors.items():
        if tensor.shape != shapes[name]:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, not {tuple(shapes[name])}")


def _under(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The values whose names begin with the prefix, by the rest of their names."""
    return {name[len(prefix) :]: value for name, value in values.items() if name.startswith(prefix)}
