"""A crowd: many visitors of one server at once, against one visitor alone, on this machine only.

Each scene prints its rows of one table, with what is aimed at, and on stderr how far it has come. Every loop is bounded
in count and time, and nothing but 127.0.0.1 is ever asked. All visitors live in one process beside the server's, on the
same processors.
"""

from __future__ import annotations

import argparse

from . import attacks, classroom, flat, fuzz, heads, joining, lecture, opening, training, writing
from .watching import tell

SCENES = {
    scene.__name__.rpartition(".")[2]: scene
    for scene in (opening, writing, heads, training, lecture, classroom, joining, flat, fuzz, attacks)
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("scenes", nargs="*", help=f"which of {', '.join(SCENES)}; all of them if none is named")
    parser.add_argument("--visitors", type=int, default=46)
    parser.add_argument("--rounds", type=int, default=3, help="calls of each visitor, one after the other")
    parser.add_argument("--minutes", type=float, help="how long the lecture (3) and the classroom (5) last")
    parser.add_argument("--browsers", type=int, default=2, help="how many of the classroom's students have one")
    parser.add_argument("--times", type=int, default=200, help="visits, cancelled runs and reloads that leave nothing")
    parser.add_argument("--calls", type=int, default=500, help="raw calls with nonsense in them")


def run(options: argparse.Namespace) -> None:
    """Measure and print the table."""
    assert 1 <= options.visitors <= 100 and 1 <= options.rounds <= 20, "a crowd here has at most 100 visitors"
    assert (options.minutes or 0) <= 30 and options.browsers <= 10, "every loop is bounded"
    assert options.times <= 1000 and options.calls <= 5000, "every loop is bounded"
    unknown = sorted(set(options.scenes) - set(SCENES))
    if unknown:
        raise SystemExit(f"There is no scene {unknown[0]!r}: there are {', '.join(SCENES)}.")
    print("| what | one alone | all at once | ratio | aim |\n|---|---|---|---|---|", flush=True)
    for name in options.scenes or SCENES:
        tell(name)
        for row in SCENES[name].rows(options):
            print("| " + " | ".join((*row, "")[:5]) + " |", flush=True)
