"""Restart: a server killed at random moments while it trains, compares and writes, and started again each time.

The runs and the comparison have to end with the digits of those that nobody interrupted. Each kill is a SIGKILL of the
process; the next one takes the same data folder.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playground.service.models import Registry

VISITORS = ("anna", "bert")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> None:
    """Measure and print the table; with --serve, be the server in this folder."""
    if options.serve:
        return serve(options.serve)
    with tempfile.TemporaryDirectory() as folder:
        whole, _ = results(Path(folder) / "whole", [])
        moments = random.Random(options.seed)
        broken, killed = results(Path(folder) / "broken", [moments.uniform(0.5, 6.0) for _ in range(options.kills)])
    print(f"{len(killed)} kills, seconds after each start: {', '.join(f'{at:.1f}' for at in killed)}\n")
    print("| what | uninterrupted | killed | the same digits |\n|---|---|---|---|")
    for name, value in whole.items():
        print(f"| {name} | {shown(value)} | {shown(broken[name])} | {'yes' if broken[name] == value else 'NO'} |")


def shown(value: list[float]) -> str:
    """The last of many losses."""
    return f"{value[-1]!r}"


def results(folder: Path, kills: list[float]) -> tuple[dict[str, list[float]], list[float]]:
    """What a server in this folder comes to that is killed so many seconds after each start, and when it was."""
    killed = []
    for at in [*kills, None]:
        command = [sys.executable, "-m", "benchmarks", "restart", "--serve", str(folder)]
        server = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        first = server.stdout.readline()  # it is up
        if at is not None and first == "up\n":
            time.sleep(at)
            if server.poll() is None:
                server.send_signal(signal.SIGKILL)
                killed.append(at)
                server.wait()
                continue
        rest = server.communicate()[0]
        return json.loads(rest.splitlines()[-1]), killed
    raise AssertionError("unreachable")


def write(registry: Registry, over: threading.Event) -> None:
    """Write text after text with a model that ships, so that kills come in the middle of one, too."""
    from playground.engine import stream

    checkpoint = registry.get(registry.default, None)
    while not over.is_set():
        for _ in stream(checkpoint.model, checkpoint.tokenizer, checkpoint.tokenizer.encode("Mia "), 200, shared=True):
            pass


def serve(folder: Path) -> None:
    """Have two visitors' runs and a comparison on a board in this folder; asked for on the first start, found later."""
    from playground.data import corpus_from_language
    from playground.model import PRESETS
    from playground.service.board import Board
    from playground.service.comparisons import ComparisonJob, ComparisonSpec
    from playground.service.data_folder import DataFolder
    from playground.service.limits import LOCAL
    from playground.service.models import Registry
    from playground.service.runs import RunSpec, Source
    from playground.training import TrainConfig

    data = DataFolder(folder)
    board = Board(Registry(LOCAL, data=data), LOCAL)
    training = TrainConfig(
        steps=400, batch_size=8, eval_every=50, eval_windows=16, autosave_seconds=0.5, device="cpu", precision="fp32"
    )
    vocab = corpus_from_language("copy", n_characters=2000, n_validation=500).vocab_size
    shape = PRESETS["tiny"].replace(vocab_size=vocab, context_length=32)
    if not data.rows("SELECT 1 FROM jobs"):
        for i, visitor in enumerate(VISITORS):
            board.start(visitor, RunSpec(Source("copy"), shape, training.replace(seed=i)))
        moe = shape.replace(n_experts=4, d_expert=64)
        pair = ComparisonSpec(Source("copy"), shape, moe, training.replace(steps=150), seeds=2, tokenizer="char")
        board.compare("carla", pair)
    over = threading.Event()
    writers = [threading.Thread(target=write, args=(board.registry, over), daemon=True) for _ in range(2)]
    for writer in writers:
        writer.start()
    print("up", flush=True)
    wanted = len(VISITORS) + 1
    while True:
        jobs = [job for visitor in (*VISITORS, "carla") for job in board.of(visitor)]
        jobs += board.of("carla", kind=ComparisonJob)
        noted = data.rows("SELECT 1 FROM jobs WHERE state = 'over'")
        if len(jobs) == wanted and all(job.settled for job in jobs) and len(noted) == wanted:
            break
        time.sleep(0.05)
    over.set()
    for writer in writers:
        writer.join()
    found: dict[str, list[float]] = {}
    for job in jobs:
        view = job.view()
        if isinstance(job, ComparisonJob):
            found["comparison, verdict"] = [view.verdict.difference, view.verdict.margin]
            for side, part in view.sides.items():
                found[f"comparison, {side}"] = [loss for history in part.histories for loss in history.steps["loss"]]
        else:
            found[f"{job.visitor}'s run"] = view.history.steps["loss"]
    print(json.dumps(found), flush=True)
