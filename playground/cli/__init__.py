"""The shell: parse the command line, run one command, turn every error a user can cause into one sentence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

BAD_ARGUMENTS = 2
INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """argparse whose complaints are one line without the usage block."""

    def error(self, message: str):
        self.exit(BAD_ARGUMENTS, f"{self.prog}: {message}\n")


def _complain(sentence: str) -> None:
    """Say it on standard error; of several processes on one machine, only the first does."""
    from ..training.distributed import speaks

    if speaks():
        print(sentence, file=sys.stderr)


def build_parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser = _Parser(prog="python -m playground", description="Train tiny transformers and talk to them.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser, metavar="COMMAND")
    from . import deploy, doctor, export, generate, import_, info, precision, pull, push, train

    for module in (train, generate, info, precision, export, import_, push, pull, deploy, doctor):
        name = module.__name__.rsplit(".", 1)[1].rstrip("_")
        command = commands.add_parser(name, help=module.__doc__.splitlines()[0], description=module.__doc__)
        module.add_arguments(command)
        command.add_argument("--json", action="store_true", help="JSON on standard output: an object, or one per event")
        command.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code. Errors a user can mend are one sentence on standard error."""
    options = build_parser().parse_args(arguments)
    from safetensors import SafetensorError

    from ..processes import tune_process
    from .progress import print_no_more

    tune_process()
    try:
        return options.run(options) or 0
    except ValueError as problem:
        _complain(f"python -m playground {options.command}: {problem}")
        return BAD_ARGUMENTS
    except OSError as problem:
        if isinstance(problem, BrokenPipeError):  # whoever read our output has seen enough
            print_no_more()
            return 0
        where = f"{problem.filename}: " if problem.filename else ""
        _complain(f"python -m playground {options.command}: {where}{problem.strerror or problem}")
        return BAD_ARGUMENTS
    except SafetensorError as problem:  # a full disk, among others
        _complain(f"python -m playground {options.command}: a file could not be written: {problem}")
        return BAD_ARGUMENTS
    except (MemoryError, RuntimeError) as problem:
        if isinstance(problem, RuntimeError) and "allocate" not in str(problem):
            raise
        _complain(f"python -m playground {options.command}: this machine has too little memory for that: choose less")
        return BAD_ARGUMENTS
    except KeyboardInterrupt:
        return INTERRUPTED
