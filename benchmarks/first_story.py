"""First story: seconds from pressing Train with the page's defaults to the first sample without a mistake.

The run is the one that the page starts, through the same door (`service/runs.run_training`), its evaluations, samples
and judging included; browser and network are not. A sample counts when the language's own grammar finds no word in it
that cannot stand where it does. The end counts, too: how far the last validation loss is above the floor.
"""

from __future__ import annotations

import argparse
import statistics
import time

from playground.data import LANGUAGES
from playground.data.judging import judge
from playground.service.limits import LOCAL
from playground.service.runs import Laddered, Source, run_training
from playground.training import Evaluated, Sampled
from playground.ui.forms.run import SIZES, base_values, run_spec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--language", default="stories", choices=LANGUAGES)
    parser.add_argument("--size", default="small", choices=SIZES)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings of the form to change")
    parser.add_argument("--only-first", action="store_true", help="stop each run at its first story")
    parser.add_argument("--samples", action="store_true", help="show every sample")


def run(options: argparse.Namespace) -> None:
    """Measure and print the table."""
    changes = {name: float(value) for name, value in (each.split("=") for each in options.set)}
    print("| seed | first point, s | first sample, s | first story, s | at step | end, s | above the floor |")
    print("|---|---|---|---|---|---|---|")
    firsts = []
    for seed in range(options.seeds):
        found = one(options, changes | {"seed": seed})
        firsts.append(found["story"] or float("inf"))
        over = "" if found["over"] is None else f"{found['over']:+.4f}"
        times = [f"{found[name]:.1f}" if found[name] else "–" for name in ("point", "sample", "story")]
        print(f"| {seed} | {' | '.join(times)} | {found['at']} | {found['end']:.1f} | {over} |", flush=True)
    print(f"\nFirst story: {statistics.median(firsts):.1f} s (median), {max(firsts):.1f} s (latest).")


def one(options: argparse.Namespace, changes: dict[str, float]) -> dict:
    """What happened when in one run."""
    language = LANGUAGES[options.language]
    form = base_values(options.size, options.language, LOCAL) | changes
    form |= {"source": options.language, "size": options.size, "prompt": language.prompt}
    spec = run_spec(form, Source(options.language), LOCAL)
    found: dict = {"point": 0.0, "sample": 0.0, "story": 0.0, "at": "–", "over": None}
    floor, loss, began = None, None, time.perf_counter()
    events = run_training(spec, LOCAL, should_stop=lambda: bool(options.only_first and found["story"]))
    for event in events:
        now = time.perf_counter() - began
        if isinstance(event, Evaluated):
            found["point"], loss = found["point"] or now, event.val_loss
        elif isinstance(event, Laddered):
            floor = event.ladder.floor
        elif isinstance(event, Sampled) and event.step:
            fault = judge(language, event.text, event.prompt).fault
            found["sample"] = found["sample"] or now
            if fault is None and not found["story"]:
                found["story"], found["at"] = now, event.step
            if options.samples:
                print(f"{now:.1f} s, step {event.step}, {fault and fault.word!r}: {event.text!r}")
    found["end"] = time.perf_counter() - began
    if floor is not None and loss is not None and not options.only_first:
        found["over"] = loss - floor
    return found
