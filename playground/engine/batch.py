"""ContinuousBatch: all requests of one model share its forward passes; they join and leave between tokens.

    batch = ContinuousBatch(model)
    steps = batch.join(Request(model.config, prompt, 100))    # an iterator of DecodeSteps; any number, from any threads

Reading one token costs a small model nearly as much as reading forty, since both read all of its weights. So the newest
tokens of all requests form one batch ("continuous batching", Yu et al. 2022, "Orca"): each request keeps its own rows
of the cache, its own rules, seed and stop strings, and writes the tokens that `generate` would write for it alone.

No thread exists just for decoding. A reader that finds no step ready makes a pass for all; the others find theirs
ready. Joining and leaving take no lock: they leave a mark, and the next pass acts on it. So the garbage collector may
close an abandoned stream anywhere, even in the middle of a pass. R = rows, the samples of all requests; N = samples of
one.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from ..model import Transformer, no_tap
from ..model.cache import KVCache, RaggedCache
from ..processes import Aside, decodes_alone, in_decoding_threads
from .generate import steps_of
from .inference_model import inference_model
from .request import Choice, DecodeStep, Request, choose

_Work = Callable[["list[_Member]"], "dict[_Member, Any]"]

PASSES = 4
"""Passes made at once by a reader that finds nothing ready: changing threads costs as much as reading a token."""
TOKENS_AT_ONCE = 512
"""Most tokens in one prefill: so few stay in a core's cache. 64 windows of 97 tokens take 0.6 of one batch's time."""
SHORT = 64
"""Up to this many tokens, handing a prefill to another thread costs more than reading it."""
AHEAD = 64
"""Steps that a request may run ahead of its reader, so that a paused reader does not delay the others."""


class _Member:
    """A request in the batch. Its reader sets `gone` and takes from `ready`; only the passes touch the rest."""

    def __init__(self, request: Request):
        self.request = request
        self.ready: deque[DecodeStep] = deque()
        self.begun = self.gone = False
        self.problem: Exception | None = None

    @property
    def over(self) -> bool:
        """Whether no further step will come."""
        return self.gone or self.problem is not None or self.request.over


class ContinuousBatch:
    """The passes of one model in one precision, shared by any number of threads; the model may not change meanwhile."""

    def __init__(self, model: Transformer, precision: str = "fp32"):
        self._source, self._model = weakref.ref(model), inference_model(model, precision)
        self.hooked = self._model.hooked
        self._members: list[_Member] = []
        self._passing = threading.Lock()  # held by the thread that makes passes; what follows is its alone
        self._cache = RaggedCache(model.config, device=self._model.device)
        self._rows: list[tuple[_Member, int]] = []  # for each row of the cache: its member, and which of its samples
        self._waiting: list[_Member] = []  # members whose windows have to be read
        self._reading: _Reading | None = None

    def join(self, request: Request) -> Iterator[DecodeStep]:
        """The request's steps, as `generate` yields them. The request joins when its first step is asked for.

        A request with a tap is written by itself: its edits must not touch its neighbours.
        """
        if request.tap is not no_tap:
            yield from steps_of(self._source(), request, self._model.precision)
            return
        member = _Member(request)
        self._members.append(member)
        try:
            while True:
                if not member.ready:
                    with self._passing:
                        if not member.ready and not member.over:
                            self._pass(PASSES if member.begun else 1)
                if member.ready:
                    yield member.ready.popleft()
                elif member.problem is not None:
                    raise member.problem
                elif member.over:
                    return
        finally:
            member.gone = True  # nothing more: this may run anywhere, even while this thread makes a pass

    def __len__(self) -> int:
        """How many requests are being written."""
        return sum(not member.gone for member in list(self._members))

    def _pass(self, times: int) -> None:
        """Make `times` steps for every request whose reader keeps up."""
        try:
            in_decoding_threads(self._model.config.n_active_parameters, self._model.device, self._steps, times)
        except Exception as problem:  # no one request is to blame, the cache may be half written: all requests end
            for member in self._members:
                member.problem = problem

    @torch.inference_mode()
    def _steps(self, times: int) -> None:
        for _ in range(times):
            self._step()

    def _step(self) -> None:
        """Write a token for each member whose reader keeps up, unless its window still has to be read.

        One group of windows is read at a time: if a thread is idle, by that one, while all others go on writing.
        """
        self._sweep()
        unread = {*self._waiting, *(self._reading.members if self._reading else ())}
        moving = []
        for member in self._members:
            if member not in unread and len(member.ready) < AHEAD:
                member.request.begin()
                member.begun = True
                (self._waiting if member.request.needs_prefill else moving).append(member)
        if self._waiting and self._reading is None:
            self._reading = self._begin_reading()
        logits = self._decode_one(moving)
        if self._reading is not None and not (moving and self._reading.aside.underway):
            logits |= self._end_reading()
        for members in _alike(logits, lambda member: member.request.rules):
            for member, choice in self._each(members, lambda some: _choices(some, logits)).items():
                try:
                    member.ready.append(member.request.step(choice))
                except Exception as problem:
                    member.problem = problem

    def _sweep(self) -> None:
        """Forget the finished members, and the cache rows that are no longer needed."""
        leaving = {member for member in self._members if member.over}  # asked once: a reader may leave meanwhile
        for member in leaving:
            self._members.remove(member)
            if member in self._waiting:
                self._waiting.remove(member)
        for row in reversed(range(len(self._rows))):
            member = self._rows[row][0]
            if member in leaving or member.request.full:
                self._cache.leave(row)  # the last row takes its place
                self._rows[row] = self._rows[-1]
                self._rows.pop()
                if not self._rows:
                    self._cache = RaggedCache(self._model.config, device=self._model.device)
        source = None if any(member.begun for member in self._members) else self._source()
        if source is not None and not self._model.is_current(source):  # it has learned since
            self._model = inference_model(source, self._model.precision)

    def _decode_one(self, members: list[_Member]) -> dict[_Member, torch.Tensor]:
        """Read the newest token of each sample in one pass; logits (N, V) per member. If it fails, all requests end."""
        if not members:
            return {}
        moving, device = set(members), self._model.device
        newest = torch.tensor([member.request.texts[sample][-1:] for member, sample in self._rows], device=device)
        try:
            self._cache.begin(torch.tensor([member in moving for member, _ in self._rows], device=device))
            logits = self._model.decode_one(newest, self._cache)  # (R, V)
        except Exception as problem:
            for member in members:
                member.problem = problem
            return {}
        rows: dict[_Member, list[torch.Tensor]] = {member: [logits] * member.request.n_samples for member in members}
        for (member, sample), row in zip(self._rows, logits.split(1)):
            if member in moving:
                rows[member][sample] = row
        return {member: own[0] if len(own) == 1 else torch.cat(own) for member, own in rows.items()}

    def _each(self, members: list[_Member], work: _Work) -> dict[_Member, Any]:
        """The results of `work` for all members at once. If it fails, each is tried alone: the one at fault ends."""
        try:
            return work(members)
        except Exception as problem:
            if len(members) == 1:
                members[0].problem = problem
                return {}
        return {member: result for each in members for member, result in self._each([each], work).items()}

    def _begin_reading(self) -> _Reading:
        """Begin to read the window that has waited longest, along with others of its kind."""
        members = _alike(self._waiting, self._prefilled_with)[0]
        members = members[: max(1, TOKENS_AT_ONCE // members[0].request.window_length)]
        self._waiting = [member for member in self._waiting if member not in members]
        n_tokens = sum(member.request.n_samples * member.request.window_length for member in members)
        offered = n_tokens >= SHORT and decodes_alone(self._model.config.n_active_parameters, self._model.device)
        return _Reading(members, Aside(partial(self._each, members, self._prefill), offered))

    def _end_reading(self) -> dict[_Member, torch.Tensor]:
        """The logits (N, V) for each member whose window has been read; the next pass reads its newest token."""
        results, self._reading = self._reading.aside.result(), None
        logits = {}
        for member, (its_logits, cache) in results.items():
            if member in self._members:  # and the member has not left meanwhile
                logits[member] = its_logits
                if cache is not None:
                    self._cache.join(cache)
                    self._rows += [(member, sample) for sample in range(member.request.n_samples)]
        return logits

    def _prefilled_with(self, member: _Member) -> tuple[int, bool]:
        """Equal for members whose windows can form one batch: window length, and whether a cache is used afterwards."""
        length = member.request.window_length
        return length, member.request.cached and length < self._model.config.context_length

    @torch.inference_mode()
    def _prefill(self, members: list[_Member]) -> dict[_Member, tuple[torch.Tensor, KVCache | None]]:
        """Read windows of one kind; logits (N, V) for each member, and a cache with its rows if one is of use."""
        (length, keeps), model = self._prefilled_with(members[0]), self._model
        windows = torch.tensor([window for member in members for window in member.request.window], device=model.device)
        cache = KVCache.allocate(model.config, len(windows), length, device=model.device) if keeps else None
        sizes = [member.request.n_samples for member in members]
        logits = model.prefill(windows, cache).split(sizes)
        return dict(zip(members, zip(logits, cache.split(sizes) if cache is not None else [None] * len(sizes))))


@dataclass
class _Reading:
    """Windows that are being read together."""

    members: list[_Member]
    aside: Aside[dict[_Member, tuple[torch.Tensor, KVCache | None]]]


def _alike(members: Iterable[_Member], kind: Callable[[_Member], Any]) -> list[list[_Member]]:
    """The members, grouped by kind."""
    groups: dict[Any, list[_Member]] = {}
    for member in members:
        groups.setdefault(kind(member), []).append(member)
    return list(groups.values())


def _choices(members: list[_Member], logits: dict[_Member, torch.Tensor]) -> dict[_Member, Choice]:
    """The next tokens of members with equal rules."""
    return dict(zip(members, choose([member.request for member in members], [logits[member] for member in members])))


_shared: weakref.WeakKeyDictionary[Transformer, dict[str, ContinuousBatch]] = weakref.WeakKeyDictionary()
_sharing = threading.Lock()


def shared_batch(model: Transformer, precision: str = "fp32") -> ContinuousBatch:
    """The one ContinuousBatch for this model and precision, shared by all callers; it is freed with the model.

    A model with hooks gets a new batch each time: kept here, that batch would keep its model alive for ever.
    """
    with _sharing:
        known = _shared.get(model, {}).get(precision)
    if known is not None:
        return known
    batch = ContinuousBatch(model, precision)  # copies weights: writing with another model does not wait for that
    if batch.hooked:
        return batch
    with _sharing:
        return _shared.setdefault(model, {}).setdefault(precision, batch)


def writers_with(model: Transformer) -> int:
    """How many requests this model is writing, in all precisions."""
    with _sharing:
        return sum(map(len, _shared.get(model, {}).values()))
