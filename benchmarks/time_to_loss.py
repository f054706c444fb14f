"""Time to a loss: how long our fast recipe takes to where nanoGPT's CPU recipe ends, validation loss 1.886.

Tiny Shakespeare by characters, the last 10 % held out, the whole split scored, context 64, at most 0.85 M parameters.
nanoGPT's time is that of its 2,000 steps without evaluations; ours is that of all our steps without the final scoring,
and with it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from playground.data import corpus_from_text, read_file
from playground.model import PRESETS, Transformer
from playground.training import RECIPES, Evaluated, Stepped, train

from . import peers

TARGET = 1.886
FEWEST = 10
"""Steps of a half of the peer: the first ones are slower."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--nanogpt", type=Path, required=True, help="a nanoGPT checkout")
    parser.add_argument("--text", required=True, help="tiny Shakespeare, as a text file")
    parser.add_argument("--steps", type=int, help="of our recipe (default: its own)")
    parser.add_argument("--peer-steps", type=int, default=2000, help="fewer are scaled up, to spare time")
    parser.add_argument("--device", default="cpu")


def run(options: argparse.Namespace) -> None:
    """Measure half of the peer, ours, and the other half of the peer; print the table."""
    corpus = corpus_from_text(read_file(options.text))
    config = RECIPES["fast"].replace(eval_every=0, eval_windows=None, device=options.device)
    if options.steps:
        config = config.replace(steps=options.steps)
    model = Transformer(PRESETS["fast"].replace(vocab_size=corpus.vocab_size))
    assert model.config.n_parameters <= 850_000
    half = options.peer_steps // 2
    if half < FEWEST:
        raise SystemExit(f"--peer-steps {options.peer_steps} are too few: give at least {2 * FEWEST}")
    _, first = peers.nanogpt(options.nanogpt, corpus, half, device=options.device)
    began = time.perf_counter()
    trained = scored = loss = 0.0
    for event in train(model, corpus, config):
        if isinstance(event, Stepped):
            trained = time.perf_counter() - began
        elif isinstance(event, Evaluated):
            scored, loss = time.perf_counter() - began, event.val_loss
    _, second = peers.nanogpt(options.nanogpt, corpus, half, device=options.device)
    peer = (first + second) * 2000 / (2 * half)
    print("| | steps | validation loss | seconds | sooner by |")
    print("|---|---|---|---|---|")
    print(f"| nanoGPT's CPU recipe | 2,000 | {TARGET} | {peer:.1f} | 1.0× |")
    print(f"| ours, trained | {config.steps} | {loss:.4f} | {trained:.1f} | {peer / trained:.1f}× |")
    print(f"| ours, trained and scored | {config.steps} | {loss:.4f} | {scored:.1f} | {peer / scored:.1f}× |")
    print("\nTarget met." if loss <= TARGET else f"\nTarget {TARGET} not met: more --steps are needed.")
