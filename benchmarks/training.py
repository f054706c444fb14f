"""Training speed: tokens per second of our trainer against nanoGPT's train.py, same shape, same run.

4 layers, d = 128, 4 heads, context 64, batch 12, characters. Peer and ours take turns, so that a machine whose speed
drifts slows both; a row's figure is the median over the rounds of each round's own ratio. On a GPU, both use bf16.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from playground.data import Corpus, corpus_from_language, corpus_from_text, read_file
from playground.model import PRESETS, Transformer
from playground.training import RECIPES, Stepped, train

from . import peers

WAYS = {
    "nanoGPT's kind of blocks, AdamW": ("nanogpt-cpu", "adamw", False),
    "our default blocks, AdamW": ("small", "adamw", False),
    "our default blocks, Muon": ("small", "muon", False),
    "nanoGPT's kind of blocks, AdamW, compiled": ("nanogpt-cpu", "adamw", True),
    "our default blocks, AdamW, compiled": ("small", "adamw", True),
}
TOKENS = 12 * 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--nanogpt", type=Path, help="a nanoGPT checkout; without one, Transformers' GPT-2 is the peer")
    parser.add_argument("--text", help="a text file (default: the synthetic stories)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60, help="per round")
    parser.add_argument("--no-compile", action="store_true", help="leave out the compiled rows")
    parser.add_argument("--device", default="cpu")


def run(options: argparse.Namespace) -> None:
    """Measure and print the table."""
    corpus = corpus_from_text(read_file(options.text)) if options.text else corpus_from_language("stories")
    ways = {name: way for name, way in WAYS.items() if not (way[2] and options.no_compile)}
    runs, compiling = {}, {}
    for name, way in ways.items():
        began = time.perf_counter()
        runs[name] = endless(corpus, *way, options.device)
        step_times(runs[name], 5)
        compiling[name] = time.perf_counter() - began
    ratios: dict[str, list[float]] = {name: [] for name in ways}
    ours: dict[str, list[float]] = {name: [] for name in ways}
    theirs = []
    for _ in range(options.rounds):
        if options.nanogpt:
            peer, _ = peers.nanogpt(options.nanogpt, corpus, options.steps, device=options.device)
        else:
            peer = peers.transformers_gpt2(corpus, options.steps, options.device)
        theirs.append(peer)
        for name, events in runs.items():
            mine = statistics.median(step_times(events, options.steps))
            ours[name].append(mine)
            ratios[name].append(peer / mine)
    peer_name = "nanoGPT" if options.nanogpt else "Transformers GPT-2"
    peer_ms = statistics.median(theirs)
    print(f"| way | ms per step | tokens/s | against {peer_name} | until the 5th step |")
    print("|---|---|---|---|---|")
    print(f"| {peer_name}, eager | {peer_ms:.1f} | {1000 * TOKENS / peer_ms:,.0f} | 1.00× | |")
    for name in ways:
        ms = statistics.median(ours[name])
        ratio = statistics.median(ratios[name])
        print(f"| {name} | {ms:.1f} | {1000 * TOKENS / ms:,.0f} | {ratio:.2f}× | {compiling[name]:.1f} s |")


def endless(corpus: Corpus, preset: str, optimizer: str, compile_: bool, device: str) -> Iterator:
    """A training run that goes on for as long as somebody asks for events."""
    model = Transformer(PRESETS[preset].replace(vocab_size=corpus.vocab_size, context_length=64))
    assert (model.config.n_layers, model.config.d_model, model.config.n_heads) == (4, 128, 4)
    config = RECIPES["nanogpt-cpu"].replace(
        steps=10**6, optimizer=optimizer, eval_every=0, compile=compile_, eval_windows=8, device=device
    )
    return train(model, corpus, config)


def step_times(events: Iterator, steps: int) -> list[float]:
    """Milliseconds of each of the next steps."""
    times, before = [], time.perf_counter()
    for event in events:
        if isinstance(event, Stepped):
            now = time.perf_counter()
            times.append(1000 * (now - before))
            before = now
            if len(times) == steps:
                return times
    raise AssertionError("the run ended")
