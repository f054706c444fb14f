"""Kept: what was worked out for one visitor, for all who ask the same: made once, bounded, gone with its model.

Every cache of the page is one, and all of them share one budget of memory: beyond it the least recently used value of
all leaves first. What is kept is never more than what can be made again.
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
"""What all that is kept may take together."""


class Kept:
    """The latest values by key, the least recently used out first. For any number of threads.

    A value may belong to an owner, commonly a model, and leaves with it: when nothing else refers to the owner any
    more, or when `forget(owner)` is called for values that themselves refer to it.
    """

    def __init__(self, *, entries: int, megabytes: float = 256):
        """Keep at most so many values that together take at most so much; the newest stays however large it is."""
        self.entries, self.bytes = entries, int(megabytes * 1e6)
        self._belongs: weakref.WeakKeyDictionary[Any, dict[Hashable, _Entry]] = weakref.WeakKeyDictionary()
        self._under_way: dict[tuple[int, Hashable], Future] = {}
        _everywhere.add(self)

    def get(self, key: Hashable, make: Callable[[], Any], *, owner: Any = None) -> Any:
        """The value of this key (and owner), kept or made now.

        Whoever asks while another thread makes it waits for that one. An exception of `make` reaches all who wait, and
        is not kept: the next one to ask tries again.
        """
        owner = self if owner is None else owner
        with _lock:
            entry = self._belongs.get(owner, {}).get(key)
            if entry is not None:
                entry.used = next(_uses)
                return entry.value
            flight = id(owner), key  # the owner lives as long as somebody who asks holds it
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
        """The value if it is kept, else None; nothing is made."""
        with _lock:
            entry = self._belongs.get(self if owner is None else owner, {}).get(key)
            return None if entry is None else entry.value

    def drop(self, key: Hashable, *, owner: Any = None) -> None:
        """Let go of one value."""
        with _lock:
            self._belongs.get(self if owner is None else owner, {}).pop(key, None)

    def forget(self, owner: Any) -> None:
        """Let go of all that belongs to this owner, and of what is being made for it once it is made."""
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
        """What the values take together."""
        with _lock:
            return sum(entries[key].size for entries, key in self._all())

    def _all(self) -> list[tuple[dict[Hashable, _Entry], Hashable]]:
        return [(entries, key) for entries in list(self._belongs.values()) for key in entries]

    def _leave(self, flight: tuple[int, Hashable], made: Future) -> bool:
        """Take a value off those under way; False where it was forgotten meanwhile."""
        if self._under_way.get(flight) is not made:
            return False
        del self._under_way[flight]
        return True

    def _make_room(self) -> None:
        """The newest value stays, however large it is."""
        _leave_until(lambda count, size: count <= self.entries and size <= self.bytes, self._all())
        _leave_until(lambda _, size: size <= CACHE_BYTES, [each for kept in list(_everywhere) for each in kept._all()])


def _leave_until(enough: Callable[[int, int], bool], found: list[tuple[dict[Hashable, _Entry], Hashable]]) -> None:
    """Let the least recently used of these leave until their number and bytes are few enough, or one is left."""
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
    """How many values are kept, their bytes, and how many there may be."""
    with _lock:
        caches = list(_everywhere)
        return {
            "values": sum(map(len, caches)),
            "bytes": sum(kept.nbytes for kept in caches),
            "most_bytes": CACHE_BYTES,
        }


def forget(owner: Any) -> None:
    """Let go of everything that any `Kept` holds for this owner: its model has left the house."""
    for kept in list(_everywhere):
        kept.forget(owner)


def size_of(value: Any) -> int:
    """Bytes of the tensors, arrays, texts and numbers in a value, each counted once; a model's own weights are not.

    An object that knows its `nbytes` is asked; dataclasses, mappings, lists, tuples and sets are looked into.
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
    """A dictionary of the `most` keys that were set last; the others have left. For any number of threads."""

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


_lock = threading.RLock()  # of all: an owner may be collected, and take its values along, while this thread has it
_uses = itertools.count()
_everywhere: weakref.WeakSet[Kept] = weakref.WeakSet()
