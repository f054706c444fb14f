"""python -m benchmarks NAME: each prints a Markdown table of ratios measured in one run."""

from __future__ import annotations

import argparse
import importlib

from playground.processes import tune_process

NAMES = (
    "training", "lengths", "time_to_loss", "decoding", "page", "crowd", "moe", "inspection", "removal",
    "first_story", "restart", "influence",
)  # fmt: skip


def main() -> None:
    """Parse the name and its options, run, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name in NAMES:
        try:
            module = importlib.import_module(f"benchmarks.{name}")
        except ModuleNotFoundError as problem:
            if problem.name != f"benchmarks.{name}":
                raise
            continue
        command = commands.add_parser(name.replace("_", "-"), help=module.__doc__.splitlines()[0])
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    options = parser.parse_args()
    tune_process()
    options.run(options)


if __name__ == "__main__":
    main()
