"""Import a GPT-2, Llama, Mixtral or Qwen3, from a folder or zip that Transformers saved, as a checkpoint."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..storage import Checkpoint
from ..storage.json_files import finite
from ..storage.opening import open_model
from .checkpoints import new_folder, save


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `import`."""
    parser.add_argument("source", metavar="DIR", help="a folder of Transformers, or a zip; `pull` reads from the Hub")
    parser.add_argument("--out", metavar="DIR", required=True, help="the checkpoint folder to write")


def run(options: argparse.Namespace) -> int:
    """Read the model, write the checkpoint, and describe it."""
    out = new_folder(options.out)
    if not Path(options.source).exists():
        raise ValueError(f"{options.source} does not exist. To read a model from the Hub, use pull")
    return written(out, open_model(options.source), as_json=options.json)


def written(out: Path, checkpoint: Checkpoint, *, as_json: bool) -> int:
    """Write a model from elsewhere, and describe it."""
    save(out, checkpoint)
    about, loss, parameters = checkpoint.about, checkpoint.history.val_loss, checkpoint.config.n_parameters
    if as_json:
        facts = {"folder": str(out), "name": checkpoint.name, "parameters": parameters, "val_loss": loss}
        origin = {"family": "imported_from", "repo_id": "pulled_from", "revision": "revision"}
        print(json.dumps(finite(facts | {name: about.get(note) for name, note in origin.items()})))
        return 0
    family = about.get("imported_from") or "a model of this project"
    quality = f", validation loss {loss:.4f}" if loss is not None else ""
    context = f"context {checkpoint.config.context_length:,} tokens"
    print(f"{checkpoint.name}: {family}, {parameters:,} parameters, {context}{quality}.")
    print(f"Saved to {out}. Talk to it: python -m playground generate {out} --prompt …")
    return 0
