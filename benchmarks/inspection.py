"""Inspection in the server alone: prompt to first picture, what that weighs, and a change of head or cell."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from playground.data.tokenizers import CharTokenizer
from playground.model import PRESETS, ModelConfig, Transformer
from playground.storage import Checkpoint
from playground.training import History
from playground.ui.tabs.inspect.frame import best
from tests.ui.inspecting import Inspecting, weight

LETTERS = "abcdefghijklmnopqrstuvwxyz .,"
SHAPES = {
    "4 layers × 4 heads, d = 128": ModelConfig(vocab_size=30, context_length=64, n_layers=4, d_model=128, n_heads=4),
    "GPT-2 small": PRESETS["gpt2-small"],
}
TARGETS = {
    "4 layers × 4 heads, d = 128": "150 ms, 400 KB, 50 ms",
    "GPT-2 small": "1,500 ms",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--small", action="store_true", help="leave out GPT-2 small's shape")


def run(options: argparse.Namespace) -> None:
    """Measure and print the table; 64 tokens, medians over the rounds."""
    print("| shape | first picture | payload | another head | another cell | to be |\n|---|---|---|---|---|---|")
    for name, config in SHAPES.items():
        if not (options.small and name == "GPT-2 small"):
            first, payload, head, cell = measured(config, options.rounds)
            print(
                f"| {name} | {1000 * first:.0f} ms | {payload / 1000:.0f} KB | {1000 * head:.0f} ms "
                f"| {1000 * cell:.0f} ms | {TARGETS[name]} |"
            )


def measured(config: ModelConfig, rounds: int) -> tuple[float, int, float, float]:
    """Seconds to a new prompt's first pictures, their bytes, seconds to another head's and to another cell's."""
    tab = Inspecting(Checkpoint(Transformer(config), CharTokenizer(LETTERS), History(), "benchmark"))
    prompts = [("once upon a time there was a fox " * 3)[i : i + 64] for i in range(rounds)]

    def update(place=(0, 0, 0, 0), prompt: str = prompts[-1], step: str = "embed", **how) -> Callable[[], dict]:
        values = tab.at(prompt, place=place, inspect_steps=step)
        return lambda: tab.frame.update(values, **how)

    first = [timed(update(prompt=prompt, where=best)) for prompt in prompts]
    payload = weight(update(where=best)())
    places = [(config.n_layers - 1, i % config.n_heads, 40, 3) for i in range(rounds)]
    head = [timed(update(place, step="softmax", lists=False, changed="head")) for place in places]
    steps = ("project", "scores", "softmax", "blend")
    cells = [((0, 0, 30 + i, i), steps[i % len(steps)]) for i in range(2 * rounds)]
    cell = [timed(update(place, step=step, lists=False, changed="place")) for place, step in cells]
    return statistics.median(first), payload, statistics.median(head), statistics.median(cell)


def timed(work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
