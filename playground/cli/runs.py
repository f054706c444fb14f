"""List the models that the page keeps in its data folder, each with the folder that other commands take as DIR."""

from __future__ import annotations

import argparse
import json

from ..service.data_folder import DataFolder, data_folder
from ..words.shell import kept_model_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no options: the page renames and deletes models."""


def run(options: argparse.Namespace) -> int:
    """Print a line for each model."""
    data = DataFolder(data_folder(), reading=True)
    models = data.models()
    lines = "\n".join(map(kept_model_line, models)) or f"The page has kept no models in {data.path} yet."
    print(json.dumps(models) if options.json else lines)
    return 0
