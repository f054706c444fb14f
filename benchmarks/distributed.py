"""Several processes: tokens per second of one process with 1 and 2 threads, and of two processes with 1 thread each.

The same global batch everywhere. The ways take turns, so that a machine whose speed drifts slows all; a row's figure is
the median over the rounds of each round's own ratio to one process with one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys

from playground.data import corpus_from_language
from playground.model import PRESETS, Transformer
from playground.training import RECIPES, Stepped, train, workers

WAYS = {  # name → (processes, threads of each)
    "one process, 1 thread": (1, 1),
    "one process, 2 threads": (1, 2),
    "two processes, 1 thread each": (2, 1),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--preset", default="small", help="the model (default: small)")
    parser.add_argument("--batch", type=int, default=32, help="windows per step, of all processes together")
    parser.add_argument("--optimizer", default="muon", choices=("muon", "adamw"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40, help="per round")


def run(options: argparse.Namespace) -> None:
    """Measure and print the table."""
    ms: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(options.rounds):
        for name, (processes, threads) in WAYS.items():
            ms[name].append(measured(options, processes, threads))
    config = PRESETS[options.preset]
    tokens = options.batch * config.context_length
    first = ms[next(iter(WAYS))]
    print(f"\n{options.preset}: {config.n_parameters:,} parameters, {tokens:,} tokens a step, {options.optimizer}\n")
    print("| way | ms per step | tokens/s | against one thread |")
    print("|---|---|---|---|")
    for name, times in ms.items():
        ratio = statistics.median(a / b for a, b in zip(first, times))
        middle = statistics.median(times)
        print(f"| {name} | {middle:.1f} | {1000 * tokens / middle:,.0f} | {ratio:.2f}× |")


def measured(options: argparse.Namespace, processes: int, threads: int) -> float:
    """Median milliseconds per step of processes of their own."""
    command = [sys.executable, "-m"]
    if processes > 1:
        command += ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m"]
    command += ["benchmarks.distributed", options.preset, str(options.batch), options.optimizer, str(options.steps)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def one_process(preset: str, batch: str, optimizer: str, steps: str) -> None:
    """Train as torchrun, or nobody, asks; the first process prints its median milliseconds per step."""
    corpus = corpus_from_language("stories", n_characters=100_000, n_validation=10_000)
    model = Transformer(PRESETS[preset].replace(vocab_size=corpus.vocab_size))
    warm = 5
    config = RECIPES[preset].replace(
        steps=int(steps) + warm, batch_size=int(batch), optimizer=optimizer, eval_every=0, eval_windows=8, device="cpu"
    )
    with workers("cpu") as together:
        seconds = [e.seconds for e in train(model, corpus, config, workers=together) if isinstance(e, Stepped)]
    if together.first:
        print(json.dumps(1000 * statistics.median(b - a for a, b in zip(seconds[warm:], seconds[warm + 1 :]))))


if __name__ == "__main__":
    one_process(*sys.argv[1:])
