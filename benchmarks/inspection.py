"""Inspection in the server alone: prompt to first picture, what that weighs, and a change of head or cell."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from playground.data.tokenizers import CharTokenizer
from playground.model import PRESETS, ModelConfig, Transformer
from playground.storage import Checkpoint
from playground.training import History
from tests.ui.inspecting import Inspecting

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
    """Seconds to a new prompt's first answer, its bytes, seconds to another head's and to another cell's."""
    tab = Inspecting(Checkpoint(Transformer(config), CharTokenizer(LETTERS), History(), "benchmark"))
    prompts = [("once upon a time there was a fox " * 3)[i : i + 64] for i in range(rounds)]

    def answer(prompt: str, have: Mapping[str, str] | None = None, **selection: Any) -> dict[str, Any]:
        """What the browser is sent which has these slots already."""
        slots = tab.shown(prompt, **selection).slots
        return {name: slot.make() for name, slot in slots.items() if (have or {}).get(name) != slot.digest}

    first = [timed(lambda prompt=prompt: answer(prompt)) for prompt in prompts]
    payload = len(json.dumps(answer(prompts[-1])))

    def change(before: dict[str, int], after: dict[str, int]) -> float:
        have = {name: slot.digest for name, slot in tab.shown(prompts[-1], **before).slots.items()}
        return timed(lambda: answer(prompts[-1], have, **after))

    at = {"layer": 0, "head": 0, "query": 40, "key": 3}
    head = [change(at, at | {"layer": config.n_layers - 1, "head": (i + 1) % config.n_heads}) for i in range(rounds)]
    cell = [change(at, at | {"query": 30 + i, "key": i}) for i in range(2 * rounds)]
    return statistics.median(first), payload, statistics.median(head), statistics.median(cell)


def timed(work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
