"""What a checkpoint contains: a model with all that belongs to it, in memory and as a folder.

config.json         the ModelConfig, and a format number
tokenizer.json      the tokenizer
model.safetensors   the weights
history.json        the run's curves and samples, its baselines, and how it was made
README.md           perhaps: a model card, written by the caller (words/card.py)
snapshots.safetensors  perhaps: the weights at many moments of the run, see snapshots.py
best.safetensors       perhaps: the weights at the lowest validation loss, if that was not the last

JSON and safetensors only; nothing is ever unpickled. A run's folder also holds the state from which it continues
(training/autosave.py), which is no part of the checkpoint.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from ..atomic_files import current_file, read_folder, write_folder
from ..data import LANGUAGES, Baselines, Language
from ..data.tokenizers import Tokenizer, tokenizer_from_dict
from ..model import ModelConfig, Transformer
from ..training.config import TrainConfig
from ..training.history import History
from .bounds import Check, check_bounds
from .errors import CheckpointError, check_folder_is_there, refuse_pickles
from .json_files import MAX_BYTES, MAX_VALUES, as_json, count_values, finite, read_json, write_json
from .record import sanitised_history, single_line, sound_notes
from .snapshots import Snapshots, find_snapshots
from .tensors import check_belongs, expected_shapes, read_header, read_tensors

FORMAT = 1
REQUIRED = ("config.json", "tokenizer.json", "model.safetensors")


@dataclass(frozen=True)
class Checkpoint:
    """A model with its tokenizer, its history and the notes on how it was made."""

    model: Transformer
    tokenizer: Tokenizer
    history: History
    name: str = "model"
    """The model's name."""
    about: dict[str, Any] = field(default_factory=dict)
    """How it was made: corpus, baselines ("ladder"), training settings, prompt. Plain values; any may be missing."""
    snapshots: Snapshots | None = None
    """The weights at many moments of the run, if they were kept."""

    @property
    def config(self) -> ModelConfig:
        """The model's config."""
        return self.model.config

    @property
    def training(self) -> TrainConfig | None:
        """The settings with which the model was trained; None if they are not known."""
        settings = self.about.get("training")
        try:
            return TrainConfig.from_dict(settings) if settings else None
        except (ValueError, TypeError):  # settings from another program or another version
            return None

    @property
    def baselines(self) -> Baselines | None:
        """The reference losses of its training text; None if they are not known."""
        ladder = self.about.get("ladder")
        return Baselines.from_dict(ladder) if ladder else None

    @property
    def language(self) -> Language | None:
        """The synthetic language that it was trained on; None for any other text."""
        return LANGUAGES.get(str(self.about.get("language")))

    @property
    def best(self) -> tuple[int, float] | None:
        """See `best_kept`."""
        return best_kept(self.history, self.snapshots)

    def at(self, step: int | str) -> Checkpoint:
        """The checkpoint after an earlier step whose weights were kept, or the "best" one; its record ends there.

        Raises a CheckpointError that names the kept steps.
        """
        last = self.history.last_step
        if step == "best":
            step = self.best[0] if self.best else last
        if step == last:
            return self
        if self.snapshots is None or step not in self.snapshots.steps:
            steps = [f"{at:,}" for at in (*(self.snapshots.steps if self.snapshots else ()), last)]
            raise CheckpointError(f"no weights were kept after step {step:,}: there are those of {', '.join(steps)}")
        history = self.history.until(step)
        message = f"These are the weights of step {step:,} of {last:,}."
        history.finished = {"event": "finished", "step": step, "reason": "moment", "message": message}
        about = {name: value for name, value in self.about.items() if name != "tuning"}  # measured at the last step
        return replace(self, model=self.snapshots.model(step), history=history, about=about)


def best_kept(history: History, snapshots: Snapshots | None) -> tuple[int, float] | None:
    """(step, validation loss) of kept weights that are better than the last ones; None if there are none."""
    lowest, step = history.best, snapshots.best if snapshots else None
    if step is None or lowest is None or step >= history.last_step:
        return None
    losses = dict(zip(history.evaluations["step"], history.evaluations["val_loss"]))
    # files hold six digits, and a killed run may have kept weights that it did not record
    return (step, losses[step]) if abs(losses.get(step, math.inf) - lowest[1]) < 1e-4 else None


def save(
    folder: str | Path,
    model: Transformer,
    tokenizer: Tokenizer,
    history: History | None = None,
    *,
    name: str | None = None,
    about: dict[str, Any] | None = None,
) -> Path:
    """Write a checkpoint folder from these parts, by default named after the folder; see `write_checkpoint`."""
    parts = Checkpoint(model, tokenizer, history or History(), name or Path(folder).name, about or {})
    return write_checkpoint(folder, parts)


def write_checkpoint(folder: str | Path, checkpoint: Checkpoint, *, card: str = "", half: bool = False) -> Path:
    """Write a checkpoint folder in one move: if the process is killed, the old or the new one is left whole.

    `card` becomes its README.md. `half` stores weights as float16, which loses about three decimal digits; they are
    loaded as float32 again. Other files in the folder are kept. What is saved can be loaded: a record too
    long for that loses every second entry until it fits; a config too large for that raises CheckpointError.
    """
    folder, model = Path(folder), checkpoint.model
    check_bounds(model.config)

    def fill(made: Path) -> None:
        dtype = torch.float16 if half else torch.float32
        tied = {"head.weight"} if model.config.tie_embeddings else set()
        tensors = {n: t.detach().to("cpu", dtype).contiguous() for n, t in model.state_dict().items() if n not in tied}
        save_file(tensors, made / "model.safetensors", metadata={"format": "pt"})
        write_json(made / "config.json", {"format": FORMAT, **model.config.to_dict()})
        write_json(made / "tokenizer.json", checkpoint.tokenizer.to_dict())
        (made / "history.json").write_bytes(_record(checkpoint))
        if card:
            (made / "README.md").write_text(card, encoding="utf-8")

    write_folder(folder, fill)
    return folder


def load(folder: str | Path, *, check: Check = check_bounds) -> Checkpoint:
    """Read a checkpoint folder, checking everything before memory is allocated for it.

    Raises CheckpointError, or what `check` raises for a config that is too large for the caller.
    """
    folder = Path(folder)
    check_folder_is_there(folder, "a checkpoint")
    return read_folder(folder, (*REQUIRED, "history.json"), lambda: _load(folder, check))


def _load(folder: Path, check: Check) -> Checkpoint:
    for required in REQUIRED:
        if not current_file(folder, required).is_file():
            refuse_pickles(folder)
            raise CheckpointError(f"{folder} is not a checkpoint: it has no {required}")
    config = config_of(folder)
    check(config)
    check_bounds(config)
    weights, shapes = current_file(folder, "model.safetensors"), expected_shapes(config)
    check_belongs(read_header(weights), shapes, weights.name)
    try:
        tokenizer = tokenizer_from_dict(read_json(current_file(folder, "tokenizer.json")))
    except ValueError as problem:
        raise problem if isinstance(problem, CheckpointError) else CheckpointError(
            f"tokenizer.json cannot be used: {problem}"
        ) from problem  # fmt: skip
    check_fits(tokenizer, config)
    history, name, about = record_of(folder)
    snapshots = find_snapshots(folder, config)
    tensors = read_tensors(weights, shapes)
    if config.tie_embeddings:
        tensors["head.weight"] = tensors["embedding.weight"]
    return Checkpoint(with_weights(config, tensors), tokenizer, history, name, about, snapshots)


def record_of(folder: Path) -> tuple[History, str, dict[str, Any]]:
    """The history, name and notes in a checkpoint's folder. Raises CheckpointError if they cannot be used."""
    record = current_file(folder, "history.json")
    values = read_json(record) if record.is_file() else {}
    try:
        history = sanitised_history(History.from_dict(values), own=True)
    except ValueError as problem:
        raise CheckpointError(f"history.json cannot be used: {problem}") from problem
    except (AttributeError, TypeError, OverflowError) as problem:
        raise CheckpointError("history.json cannot be used: its tables do not have the form of a history") from problem
    name = single_line(str(values.get("name") or folder.name)) or "model"
    return history, name, sound_notes(values.get("about"))


def with_weights(config: ModelConfig, tensors: dict[str, torch.Tensor]) -> Transformer:
    """A model with this config and these weights; none may be missing."""
    model = Transformer(config)
    model.load_state_dict(tensors)
    return model


def check_fits(tokenizer: Tokenizer, config: ModelConfig) -> None:
    """Raise CheckpointError if the model has no row for some of the tokenizer's tokens."""
    if tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(
            f"the tokenizer has {tokenizer.vocab_size} tokens but the model only {config.vocab_size}: "
            "they do not belong together"
        )


def config_of(folder: Path) -> ModelConfig:
    """The config in a checkpoint's folder. Raises CheckpointError if there is no usable one."""
    values = read_json(current_file(folder, "config.json"))
    if not isinstance(values, dict):
        raise CheckpointError("config.json is not a table of settings")
    if values.pop("format", None) != FORMAT:
        raise CheckpointError("config.json is not of this playground's format: export or import it first")
    try:
        return ModelConfig.from_dict(values)
    except (ValueError, TypeError, OverflowError) as problem:
        raise CheckpointError(f"config.json cannot be used: {problem}") from problem


def _record(checkpoint: Checkpoint) -> bytes:
    """The content of history.json; six significant digits are plenty for curves, and halve the file."""
    history = checkpoint.history.thinned().to_dict()
    while True:
        record = finite({"name": checkpoint.name, "about": checkpoint.about, **history}, digits=6)
        text = as_json(record)
        if len(text) <= MAX_BYTES["history.json"] // 2 and count_values(text) <= MAX_VALUES["history.json"] // 2:
            return text
        thinner = {name: _every_second(history[name]) for name in ("evaluations", "samples", "gradients", "load")}
        if thinner == {name: history[name] for name in thinner}:
            raise CheckpointError("what is noted about the model is too long to be saved: shorten its name and notes")
        history = {**history, **thinner}


def _every_second(entries: Any) -> Any:
    """Every second entry, counted back from the last; for a table, of each column."""
    if isinstance(entries, dict):
        return {name: _every_second(column) for name, column in entries.items()}
    return entries[-1::-2][::-1]
