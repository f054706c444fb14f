"""First story: seconds from pressing Train with the page's defaults to the first sample that reads as a story.

The run is the one that the page starts, through the same door (`service/runs.run_training`), its evaluations, samples
and judging included; browser and network are not. A sample is readable when every sentence of it is one of the
language, the last one being cut short; it is right when the sentences also agree with each other about who has what.
The end counts, too: how far the last validation loss is above the floor.
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

STORIES = LANGUAGES["stories"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--size", default="small", choices=SIZES)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings of the form to change")
    parser.add_argument("--only-first", action="store_true", help="stop each run at its first readable sample")
    parser.add_argument("--samples", action="store_true", help="show every sample")


def run(options: argparse.Namespace) -> None:
    """Measure and print the table."""
    changes = {name: float(value) for name, value in (each.split("=") for each in options.set)}
    print("| seed | first point, s | first sample | readable | at step | right | end | above the floor, nats |")
    print("|---|---|---|---|---|---|---|---|")
    firsts = []
    for seed in range(options.seeds):
        found = one(options, changes | {"seed": seed})
        firsts.append(found.get("readable", float("inf")))
        shown = [f"{found[name]:.1f}" if name in found else "–" for name in ("point", "sample", "readable")]
        shown += [found.get("at", "–"), f"{found['right']:.1f}" if "right" in found else "–", f"{found['end']:.1f}"]
        shown += [f"{found['over']:+.4f}" if "over" in found else ""]
        print(f"| {seed} | {' | '.join(map(str, shown))} |", flush=True)
    print(f"\nReadable after {statistics.median(firsts):.1f} s (median), {max(firsts):.1f} s at the latest.")


def one(options: argparse.Namespace, changes: dict[str, float]) -> dict[str, float]:
    """What happened in one run, each for the first time: seconds by name."""
    form = base_values(options.size, "stories", LOCAL) | changes
    form |= {"source": "stories", "size": options.size, "prompt": STORIES.prompt}
    spec = run_spec(form, Source("stories"), LOCAL)
    found: dict[str, float] = {}
    floor = loss = None
    began = time.perf_counter()
    for event in run_training(spec, LOCAL, should_stop=lambda: options.only_first and "readable" in found):
        now = time.perf_counter() - began
        if isinstance(event, Evaluated):
            found.setdefault("point", now)
            loss = event.val_loss
        elif isinstance(event, Laddered):
            floor = event.baselines.floor
        elif isinstance(event, Sampled) and event.step:
            found.setdefault("sample", now)
            reads = readable(event.prompt + event.text)
            if reads and "readable" not in found:
                found["readable"], found["at"] = now, event.step
            if judge(STORIES, event.text, event.prompt).fault is None:
                found.setdefault("right", now)
            if options.samples:
                print(f"{now:.1f} s, step {event.step}, {'readable' if reads else 'not yet'}: {event.text!r}")
    found["end"] = time.perf_counter() - began
    if floor is not None and loss is not None and not options.only_first:
        found["over"] = loss - floor
    return found


def readable(text: str) -> bool:
    """Whether a text is made of the language's sentences, one after the other, the last one cut short."""
    sentences, ends = set(STORIES.graph.texts), {0}
    while ends:
        place = ends.pop()
        if any(sentence.startswith(text[place:]) for sentence in sentences):
            return True
        ends |= {place + len(sentence) for sentence in sentences if text.startswith(sentence, place)}
    return False
