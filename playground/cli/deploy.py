"""Deploy this project to a Hugging Face Space: make or update it, choose its hardware, wait until it runs."""

from __future__ import annotations

import argparse
import dataclasses
import json

from ..storage.spaces import FREE, HARDWARE, Plan, deploy, make_plan


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
    """Plan, and unless it is a dry run, do it with the stored login (hf auth login, or HF_TOKEN)."""
    plan = make_plan(
        options.space,
        hardware=options.hardware,
        sleep_minutes=options.sleep,
        private=options.private,
        offline=options.dry_run,
    )
    if options.dry_run:
        print(json.dumps(as_dict(plan)) if options.json else "\n".join(in_lines(plan)))
        return 0
    if not options.json:
        print("\n".join(plan.notes) or f"{len(plan.sent)} files to send.", flush=True)
    for event in deploy(plan, wait_seconds=0 if options.no_wait else 1800):
        print(json.dumps(dataclasses.asdict(event)) if options.json else event.message, flush=True)
    if options.no_wait and not options.json:
        print(event.address)
    return 0


def in_lines(plan: Plan) -> list[str]:
    """A plan for people."""
    begin = {True: "Would make the Space", False: "Would update the Space", None: "Would make or update the Space"}
    sleeps = f", asleep after {plan.sleep_seconds // 60} idle minutes" if plan.sleep_seconds else ""
    lines = [f"{begin[plan.creates]} {plan.space_id} on {plan.hardware}{sleeps}:"]
    lines += [f"  {change.action:<7}{change.size:>10,}  {change.path}" for change in plan.changes]
    size = sum(change.size for change in plan.sent)
    lines.append(
        f"{len(plan.sent)} of {len(plan.changes)} files, {size / 1e6:.1f} MB, would be sent. Nothing was done."
    )
    return [*lines, *plan.notes]


def as_dict(plan: Plan) -> dict:
    """A plan for programs: everything but the files' contents."""
    facts = {name: getattr(plan, name) for name in ("space_id", "hardware", "sleep_seconds", "private", "creates")}
    changes = [{"path": c.path, "action": c.action, "size": c.size} for c in plan.changes]
    return {**facts, "changes": changes, "notes": list(plan.notes)}
