"""Resume: a run that was saved goes on exactly where it was, or with a notice that its last digits differ (another
machine), or is refused with the names of what differs.

What of its settings may be others is said, setting by setting, in `config.ON_RESUME`; its model, its text and its
tokenizer may not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..data.corpus import Corpus
from ..model import ModelConfig
from . import autosave, best
from .config import FREELY, NEVER, NOTICED, ON_RESUME, TrainConfig
from .events import changed_in_words
from .history import History

if TYPE_CHECKING:
    from .trainer import Run


@dataclass(frozen=True)
class SavedRun:
    """A run as it was last saved, without its tensors."""

    step: int
    """Optimizer steps done."""
    seconds: float
    """Training time so far."""
    model: ModelConfig
    training: TrainConfig
    reads: dict[str, str]
    """Fingerprints of the text and the tokenizer, see `autosave.reads`."""
    history: History
    """All of it, to the last step."""
    machine: str
    """Device and precision that it was trained with."""

    @classmethod
    def of(cls, folder: Path) -> SavedRun:
        """What `folder` holds. Raises ValueError where it holds no run, or one of another version of this program."""
        return cls._from(folder, autosave.read(folder)[0])

    @classmethod
    def _from(cls, folder: Path, notes: Mapping[str, Any]) -> SavedRun:
        try:
            return cls(
                notes["step"],
                notes["seconds"],
                ModelConfig.from_dict(notes["model"]),
                TrainConfig.from_dict(notes["config"]),
                {what: notes[what] for what in ("text", "tokenizer")},
                History.from_dict(notes["history"]),
                notes["machine"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise ValueError(
                f"{folder / autosave.FILE} was written by another version of this program: {problem}"
            ) from problem

    def changes(self, model: ModelConfig, training: TrainConfig, corpus: Corpus) -> dict[str, tuple[Any, Any]]:
        """Settings with which it may go on but that are not as they were: name → (before, now).

        Raises ValueError that names whatever has to be the same and is not.
        """
        changed = self.training.differences(training)
        other = self.model.differences(model) | {name: changed[name] for name in changed if ON_RESUME[name][0] == NEVER}
        words = [f"{name} was {before!r}, is now {now!r}" for name, (before, now) in other.items()]
        given = autosave.reads(corpus)
        words += [f"the {what} is another one" for what in given if given[what] != self.reads[what]]
        if words:
            raise ValueError(
                f"this run cannot go on otherwise than it began: {'; '.join(words)}. "
                "Give it what it had, or begin a new run in another folder"
            )
        return {name: values for name, values in changed.items() if ON_RESUME[name][0] != FREELY}


def restore(run: Run, folder: Path) -> None:
    """Bring a run that was just made to where the one in `folder` was; the next step is the one that would have
    followed. Raises ValueError where it cannot be continued exactly."""
    notes, tensors = autosave.read(folder)
    saved = SavedRun._from(folder, notes)
    run.changes = saved.changes(run.model.config, run.config, run.corpus)
    spoken = {name: values for name, values in run.changes.items() if ON_RESUME[name][0] == NOTICED}
    if saved.machine != run.machine or spoken:
        moved = f"It was trained with {saved.machine} and goes on with {run.machine}. " * (saved.machine != run.machine)
        said = f"{changed_in_words(saved.step, spoken)} " if spoken else ""
        run.notices.append(f"{moved}{said}The last digits of its losses are no longer those of an unbroken run.")
    try:
        run.model.load_state_dict(autosave.under(tensors, "model/"))
        for i, optimizer in enumerate(run.learner.optimizers):
            _restore_optimizer(optimizer, tensors | notes["numbers"], f"optimizer/{i}/")
        for name, generator in run.learner.generators.items():
            kept = tensors[f"generator/{name}"]
            # another kind of device has another kind of state: there, dropout goes on from its seed
            if kept.numel() == generator.get_state().numel():
                generator.set_state(kept)
        run.learner.scaler.load_state_dict(notes["scaler"])
    except (KeyError, RuntimeError, ValueError) as problem:
        raise ValueError(f"{folder / autosave.FILE} is damaged and cannot be resumed: {problem}") from problem
    if not run.workers.first:  # the saved noise is the first process's
        run.learner.generators["dropout"].manual_seed(run.workers.noise_seed(run.config.seed + 1, saved.step))
    run.step, run.seconds_before, run.history = saved.step, saved.seconds, saved.history
    run.history.finished = None
    run.remember_good()
    try:
        run.best = best.remembered(notes.get("best"), tensors, run.step, run.good_weights)
    except (KeyError, TypeError) as problem:
        raise ValueError(f"{folder / autosave.FILE} is damaged and cannot be resumed: {problem}") from problem


def _restore_optimizer(optimizer: torch.optim.Optimizer, values: dict[str, Any], prefix: str) -> None:
    state: dict[int, dict[str, Any]] = {}
    for name, value in autosave.under(values, prefix).items():
        index, key = name.split("/")
        state.setdefault(int(index), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
