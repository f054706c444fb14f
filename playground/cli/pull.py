"""Pull a model from the Hub into a checkpoint folder: one of this project, or a GPT-2, Llama, Mixtral or Qwen3."""

from __future__ import annotations

import argparse

from ..storage.hub import pull
from .checkpoints import new_folder
from .import_ import written


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pull`."""
    parser.add_argument("repo", metavar="USER/NAME", help="a model repository")
    parser.add_argument("--out", metavar="DIR", required=True, help="the checkpoint folder to write")
    parser.add_argument("--revision", metavar="NAME", help="a branch, tag or commit (default: main)")


def run(options: argparse.Namespace) -> int:
    """Pull a model, check it, write it, and describe it."""
    out = new_folder(options.out)
    return written(out, pull(options.repo, revision=options.revision), as_json=options.json)
