"""Say what a checkpoint folder holds: shape, parameters, cost, and how good it is."""

from __future__ import annotations

import argparse
import json

from ..model import GPT2_SMALL_PARAMETERS
from ..storage.json_files import finite
from ..storage.opening import open_model
from ..training.states import state_of
from ..words import states
from ..words.shell import checkpoint_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `info`."""
    parser.add_argument("folder", metavar="DIR", help="a checkpoint folder, one of Transformers, or a zip")


def run(options: argparse.Namespace) -> int:
    """Print what is known about a checkpoint."""
    checkpoint = open_model(options.folder)
    config, history = checkpoint.config, checkpoint.history
    state = state_of(history, causal=config.causal, baselines=checkpoint.baselines)
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
        "state": {"kind": state.kind, "since": state.since, "words": str(states.result(state))},
        "changes": history.changes,
        "baselines": checkpoint.about.get("ladder"),
        "judged": history.judged,
        "config": config.to_dict(),
    }
    print(json.dumps(finite(facts)) if options.json else "\n".join(checkpoint_lines(checkpoint, state)))
    return 0
