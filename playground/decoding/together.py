"""Together: all who write with one model at the moment share its forward passes; texts join and leave between tokens.

    shared = Together(model)
    steps = shared.generate(prompt, 100)    # an iterator of DecodeSteps, as of `generate`; any number, from any threads

Reading one token costs a small model nearly as much as reading forty, since both read all of its weights. So the newest
tokens of all continuations are one batch ("continuous batching", Yu et al. 2022, "Orca"): each keeps its own rows of
the cache, its own rules, seed and stop strings, and writes what it would write alone.

There is no thread that decodes. Whoever asks for a step that is not there yet makes a pass for all; the others find
theirs ready. R = rows, the samples of all continuations; N = samples of one.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ..model import KVCache, Transformer
from ..model.cache import RaggedCache
from ..model.kernels.reading import reading
from ..processes import lone_threads, threads_for
from .continuation import Continuation, DecodeStep, choose

PASSES = 4
"""Made at once by whoever finds nothing ready: each hand-over between threads costs as much as reading a token does."""
SMALL_MODEL = 5_000_000
"""Parameters below which a second thread adds nothing to a pass, and beside other work costs most of it."""
AHEAD = 64
"""Steps that a continuation may be ahead of its reader: one who pauses, or has gone without a word, holds up nobody."""


class Together:
    """The passes of one model in one precision, shared by any number of threads; the model may not change meanwhile."""

    def __init__(self, model: Transformer, precision: str = "fp32"):
        self._config = model.config
        self._model, self._precision = weakref.ref(model), precision
        self._device = next(model.parameters()).device
        self._read = reading(model, precision)
        self._cache = RaggedCache(model.config, device=self._device)
        self._lock = threading.Lock()
        self._continuations: list[Continuation] = []
        self._ready: dict[Continuation, deque[DecodeStep]] = {}
        self._failed: dict[Continuation, Exception] = {}
        self._owners: list[tuple[Continuation, int]] = []  # of each row of the cache: whose it is, which of its samples

    def generate(self, prompt: Sequence[int], max_new_tokens: int, *rules: Any, **more: Any) -> Iterator[DecodeStep]:
        """As `generate(model, …)`, with the same arguments and the same steps."""
        return self._follow(Continuation(self._config, prompt, max_new_tokens, *rules, device=self._device, **more))

    def __len__(self) -> int:
        """How many continuations are being written."""
        return len(self._continuations)

    def _follow(self, continuation: Continuation) -> Iterator[DecodeStep]:
        ready, begun = deque[DecodeStep](), False
        with self._lock:
            model = self._model()
            if not self._continuations and model is not None and not self._read.is_of(model):
                self._read = reading(model, self._precision)  # it has learned since
            self._continuations.append(continuation)
            self._ready[continuation] = ready
        try:
            while True:
                if not ready:
                    with self._lock:
                        if not ready and not continuation.over:
                            self._pass(PASSES if begun else 1)
                            begun = True
                if not ready and continuation in self._failed:
                    raise self._failed[continuation]
                if not ready:
                    return
                yield ready.popleft()
        finally:
            with self._lock:
                self._forget_rows(continuation)
                self._continuations.remove(continuation)
                self._failed.pop(continuation, None)
                del self._ready[continuation]

    def _pass(self, times: int) -> None:
        """More steps of everyone whose reader keeps up; what goes wrong ends them all, each with that error."""
        try:
            if self._config.n_active_parameters < SMALL_MODEL and self._device.type == "cpu":
                lone_threads().submit(self._step_all, times).result()
            else:
                with threads_for(self._config.n_active_parameters):
                    self._step_all(times)
        except Exception as problem:
            self._cache, self._owners = RaggedCache(self._config, device=self._device), []
            for continuation in self._continuations:
                if not continuation.over:
                    continuation.over, self._failed[continuation] = True, problem

    @torch.inference_mode()
    def _step_all(self, times: int) -> None:
        for _ in range(times):
            self._step([s for s in self._continuations if not s.over and len(self._ready[s]) < AHEAD])

    def _step(self, going: list[Continuation]) -> None:
        for continuation in going:
            continuation.begin()
        self._read_windows([continuation for continuation in going if continuation.logits is None])
        choose(going)
        for continuation in going:
            if continuation.full:
                self._forget_rows(continuation)
        self._read_newest(going)
        for continuation in going:
            self._ready[continuation].append(continuation.step())

    def _read_windows(self, continuations: list[Continuation]) -> None:
        """Windows that are read anew: for the first time, or because the context slides."""
        alike: dict[tuple[int, bool], list[Continuation]] = {}  # those of one length are one batch
        for continuation in continuations:
            keeps = continuation.cached and not continuation.rereads  # what is read anew for every token needs no cache
            alike.setdefault((continuation.window.shape[1], keeps), []).append(continuation)
        for (length, keeps), members in alike.items():
            sizes = [continuation.n_samples for continuation in members]
            cache = KVCache.allocate(self._config, sum(sizes), length, device=self._device) if keeps else None
            logits = self._read.window(torch.cat([continuation.window for continuation in members]), cache)
            for continuation, part in zip(members, logits.split(sizes)):
                continuation.has_read_window(part)
            if cache is not None:
                self._cache.join(cache)
                self._owners += [(member, sample) for member in members for sample in range(member.n_samples)]

    def _read_newest(self, going: list[Continuation]) -> None:
        """The tokens just chosen, of all that have rows in the cache."""
        if not self._owners:
            return
        moving = set(going)
        self._cache.begin(
            torch.tensor([continuation in moving for continuation, _ in self._owners], device=self._device)
        )
        newest = torch.tensor(
            [[continuation.tokens[sample]] for continuation, sample in self._owners], device=self._device
        )
        logits = self._read.newest(newest, self._cache)  # (R, V)
        rows: dict[Continuation, list[torch.Tensor]] = {}
        for (continuation, sample), row in zip(self._owners, logits.split(1)):
            if continuation in moving:
                rows.setdefault(continuation, [row] * continuation.n_samples)[sample] = row
        for continuation, own in rows.items():
            continuation.has_read_newest(own[0] if len(own) == 1 else torch.cat(own))

    @torch.inference_mode()
    def _forget_rows(self, continuation: Continuation) -> None:
        """Free the continuation's rows; rows from the end take their places."""
        for row in reversed(range(len(self._owners))):
            if self._owners[row][0] is continuation:
                self._cache.leave(row)
                self._owners[row] = self._owners[-1]
                self._owners.pop()


_shared: weakref.WeakKeyDictionary[Transformer, dict[str, Together]] = weakref.WeakKeyDictionary()
_sharing = threading.Lock()


def passes_of(model: Transformer, precision: str = "fp32") -> Together:
    """The one `Together` of this model in this precision, for all who ask; it goes when the model does."""
    with _sharing:
        own = _shared.setdefault(model, {})
        if precision not in own:
            own[precision] = Together(model, precision)
        return own[precision]


def writers_with(model: Transformer) -> int:
    """How many texts this model is writing, in all precisions."""
    with _sharing:
        return sum(map(len, _shared.get(model, {}).values()))
