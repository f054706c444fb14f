"""Opening: open a model from this project's folder, from one that Transformers saved, or from a zip file of either."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from ..atomic_files import current_file
from . import checkpoint, transformers_import
from .archive import FILES, OF_TRANSFORMERS, unpack
from .bounds import MAX_PARAMETERS, Check, check_bounds
from .checkpoint import Checkpoint
from .errors import CheckpointError
from .json_files import read_json
from .record import sanitised_history, sanitised_notes, single_line


def open_model(path: str | Path, *, check: Check = check_bounds) -> Checkpoint:
    """The model in a folder or a zip file. Raises CheckpointError, or what `check` raises for its config."""
    if Path(path).is_file():
        size = 4 * MAX_PARAMETERS + sum(size or 0 for size in FILES.values())
        return load_archive(path, max_bytes=size, check=check)
    return open_folder(path, check=check)


def open_folder(folder: str | Path, *, check: Check = check_bounds) -> Checkpoint:
    """The model in a folder, saved by this project or by Transformers."""
    read = transformers_import.import_folder if _is_theirs(Path(folder)) else checkpoint.load
    return read(folder, check=check)


def load_archive(path: str | Path, *, max_bytes: int, check: Check = check_bounds) -> Checkpoint:
    """The model in a zip file of at most `max_bytes`, inflated, with its record sanitised.

    Raises CheckpointError, or what `check` raises for its config before any weight is read.
    """
    with tempfile.TemporaryDirectory(prefix="playground-unpack-") as made:
        folder = unpack(path, Path(made) / "model", max_bytes=max_bytes, files={**FILES, **OF_TRANSFORMERS})
        try:
            return sanitise(open_folder(folder, check=check))
        except CheckpointError as problem:
            raise CheckpointError(str(problem).replace(str(folder), "the zip file")) from problem


def check_folder(folder: Path, check: Check) -> None:
    """Raise whatever opening the folder would raise for its config alone; its other files need not be there yet."""
    config = transformers_import.config_of(folder)[1] if _is_theirs(folder) else checkpoint.config_of(folder)
    check(config)
    check_bounds(config)


def sanitise(opened: Checkpoint) -> Checkpoint:
    """The checkpoint with only the sound part of its record: a page shows it, and anybody may have written it.

    Names and texts lose control characters and are cut to a sane length. Records and notes of the wrong form are left
    out; if there are very many, only some are kept.
    """
    return replace(
        opened,
        history=sanitised_history(opened.history),
        name=single_line(opened.name) or "model",
        about=sanitised_notes(opened.about),
        snapshots=None,
    )


def _is_theirs(folder: Path) -> bool:
    """Whether Transformers saved the folder: its config.json then names a model type."""
    config = current_file(folder, "config.json")
    values = read_json(config) if config.is_file() else None
    return isinstance(values, dict) and "model_type" in values and "format" not in values
