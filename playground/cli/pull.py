"""Pull a model of the Hub into a checkpoint folder: one of this project, or a GPT-2, Llama, Mixtral or Qwen3."""

from __future__ import annotations

import argparse
import json

from ..storage.hub import pull
from .checkpoints import new_folder, save


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pull`."""
    parser.add_argument("repo", metavar="USER/NAME", help="a model repository")
    parser.add_argument("--out", metavar="DIR", required=True, help="the checkpoint folder to write")
    parser.add_argument("--revision", metavar="NAME", help="a branch, tag or commit (default: main)")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def run(options: argparse.Namespace) -> int:
    """Pull, check, write, and say what came."""
    out = new_folder(options.out)
    checkpoint = pull(options.repo, revision=options.revision)
    save(out, checkpoint)
    loss = checkpoint.history.val_loss
    facts = {
        "repo_id": options.repo,
        "revision": checkpoint.about["revision"],
        "folder": str(out),
        "name": checkpoint.name,
        "parameters": checkpoint.config.n_parameters,
        "val_loss": loss,
    }
    if options.json:
        print(json.dumps(facts))
        return 0
    quality = f", validation loss {loss:.4f}" if loss is not None else ""
    print(f"{checkpoint.name}: {checkpoint.config.n_parameters:,} parameters{quality}.")
    print(f"Saved to {out}. Talk to it: python -m playground generate {out} --prompt …")
    return 0
