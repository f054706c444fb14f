"""Deploy this project to a Hugging Face Space: make or update it, and choose its hardware."""

from __future__ import annotations

import argparse
import dataclasses
import json

from ..storage.spaces import FREE, HARDWARE, address_of, compare, deploy
from ..words.shell import deployment_lines, deployment_note


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `deploy`."""
    parser.add_argument("space", metavar="USER/SPACE", help="the Space, made if there is none")
    parser.add_argument("--hardware", metavar="NAME", default=FREE, help=f"{', '.join(HARDWARE)} (default: {FREE})")
    parser.add_argument("--sleep", type=int, default=15, metavar="MINUTES", help="paid hardware sleeps after (15)")
    parser.add_argument("--private", action="store_true", help="make a new Space private")
    parser.add_argument("--dry-run", action="store_true", help="list what would change, file by file; change nothing")


def run(options: argparse.Namespace) -> int:
    """List the changes, and unless it is a dry run, make them with the stored login (hf auth login, or HF_TOKEN)."""
    found = compare(options.space, hardware=options.hardware, sleep_minutes=options.sleep)
    if not options.json:
        print("\n".join(deployment_lines(found) if options.dry_run else deployment_note(found)), flush=True)
    commit = None if options.dry_run else deploy(found, private=options.private)
    address = address_of(found.space_id)
    if options.json:
        facts = {name: value for name, value in vars(found).items() if name != "files"}
        changes = [dataclasses.asdict(change) for change in found.changes]
        print(json.dumps({**facts, "changes": changes, "commit": commit, "address": address}))
    elif not options.dry_run:
        print(f"It starts in a few minutes: {address} (its log: {address}?logs=build)")
    return 0
