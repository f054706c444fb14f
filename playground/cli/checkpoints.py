"""Checkpoints named on the command line: opened at the moment that --step asks for, and saved with their card."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..storage import Checkpoint, CheckpointError, write_checkpoint
from ..storage.opening import open_model
from ..words.card import model_card


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that name a model and a moment of it."""
    parser.add_argument("folder", metavar="DIR", help="a checkpoint folder, one of Transformers, or a zip")
    parser.add_argument(
        "--step", type=_step, metavar="N", help="a step whose weights were kept, or best (default: the last)"
    )


def opened(options: argparse.Namespace) -> Checkpoint:
    """The model that is named, at the moment that is asked for. Raises CheckpointError."""
    checkpoint = open_model(options.folder)
    return checkpoint if options.step is None else checkpoint.at(options.step)


def new_folder(name: str) -> Path:
    """A folder that nothing is in yet. Raises CheckpointError where there is something."""
    out = Path(name)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CheckpointError(f"{out} exists already: choose another --out")
    return out


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint's folder, its model card included."""
    write_checkpoint(folder, checkpoint, card=model_card(checkpoint))


def _step(text: str) -> int | str:
    if text != "best" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no step: give a number, or best")
    return text if text == "best" else int(text)
