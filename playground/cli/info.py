"""Say what a checkpoint folder holds: shape, parameters, cost, and how good it is."""

from __future__ import annotations

import argparse
import json
import math

from ..data import LANGUAGES, Baselines
from ..data.judging import Share
from ..model import GPT2_SMALL_PARAMETERS
from ..storage.json_files import finite
from ..storage.opening import open_model
from ..training import History
from ..training.states import DIVERGED, UNMASKED, state_of
from ..words import states
from ..words.baselines import how_good, size_of_loss
from ..words.card import shape_in_words, share_of_gpt2
from ..words.excess_loss import excess_clauses
from ..words.judging import right_of
from ..words.training import in_steps, settings_changed
from .checkpoints import tell_best


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `info`."""
    parser.add_argument("folder", metavar="DIR", help="a checkpoint folder, one of Transformers, or a zip")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def run(options: argparse.Namespace) -> int:
    """Print what is known about a checkpoint."""
    checkpoint = open_model(options.folder)
    config, history, about = checkpoint.config, checkpoint.history, checkpoint.about
    baselines = about.get("ladder")
    state = state_of(history, causal=config.causal, baselines=Baselines.from_dict(baselines) if baselines else None)
    facts = {
        "name": checkpoint.name,
        "parameters": config.n_parameters,
        "active_parameters": config.n_active_parameters,
        "percent_of_gpt2_small": 100 * config.n_parameters / GPT2_SMALL_PARAMETERS,
        "parameters_by_component": {k: v for k, v in config.parameters_by_component().items() if v},
        "flops_per_token": config.flops_per_token(),
        "training_flops_per_token": config.flops_per_token(training=True),
        "cache_bytes_of_full_context": config.cache_bytes(),
        "tokenizer": {"kind": checkpoint.tokenizer.kind, "vocab_size": checkpoint.tokenizer.vocab_size},
        "steps": history.last_step,
        "val_loss": history.val_loss,
        "best": history.best
        and {"step": history.best[0], "val_loss": history.best[1], "kept": checkpoint.best is not None},
        "state": {"kind": state.kind, "since": state.since, "words": states.in_words(state)},
        "changes": history.changes,
        "ladder": baselines,
        "judged": history.judged,
        "config": config.to_dict(),
    }
    if options.json:
        print(json.dumps(finite(facts)))
        return 0
    print(f"{facts['name']}: {config.n_parameters:,} parameters, {share_of_gpt2(config.n_parameters)} of GPT-2 small")
    for component, count in facts["parameters_by_component"].items():
        print(f"  {component:<20} {count:>12,}  {100 * count / config.n_parameters:5.1f} %")
    print(f"{shape_in_words(config)}; {checkpoint.tokenizer.vocab_size:,} {checkpoint.tokenizer.name}")
    print(
        f"{facts['flops_per_token']:,} FLOPs per token, three times that in training; "
        f"{facts['cache_bytes_of_full_context']:,} bytes of cache at full context"
    )
    if history.val_loss is not None:
        at = in_steps(int(history.evaluations["step"][-1]))
        print(f"Validation loss {history.val_loss:.4f} after {at}.", end=" ")
        print("" if state.kind in (UNMASKED, DIVERGED) else _standing(baselines, history))
        print(states.in_words(state))
        share = [record for record in history.judged if record["of"]][-1:]
        if share and about.get("language") in LANGUAGES:
            found = Share(share[0]["right"], share[0]["of"])
            print(f"{right_of(LANGUAGES[about['language']], found).capitalize()}.")
    tell_best(checkpoint)
    for change in history.changes:
        print(settings_changed(change["step"], change["settings"]))
    return 0


def _standing(values: dict | None, history: History) -> str:
    if not values:
        return ""
    baselines, loss = Baselines.from_dict(values), history.val_loss
    left = next((record["left"] for record in reversed(history.judged) if record["left"]), "")
    words = how_good(baselines, loss, excess_clauses(left).replace("*", ""))
    if not math.isfinite(loss):
        return words
    return f"{words} {size_of_loss(baselines, loss)}"
