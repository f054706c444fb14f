"""Export a checkpoint as a folder that Hugging Face Transformers opens, and compare the two."""

from __future__ import annotations

import argparse
import dataclasses
import json

from ..storage.transformers_export import export
from ..storage.transformers_families import family_for
from ..words.card import exported_card, parity_in_words
from . import checkpoints


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `export`."""
    checkpoints.add_arguments(parser)
    parser.add_argument("--out", metavar="DIR", required=True, help="the folder to write")
    parser.add_argument("--prompt", help="what both continue greedily (default: the run's own)")


def run(options: argparse.Namespace) -> int:
    """Write the folder, read it back, and print how closely the two agree."""
    checkpoint = checkpoints.opened(options)
    parity = export(checkpoint, options.out, prompt=options.prompt, card=exported_card)
    family = family_for(checkpoint.config).name
    if options.json:
        print(json.dumps({"folder": options.out, "family": family, **dataclasses.asdict(parity)}))
    else:
        print(f"Written to {options.out} as {family}; {parity_in_words(parity)}.")
    return 0
