"""The removal map: what every head is worth, all variants in one growing batch, against removing one at a time.

A shipped model of 4 layers × 4 heads on its own unseen text. The two take turns, so that a machine whose speed drifts
slows both.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch

from playground.data import corpus_from_language
from playground.inspection.cost import edit_cost, removal_map, removed_part
from playground.storage import load

SHIPPED = Path(__file__).resolve().parents[1] / "checkpoints" / "stories"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=2048, help="predictions that each variant is judged by")


def run(options: argparse.Namespace) -> None:
    """Measure and print the table."""
    model = load(SHIPPED).model
    corpus = corpus_from_language("stories", n_characters=1_000, n_validation=40_000)
    T, L, H = model.config.context_length, model.config.n_layers, model.config.n_heads
    inputs, targets = corpus.windows("val", T, max(2, options.tokens // T))
    parts = [removed_part(layer, column, H) for layer in range(L) for column in range(H + 2)]
    together, apart, processor = [], [], []
    for _ in range(options.rounds):
        began, used = time.perf_counter(), time.process_time()
        removal_map(model, inputs, targets)
        together.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
        began = time.perf_counter()
        for part in parts:
            edit_cost(model, inputs, targets, [part])
        apart.append(time.perf_counter() - began)
    ratio = statistics.median(b / a for a, b in zip(together, apart))
    print("| removal map | seconds | processor seconds | against one at a time |")
    print("|---|---|---|---|")
    print(
        f"| {L * H} heads, {L} attentions, {L} feed-forwards on {inputs.numel():,} tokens, {torch.get_num_threads()} "
        f"threads | {statistics.median(together):.2f} | {statistics.median(processor):.2f} | {ratio:.1f}× |"
    )
