"""--step: a model as it was at a moment of its run whose weights were kept."""

from __future__ import annotations

import argparse

from ..storage import Checkpoint
from ..storage.opening import open_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The option that names a moment."""
    parser.add_argument(
        "--step", type=_step, metavar="N", help="a step whose weights were kept, or best (default: the last)"
    )


def opened(options: argparse.Namespace) -> Checkpoint:
    """The model that is named, at the moment that is asked for. Raises CheckpointError."""
    checkpoint = open_model(options.folder)
    return checkpoint if options.step is None else checkpoint.at(options.step)


def tell_best(checkpoint: Checkpoint) -> None:
    """Print that the weights of a run's best step are there to be asked for, where they are."""
    if best := checkpoint.best:
        print(f"Best: {best[1]:.4f} after step {best[0]:,}; these weights are kept: --step best uses them.")


def _step(text: str) -> int | str:
    if text != "best" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no step: give a number, or best")
    return text if text == "best" else int(text)
