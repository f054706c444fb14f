"""Together: all who write with one model at the moment share its forward passes; streams join and leave between tokens.

    shared = Together(model)
    steps = shared.generate(prompt, 100)    # an iterator of DecodeSteps, as of `generate`; any number, from any threads

Reading one token costs a small model nearly as much as reading forty, since both read all of its weights. So the newest
tokens of all streams are one batch ("continuous batching", Yu et al. 2022, "Orca"): each stream keeps its own cache
rows, rules, seed and stop strings, and writes what it would write alone.

There is no thread that decodes. Whoever asks for a step that is not there yet makes a pass for all; the others find
theirs ready. R = rows, the samples of all streams; N = samples of one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ..model import KVCache, Transformer
from ..model.cache import RaggedCache
from ..model.fast.bare import bare
from .decoder import decode_one_token, prefill
from .stream import DecodeStep, Stream, choose

AHEAD = 64
"""Steps that a stream may be ahead of its reader: one who pauses, or has gone without a word, holds up nobody."""


class Together:
    """The passes of one model, shared. Threads may use it at the same time; the model must not change meanwhile."""

    def __init__(self, model: Transformer):
        self._config = model.config
        self._device = next(model.parameters()).device
        self._read = bare(model)
        self._cache = RaggedCache(model.config, device=self._device)
        self._lock = threading.Lock()
        self._streams: list[Stream] = []
        self._ready: dict[Stream, deque[DecodeStep]] = {}
        self._failed: dict[Stream, Exception] = {}
        self._owners: list[tuple[Stream, int]] = []  # of each row of the cache: whose it is, which of its samples

    def generate(self, prompt: Sequence[int], max_new_tokens: int, *rules: Any, **more: Any) -> Iterator[DecodeStep]:
        """As `generate(model, …)`, with the same arguments and the same steps."""
        return self._follow(Stream(self._config, prompt, max_new_tokens, *rules, device=self._device, **more))

    def __len__(self) -> int:
        """How many streams are being written."""
        return len(self._streams)

    def _follow(self, stream: Stream) -> Iterator[DecodeStep]:
        ready: deque[DecodeStep] = deque()
        with self._lock:
            self._streams.append(stream)
            self._ready[stream] = ready
        try:
            while True:
                if not ready:
                    with self._lock:
                        if not ready and not stream.over:
                            self._pass()
                if stream in self._failed:
                    raise self._failed[stream]
                if not ready:
                    return
                yield ready.popleft()
        finally:
            with self._lock:
                self._forget_rows(stream)
                self._streams.remove(stream)
                self._failed.pop(stream, None)
                del self._ready[stream]

    def _pass(self) -> None:
        """One more step of every stream whose reader keeps up; what goes wrong ends them all, each with that error."""
        try:
            self._step_all()
        except Exception as problem:
            self._cache, self._owners = RaggedCache(self._config, device=self._device), []
            for stream in self._streams:
                if not stream.over:
                    stream.over, self._failed[stream] = True, problem

    @torch.inference_mode()
    def _step_all(self) -> None:
        going = [s for s in self._streams if not s.over and len(self._ready[s]) < AHEAD]
        for stream in going:
            stream.begin()
        self._read_windows([stream for stream in going if stream.logits is None])
        choose(going)
        for stream in going:
            if stream.full:
                self._forget_rows(stream)
        self._read_newest(going)
        for stream in going:
            self._ready[stream].append(stream.step())

    def _read_windows(self, streams: list[Stream]) -> None:
        """Windows that are read anew: for the first time, or because the context slides."""
        alike: dict[int, list[Stream]] = {}
        for stream in streams:
            if stream.cached and not stream.rereads:
                cache = KVCache.allocate(self._config, stream.n_samples, device=self._device)
                stream.has_read_window(prefill(self._read, stream.window, cache))
                self._cache.join(cache)
                self._owners += [(stream, sample) for sample in range(stream.n_samples)]
            else:
                alike.setdefault(stream.window.shape[1], []).append(stream)
        for members in alike.values():  # those read anew for every token need no cache, and are one batch
            logits = prefill(self._read, torch.cat([stream.window for stream in members]), None)
            for stream, part in zip(members, logits.split([stream.n_samples for stream in members])):
                stream.has_read_window(part)

    def _read_newest(self, going: list[Stream]) -> None:
        """The tokens just chosen, of all that have rows in the cache."""
        if not self._owners:
            return
        moving = set(going)
        self._cache.begin(torch.tensor([stream in moving for stream, _ in self._owners], device=self._device))
        newest = torch.tensor([[stream.tokens[sample]] for stream, sample in self._owners], device=self._device)
        logits = decode_one_token(self._read, newest, self._cache)  # (R, V)
        rows: dict[Stream, list[int]] = {}
        for row, (stream, sample) in enumerate(self._owners):
            rows.setdefault(stream, [row] * stream.n_samples)[sample] = row
        for stream in moving & rows.keys():
            own = rows[stream]
            stream.has_read_newest(logits[own[0] : own[0] + 1] if len(own) == 1 else logits[own])

    @torch.inference_mode()
    def _forget_rows(self, stream: Stream) -> None:
        """Free the stream's rows; rows from the end take their places."""
        for row in reversed(range(len(self._owners))):
            if self._owners[row][0] is stream:
                self._cache.leave(row)
                self._owners[row] = self._owners[-1]
                self._owners.pop()
