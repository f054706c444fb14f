"""Kept: a cache of results that any visitor may ask for again: each made once, bounded, removed with its model.

Every cache of the page is a `Kept`, and all share one memory budget: beyond it, the least recently used value of all
leaves first. Only values that can be made again are kept.
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np
import torch

CACHE_BYTES = 1_500_000_000
"""Most bytes that all kept values may take together."""


class Kept:
    """The latest values by key; the least recently used leave first. Safe to use from several threads.

    A value may belong to an owner, commonly a model, and leaves with it: when nothing else refers to the owner any
    more, or when `forget(owner)` is called for values that themselves refer to it.
    """

    def __init__(self, *, entries: int, megabytes: float = 256):
        """Keep at most this many values with at most this many megabytes; the newest stays, however large it is."""
        self.entries, self.bytes = entries, int(megabytes * 1e6)
        self._belongs: weakref.WeakKeyDictionary[Any, dict[Hashable, _Entry]] = weakref.WeakKeyDictionary()
        self._under_way: dict[tuple[int, Hashable], Future] = {}
        _everywhere.add(self)

    def get(self, key: Hashable, make: Callable[[], Any], *, owner: Any = None) -> Any:
        """The value for this key (and owner), kept or made now.

        A caller waits if another thread is making the value. An exception from `make` reaches all waiting callers but
        is not kept: the next caller tries again.
        """
        owner = self if owner is None else owner
        with _lock:
            entry = self._belongs.get(owner, {}).get(key)
            if entry is not None:
                entry.used = next(_uses)
                return entry.value
            flight = id(owner), key  # the owner lives as long as a caller holds it
            made = self._under_way.get(flight)
            mine = made is None
            if mine:
                made = self._under_way[flight] = Future()
        if not mine:
            return made.result()
        try:
            value = make()
            size = size_of(value)
        except BaseException as problem:
            with _lock:
                self._leave(flight, made)
            made.set_exception(problem)
            raise
        with _lock:
            if self._leave(flight, made):
                self._belongs.setdefault(owner, {})[key] = _Entry(value, size, next(_uses))
                self._make_room()
        made.set_result(value)
        return value

    def peek(self, key: Hashable, *, owner: Any = None) -> Any:
        """The value if it is kept, else None; makes nothing."""
        with _lock:
            entry = self._belongs.get(self if owner is None else owner, {}).get(key)
            return None if entry is None else entry.value

    def drop(self, key: Hashable, *, owner: Any = None) -> None:
        """Drop one value."""
        with _lock:
            self._belongs.get(self if owner is None else owner, {}).pop(key, None)

    def forget(self, owner: Any) -> None:
        """Drop all values of this owner, and any that are now being made for it."""
        with _lock:
            self._belongs.pop(owner, None)
            for flight in [flight for flight in self._under_way if flight[0] == id(owner)]:
                del self._under_way[flight]

    def __reduce__(self) -> tuple:
        return _again, (self.entries, self.bytes / 1e6)  # another process makes its own values

    def __len__(self) -> int:
        with _lock:
            return sum(map(len, list(self._belongs.values())))

    @property
    def nbytes(self) -> int:
        """Bytes that the values take together."""
        with _lock:
            return sum(entries[key].size for entries, key in self._all())

    def _all(self) -> list[tuple[dict[Hashable, _Entry], Hashable]]:
        return [(entries, key) for entries in list(self._belongs.values()) for key in entries]

    def _leave(self, flight: tuple[int, Hashable], made: Future) -> bool:
        """Remove a value from those being made; False if it was forgotten meanwhile."""
        if self._under_way.get(flight) is not made:
            return False
        del self._under_way[flight]
        return True

    def _make_room(self) -> None:
        """The newest value stays, however large it is."""
        _leave_until(lambda count, size: count <= self.entries and size <= self.bytes, self._all())
        _leave_until(lambda _, size: size <= CACHE_BYTES, [each for kept in list(_everywhere) for each in kept._all()])


def _leave_until(enough: Callable[[int, int], bool], found: list[tuple[dict[Hashable, _Entry], Hashable]]) -> None:
    """Drop the least recently used of these until their number and bytes are within bounds, or one is left."""
    count, size = len(found), sum(entries[key].size for entries, key in found)
    if enough(count, size):
        return
    for entries, key in sorted(found, key=lambda each: each[0][each[1]].used)[:-1]:
        gone = entries.pop(key)
        count, size = count - 1, size - gone.size
        if enough(count, size):
            return


def _again(entries: int, megabytes: float) -> Kept:
    return Kept(entries=entries, megabytes=megabytes)


def counts() -> dict[str, int]:
    """How many values are kept, their bytes, and the bounds."""
    with _lock:
        caches = list(_everywhere)
        return {
            "values": sum(map(len, caches)),
            "bytes": sum(kept.nbytes for kept in caches),
            "most_bytes": CACHE_BYTES,
        }


def forget(owner: Any) -> None:
    """Drop everything that any `Kept` holds for this owner, because its model was removed."""
    for kept in list(_everywhere):
        kept.forget(owner)


def size_of(value: Any) -> int:
    """Bytes of the tensors, arrays, texts and numbers in a value, each counted once; a model's own weights are not.

    Uses an object's `nbytes` if it has one; looks into dataclasses, mappings, lists, tuples and sets.
    """
    return _size(value, set())


def _size(value: Any, seen: set[int]) -> int:
    if value is None or id(value) in seen or isinstance(value, (torch.nn.Module, type)) or callable(value):
        return 0
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, (np.ndarray, np.generic)):
        return int(value.nbytes)
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, (bool, int, float)):
        return 8
    if isinstance(nbytes := getattr(value, "nbytes", None), int):
        return nbytes
    parts: Iterable[Any] = ()
    if isinstance(value, Mapping):
        parts = itertools.chain(value.keys(), value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = value
    elif dataclasses.is_dataclass(value):
        parts = (getattr(value, field.name) for field in dataclasses.fields(value))
    return sum(_size(part, seen) for part in parts)


class Latest(OrderedDict):
    """A dictionary of the `most` keys set last; older ones are dropped. Safe to use from several threads."""

    def __init__(self, most: int):
        super().__init__()
        self.most = most

    def __setitem__(self, key: Hashable, value: Any) -> None:
        with _lock:
            super().__setitem__(key, value)
            self.move_to_end(key)
            while len(self) > self.most:
                self.popitem(last=False)


@dataclasses.dataclass
class _Entry:
    value: Any
    size: int
    used: int


_lock = threading.RLock()  # one for all; an owner may be collected while this thread holds it
_uses = itertools.count()
_everywhere: weakref.WeakSet[Kept] = weakref.WeakSet()
