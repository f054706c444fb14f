"""How fast this machine is at what the playground does, each measured for less than a second."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from ..data import corpus_from_language
from ..engine import generate
from ..model import PRESETS, Transformer
from ..training import Stepped, train
from ..training.recipes import recipe_for

SECONDS = 0.7


def bandwidth() -> float:
    """GB a second at which the processor reads numbers from memory: the best of some sums over 256 MB."""
    numbers = torch.ones(64 << 20)
    return numbers.nbytes * 1e-9 / _quickest(numbers.sum)


def product(device: torch.device, dtype: torch.dtype, size: int = 1024) -> float:
    """GFLOP a second of a product of two square matrices on the device."""
    a = torch.ones(size, size, device=device, dtype=dtype)
    return 2e-9 * size**3 / _quickest(lambda: (a @ a)[0, 0].item())


def training() -> float:
    """Tokens a second from which the smallest preset learns, on the device and in the precision that it would take."""
    corpus = corpus_from_language("stories", unit="char")
    model = Transformer(PRESETS["tiny"].replace(vocab_size=corpus.vocab_size))
    config = recipe_for("tiny").replace(steps=1_000_000, max_seconds=SECONDS, eval_every=0, eval_windows=1)
    return [event.tokens_per_second for event in train(model, corpus, config) if isinstance(event, Stepped)][-1]


def decoding() -> float:
    """Tokens a second that the smallest preset writes, one after another, on the processor as the page does."""
    model = Transformer(PRESETS["tiny"])
    began, written = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        written += sum(1 for _ in generate(model, [0], 32))
    return written / (time.perf_counter() - began)


def on_one_thread(measure: Callable[[], float]) -> float:
    """The same measured without helpers: on a busy machine every operation waits for the slowest of them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return measure()
    finally:
        torch.set_num_threads(threads)


def _quickest(work: Callable[[], object]) -> float:
    """Seconds of the quickest of several tries, one at least, within about `SECONDS`."""
    work()
    best, ends = float("inf"), time.perf_counter() + SECONDS / 2
    while True:
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
        if time.perf_counter() >= ends:
            return best
