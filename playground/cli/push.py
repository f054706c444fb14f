"""Push a checkpoint folder to the Hub as a model repository with a card and the curve's picture."""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from pathlib import Path

from ..service.hub_page import hub_page
from ..storage.hub import check_name, push, write_repository
from . import checkpoints


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `push`."""
    checkpoints.add_arguments(parser)
    parser.add_argument("repo", metavar="USER/NAME", help="the repository; NAME alone for one of your own")
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument("--dry-run", action="store_true", help="list what would be uploaded; nothing is sent")


def run(options: argparse.Namespace) -> int:
    """Push with the stored login (hf auth login, or HF_TOKEN) and print the address."""
    check_name(options.repo)
    checkpoint = checkpoints.opened(options)
    if options.dry_run:
        with tempfile.TemporaryDirectory() as temporary:
            folder = write_repository(checkpoint, Path(temporary) / "model", options.repo, hub_page)
            files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
        done = {"repo_id": options.repo, "url": None, "created": None, "files": files}
    else:
        done = dataclasses.asdict(push(checkpoint, options.repo, hub_page, private=options.private))
    if options.json:
        print(json.dumps(done))
        return 0
    for name, size in done["files"].items():
        print(f"  {size:>12,}  {name}")
    if options.dry_run:
        print(f"Would be pushed to {options.repo}; nothing was sent.")
    else:
        print(f"{'Made' if done['created'] else 'Updated'} {done['url']}")
    return 0
