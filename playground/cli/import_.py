"""Import a GPT-2, Llama, Mixtral or Qwen3, from a folder that Transformers saved or from the Hub, as a checkpoint."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..storage import Checkpoint, CheckpointError, write_checkpoint
from ..storage.hub import HubError, pull
from ..storage.opening import open_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `import`."""
    parser.add_argument(
        "source", metavar="DIR|USER/NAME", help="a folder, a zip, or a public model such as openai-community/gpt2"
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="the checkpoint folder to write")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def run(options: argparse.Namespace) -> int:
    """Read it, write the checkpoint, and say what came."""
    out = new_folder(options.out)
    checkpoint = open_model(options.source) if Path(options.source).exists() else _pulled(options.source)
    write_checkpoint(out, checkpoint)
    family = checkpoint.about.get("imported_from")
    if options.json:
        print(json.dumps({"folder": str(out), "family": family, "parameters": checkpoint.config.n_parameters}))
        return 0
    print(f"{checkpoint.name}: {family or 'a model of this project'}, {checkpoint.config.n_parameters:,} parameters.")
    print(f"Saved to {out}. Talk to it: python -m playground generate {out} --prompt …")
    return 0


def new_folder(name: str) -> Path:
    """A folder that nothing is in yet. Raises CheckpointError where there is something."""
    out = Path(name)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CheckpointError(f"{out} exists already: choose another --out")
    return out


def _pulled(name: str) -> Checkpoint:
    """From the Hub; a name without an owner, or with more than one slash, was more likely meant as a folder."""
    try:
        return pull(name)
    except HubError as problem:
        if name.count("/") == 1 and not name.startswith((".", "/", "~")):
            raise
        raise CheckpointError(f"there is no folder {name} here, and as a model of the Hub: {problem}") from problem
