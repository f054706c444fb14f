"""Checkpoints named on the command line: opened as of the step that --step names, and saved with their card."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..storage import Checkpoint, CheckpointError, write_checkpoint
from ..storage.opening import open_model
from ..words.card import model_card


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a model and one of its steps."""
    parser.add_argument("folder", metavar="DIR", help="a checkpoint folder, one of Transformers, or a zip")
    parser.add_argument(
        "--step", type=_step, metavar="N", help="a step whose weights were kept, or best (default: the last)"
    )


def opened(options: argparse.Namespace) -> Checkpoint:
    """Open the named model, as of the requested step. Raises CheckpointError."""
    checkpoint = open_model(options.folder)
    return checkpoint if options.step is None else checkpoint.at(options.step)


def new_folder(name: str) -> Path:
    """Check that a folder is empty or missing. Raises CheckpointError otherwise."""
    out = Path(name)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CheckpointError(f"{out} exists already: choose another --out")
    return out


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint's folder, including its model card."""
    write_checkpoint(folder, checkpoint, card=model_card(checkpoint))


def _step(text: str) -> int | str:
    if text != "best" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no step: give a number, or best")
    return text if text == "best" else int(text)
