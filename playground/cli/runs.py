"""List, open, rename and delete the page's models, which are kept in the data folder."""

from __future__ import annotations

import argparse
import json

from ..service.data_folder import BusyError, DataFolder, data_folder
from ..words.shell import kept_model_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `runs`."""
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--open", metavar="ID", help="print a model's folder, which other commands take as DIR")
    does.add_argument("--rename", nargs=2, metavar=("ID", "NAME"), help="call a model something else")
    does.add_argument("--delete", metavar="ID", help="remove a model with its run and its files")


def run(options: argparse.Namespace) -> int:
    """List the models, or do what was asked. An ID may be cut short if only one model begins with it."""
    writes = bool(options.rename or options.delete)
    try:
        data = DataFolder(data_folder(), reading=not writes)
    except BusyError as problem:
        raise ValueError("the page is running: rename and delete its models there, or stop it first") from problem
    begins = options.open or options.delete or (options.rename or [""])[0]
    models = [model for model in data.models() if model["id"].startswith(begins)]
    if begins and len(models) != 1:
        raise ValueError(f"{len(models) or 'no'} models begin with {begins!r}: see python -m playground runs")
    if options.rename:
        models[0]["name"] = data.rename(models[0]["id"], options.rename[1])
    elif options.delete:
        data.delete(models[0]["id"])
    if data.problem:
        raise OSError(f"nothing was changed: {data.problem}")
    if options.json:
        print(json.dumps(models[0] if begins else models))
    elif options.open:
        print(models[0]["folder"])
    else:
        print("\n".join(map(kept_model_line, models)) or f"The page has kept no models in {data.path} yet.")
    return 0
