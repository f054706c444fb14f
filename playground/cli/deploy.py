"""Deploy this project to a Hugging Face Space: make or update it, choose its hardware, wait until it runs."""

from __future__ import annotations

import argparse
import dataclasses
import json

from ..storage.spaces import FREE, HARDWARE, Deployment, compare, deploy
from ..words import shell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `deploy`."""
    parser.add_argument("space", metavar="USER/SPACE", help="the Space, made if there is none")
    parser.add_argument("--hardware", metavar="NAME", default=FREE, help=f"{', '.join(HARDWARE)} (default: {FREE})")
    parser.add_argument("--sleep", type=int, default=15, metavar="MINUTES", help="paid hardware sleeps after (15)")
    parser.add_argument("--private", action="store_true", help="make a new Space private")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, file by file; change nothing")
    parser.add_argument("--no-wait", action="store_true", help="do not wait until it runs")
    parser.add_argument("--json", action="store_true", help="JSON on standard output: a plan, or one event per line")


def run(options: argparse.Namespace) -> int:
    """List the changes, and unless it is a dry run, make them with the stored login (hf auth login, or HF_TOKEN)."""
    deployment = compare(
        options.space,
        hardware=options.hardware,
        sleep_minutes=options.sleep,
        private=options.private,
        offline=options.dry_run,
    )
    if options.dry_run:
        lines = [json.dumps(as_dict(deployment))] if options.json else shell.deployment_lines(deployment)
        print("\n".join(lines))
        return 0
    if not options.json:
        print("\n".join(shell.deployment_notes(deployment)) or f"{len(deployment.sent)} files to send.", flush=True)
    for event in deploy(deployment, wait_seconds=0 if options.no_wait else 1800):
        sentence = shell.deployed(event, deployment)
        print(json.dumps(dataclasses.asdict(event) | {"message": sentence}) if options.json else sentence, flush=True)
    if options.no_wait and not options.json:
        print(event.address)
    return 0


def as_dict(deployment: Deployment) -> dict:
    """A deployment for programs."""
    names = ("space_id", "hardware", "sleep_seconds", "private", "creates")
    changes = [dataclasses.asdict(change) for change in deployment.changes]
    facts = {name: getattr(deployment, name) for name in names}
    return {**facts, "changes": changes, "notes": shell.deployment_notes(deployment)}
