"""train --on hf-jobs: the same command, on Hub hardware that is paid by the minute."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from ..storage.hf_jobs import follow, submit, text_there
from ..storage.hub import pull
from .checkpoints import save

INTERRUPTED = 130
FLAVOR, TIMEOUT = "cpu-basic", "1h"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where to train."""
    parser.add_argument("--on", choices=("here", "hf-jobs"), default="here", help="this machine, or a job on the Hub")
    parser.add_argument("--flavor", metavar="NAME", help=f"a job's hardware, such as a10g-small (default: {FLAVOR})")
    parser.add_argument("--timeout", metavar="TIME", help=f"a job's longest time: 300, 30m, 2h (default: {TIMEOUT})")


def check_unasked(options: argparse.Namespace) -> None:
    """Raise ValueError if a run on this machine is given options that only a job uses."""
    for name in ("flavor", "timeout"):
        if getattr(options, name) is not None:
            raise ValueError(f"--{name} is for a job on the Hub: add --on hf-jobs, or leave it out")


def run(options: argparse.Namespace, check) -> int:
    """Submit the command, follow its log, and write the trained model to --out."""
    out = Path(options.out)
    if options.resume:
        raise ValueError("a job cannot continue a run: --resume works only on this machine")
    if options.parent is not None:
        raise ValueError("a job cannot read a model of yours: --from works only on this machine")
    check()
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", out.name).strip("-.") or "model"
    text = Path(options.text) if options.text else None
    flavor, timeout = options.flavor or FLAVOR, options.timeout or TIMEOUT
    job, model = submit(arguments(options), name, flavor=flavor, timeout=timeout, text=text)
    print(f"Job {job.id} on {flavor}: {job.url}", file=sys.stderr, flush=True)
    try:
        for line in follow(job):
            print(line, flush=True)
    except KeyboardInterrupt:
        print(
            f"\nThe job continues without you: {job.url}. To end it: hf jobs cancel {job.id}. "
            f"Its model will be at {model}: python -m playground pull {model} --out {out}",
            file=sys.stderr,
        )
        return INTERRUPTED
    save(out, pull(model))
    print(f"Saved to {out}, and at {model} on the Hub.", file=sys.stderr)
    return 0


def arguments(options: argparse.Namespace) -> list[str]:
    """The command that the job runs, without --out."""
    again = ["train"]
    if options.text:
        again += ["--text", text_there(Path(options.text))]
    for name in ("preset", "seed", "language", "tokenizer", "vocab_size", "steps", "prompt"):
        value = getattr(options, name)
        if value is not None:
            again += [f"--{name.replace('_', '-')}", str(value)]
    if options.set:
        again += ["--set", *options.set]
    return again + (["--json"] if options.json else [])
