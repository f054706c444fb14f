"""Evaluate a model on a text: its loss, its perplexity, and its bits per byte."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..data import read_file
from ..processes import threads_for
from ..storage import Checkpoint
from ..storage.json_files import finite
from ..studies.scores import Score, score
from ..training import TrainConfig
from ..training.proof import device_for
from ..words.scores import score_result
from . import checkpoints
from .plan import MAX_TEXT_BYTES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `evaluate`."""
    checkpoints.add_arguments(parser)
    parser.add_argument("--text", metavar="FILE", required=True, help="a UTF-8 text file to predict")


def run(options: argparse.Namespace) -> int:
    """Print the model's score on the text."""
    text, checkpoint = read_file(options.text, max_bytes=MAX_TEXT_BYTES), checkpoints.opened(options)
    found = scored(checkpoint, text)
    if options.json:
        print(json.dumps(finite({"name": checkpoint.name, **facts_of(found)})))
    else:
        print(score_result(found, checkpoint.name, Path(options.text).name))
    return 0


def scored(checkpoint: Checkpoint, text: str) -> Score:
    """Score a model on a text, on the device where it would be trained."""
    model = checkpoint.model.to(device_for(TrainConfig(), checkpoint.config)[0])
    with threads_for(checkpoint.config.numbers_in_step(1)):
        return score(model, checkpoint.tokenizer, text)


def facts_of(found: Score) -> dict[str, float]:
    """The score's values, for programs."""
    facts = {name: getattr(found, name) for name in ("loss", "perplexity", "bits_per_byte", "margin", "unknown")}
    return facts | {"tokens": sum(found.tokens), "bytes": sum(found.bytes), "parts": len(found.total)}
