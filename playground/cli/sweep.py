"""train --sweep: the same run with several values of one setting, and several seeds of each."""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

from ..processes import threads_for
from ..storage import Checkpoint
from ..storage.json_files import finite
from ..studies.sweep import SEEDS, Sweep, add_result, best_of, run_sweep
from ..training import History
from ..words.sweep import sweep_lines
from .checkpoints import save
from .plan import fresh
from .settings import parse_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what to try."""
    parser.add_argument("--sweep", metavar="NAME=A,B,…", help="try these values of a setting, and save the best model")
    parser.add_argument("--seeds", type=int, metavar="N", help=f"with --sweep: seeds of each value (default: {SEEDS})")


def asked(options: argparse.Namespace) -> Sweep:
    """The sweep to run. Raises ValueError with a sentence."""
    name, equals, values = options.sweep.partition("=")
    if not equals:
        raise ValueError(f"--sweep needs NAME=A,B,…, not {options.sweep!r}")
    if options.resume or options.on == "hf-jobs":
        raise ValueError("a sweep is a new one, on this machine: leave --resume and --on out")
    if name in {pair.partition("=")[0] for pair in options.set}:
        raise ValueError(f"--set and --sweep both give {name}: leave one of the two out")
    found = [parse_settings([f"{name}={value}"]) for value in values.split(",")]
    return Sweep(
        name,
        tuple((model | training)[name] for model, training in found),
        SEEDS if options.seeds is None else options.seeds,
    )


def run(options: argparse.Namespace, should_stop: Callable[[], bool]) -> int:
    """Train all runs, print the table, and save the best value's first model. Returns 130 if interrupted."""
    sweep, out = asked(options), Path(options.out)
    plan = fresh(options)
    shape, config, rows, models = plan.model.config, plan.config.replace(snapshots=0, sample_every=0), [], {}
    for value in sweep.values:  # report a value that does not fit before the first run
        sweep.configs(shape, config, value)
    make = {"make": lambda shape, seed: copy.deepcopy(plan.model)} if options.parent else {}
    with threads_for(shape.numbers_in_step(config.batch_size)):
        for tried in run_sweep(sweep, shape, config, plan.corpus, should_stop=should_stop, **make):
            if tried.seed == config.seed:
                models.setdefault(tried.value, (tried.model, History()))[1].add(tried.event)
            before, rows = rows, add_result(rows, tried)
            if rows != before:
                told = {"event": "tried", "value": tried.value, "seed": tried.seed, "val_loss": rows[-1].losses[-1]}
                words = f"{sweep.name} {tried.value}  seed {tried.seed}  validation {told['val_loss']:.4f}"
                print(json.dumps(finite(told)) if options.json else words, flush=True)
                others = models.keys() - {tried.value, best_of(rows) and best_of(rows).value}
                models = {value: models[value] for value in models if value not in others}
    table = [dataclasses.asdict(row) | {"mean": row.mean, "margin": row.margin} for row in rows]
    if best := best_of(rows):
        model, history = models[best.value]
        training = sweep.configs(shape, config, best.value)[1]
        about = plan.about | {"training": training.to_dict(), "sweep": {"setting": sweep.name, "rows": table}}
        save(out, Checkpoint(model, plan.corpus.tokenizer, history, out.name, about))
    if options.json:
        print(json.dumps(finite({"event": "swept", "setting": sweep.name, "rows": table})))
    else:
        print("\n".join(sweep_lines(rows, sweep.name)))
        print(f"Its model is saved to {out}." if best else "Nothing was saved.")
    return 130 if should_stop() else 0
