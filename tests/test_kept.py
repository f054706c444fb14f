"""What is kept is made once for all who ask at the same time, bounded by number and bytes, and gone with its owner."""

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from playground import kept
from playground.data import corpus_from_language
from playground.data.corpus import WORKED_OUT
from playground.kept import Kept, Latest
from tests.ui.runs import at_once


class Model:
    """Something that can be referred to weakly."""


def test_an_exception_reaches_all_who_wait_and_is_not_kept():
    cache, tries = Kept(entries=4), []

    def fail():
        tries.append(1)
        time.sleep(0.3)  # long enough for all to have asked
        raise ValueError("no such thing")

    def ask(_):
        with pytest.raises(ValueError, match="such thing"):
            cache.get("a", fail)

    at_once(8, ask)
    assert len(tries) == 1 and len(cache) == 0
    assert cache.get("a", lambda: "well") == "well"


def test_bytes_are_bounded_and_the_newest_stays():
    cache = Kept(entries=100, megabytes=1)
    for key in range(6):
        cache.get(key, lambda: np.zeros(300_000, np.uint8))
    assert len(cache) == 3 and cache.nbytes == 900_000
    cache.get("large", lambda: np.zeros(5_000_000, np.uint8))
    assert len(cache) == 1 and cache.peek("large") is not None
    latest = Latest(2)
    for key in "abac":
        latest[key] = key
    assert list(latest) == ["a", "c"] and latest.get("b") is None


def test_what_belongs_to_a_model_leaves_with_it_even_while_it_is_made():
    cache, model, other = Kept(entries=9), Model(), Model()
    cache.get("x", lambda: 1, owner=model)
    cache.get("x", lambda: 2, owner=other)
    cache.get("x", lambda: 3)
    assert [cache.peek("x", owner=owner) for owner in (model, other, None)] == [1, 2, 3]
    del model
    gc.collect()
    assert len(cache) == 2
    kept.forget(other)  # as when its values hold on to it
    assert len(cache) == 1 and cache.peek("x") == 3
    cache, model, begun, go = Kept(entries=9), Model(), threading.Event(), threading.Event()

    def make():
        begun.set()
        go.wait(10)
        return "old"

    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(cache.get, "x", make, owner=model)
        begun.wait(10)
        cache.forget(model)
        assert cache.get("x", lambda: "new", owner=model) == "new"
        go.set()
        assert asked.result() == "old" and cache.peek("x", owner=model) == "new"


def test_many_threads_many_keys_and_owners_that_come_and_go():
    cache, wrong = Kept(entries=8, megabytes=0.01), []

    def visit(seed):
        draw = np.random.default_rng(seed)
        mine = Model()
        for _ in range(300):
            key = int(draw.integers(12))
            owner = mine if key % 2 else None
            found = cache.get(key, lambda key=key: np.full(100, key), owner=owner)
            if found[0] != key:
                wrong.append(key)

    at_once(16, visit)
    gc.collect()
    assert not wrong and len(cache) <= 8 and cache.nbytes <= 10_000 and not cache._under_way


def test_every_cache_of_the_page_is_within_one_budget_and_the_newest_stays(monkeypatch):
    """Corpora kept whatever was asked of them, and copies of weights had a bound of their own."""
    corpus = corpus_from_language("copy", n_characters=3000, n_validation=600)
    before = kept.counts()["values"]
    for windows in range(1, 70):
        corpus.baselines(16, windows)
    assert kept.counts()["values"] - before <= WORKED_OUT
    monkeypatch.setattr(kept, "_everywhere", weakref.WeakSet())
    monkeypatch.setattr(kept, "CACHE_BYTES", 1_000_000)
    caches = [Kept(entries=9) for _ in range(4)]
    for number, cache in enumerate(caches):
        for key in range(3):
            cache.get(key, lambda: np.zeros(200_000, np.uint8))
        caches[0].get(0, lambda: np.zeros(200_000, np.uint8))
        assert kept.counts()["bytes"] <= 1_000_000, number
    assert caches[0].peek(0) is not None, "what is asked for again and again stays"
    assert kept.counts() == {"values": 5, "bytes": 1_000_000, "most_bytes": 1_000_000}
    caches[1].get("large", lambda: np.zeros(3_000_000, np.uint8))
    assert kept.counts()["values"] == 1 and caches[1].peek("large") is not None
