"""The shell: parse the command line, run one command, and turn every error that a user can cause into one sentence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

BAD_ARGUMENTS = 2
INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """An argparse parser whose complaints are one line, without the usage block."""

    def error(self, message: str):
        self.exit(BAD_ARGUMENTS, f"{self.prog}: {message}\n")


def _refused(options: argparse.Namespace, why: str) -> int:
    print(f"python -m playground {options.command}: {why}", file=sys.stderr)
    return BAD_ARGUMENTS


def build_parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser = _Parser(prog="python -m playground", description="Train tiny transformers and talk to them.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser, metavar="COMMAND")
    from . import compare, deploy, evaluate, export, generate, import_, info, pull, push, runs, train

    for module in (train, generate, evaluate, compare, info, runs, export, import_, push, pull, deploy):
        name = module.__name__.rsplit(".", 1)[1].rstrip("_")
        command = commands.add_parser(name, help=module.__doc__.splitlines()[0], description=module.__doc__)
        module.add_arguments(command)
        command.add_argument("--json", action="store_true", help="JSON on standard output: an object, or one per event")
        command.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code. Errors that a user can fix are one sentence on standard error."""
    options = build_parser().parse_args(arguments)
    from safetensors import SafetensorError

    from ..processes import tune_process
    from .progress import print_no_more

    tune_process()
    try:
        return options.run(options) or 0
    except ValueError as problem:
        return _refused(options, str(problem))
    except OSError as problem:
        if isinstance(problem, BrokenPipeError):  # the reader of our output has closed it
            print_no_more()
            return 0
        where = f"{problem.filename}: " if problem.filename else ""
        return _refused(options, f"{where}{problem.strerror or problem}")
    except SafetensorError as problem:  # a full disk, for example
        return _refused(options, f"a file could not be written: {problem}")
    except (MemoryError, RuntimeError) as problem:
        if isinstance(problem, RuntimeError) and "allocate" not in str(problem):
            raise
        return _refused(options, "this machine has too little memory for that: choose less")
    except KeyboardInterrupt:
        return INTERRUPTED
