"""Compare two models on a text, in bits per byte, so that they may use different tokens."""

from __future__ import annotations

import argparse
import json

from ..data import read_file
from ..storage.json_files import finite
from ..storage.opening import open_model
from ..words.scores import comparison_result
from .evaluate import facts_of, scored
from .plan import MAX_TEXT_BYTES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compare`."""
    parser.add_argument("folders", nargs=2, metavar="DIR", help="a checkpoint folder, one of Transformers, or a zip")
    parser.add_argument("--text", metavar="FILE", required=True, help="a UTF-8 text file to predict")


def run(options: argparse.Namespace) -> int:
    """Print which of the two predicts the text better, and by how much."""
    text, names, scores = read_file(options.text, max_bytes=MAX_TEXT_BYTES), [], []
    for folder in options.folders:  # one after the other: two large models need not fit into memory at once
        checkpoint = open_model(folder)
        names.append(checkpoint.name)
        scores.append(scored(checkpoint, text))
        del checkpoint
    if names[0] == names[1]:
        names = list(options.folders)
    if options.json:
        difference, margin = scores[0].minus(scores[1])
        models = [{"name": name, **facts_of(found)} for name, found in zip(names, scores)]
        print(json.dumps(finite({"models": models, "difference": difference, "margin": margin})))
    else:
        print(comparison_result(*scores, tuple(names)))
    return 0
