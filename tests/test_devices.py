"""Threads: a small step is computed alone, and nobody else is the poorer for it."""

from __future__ import annotations

import threading

import pytest
import torch

from playground.devices import SMALL_STEP, alone_if_small


def in_a_thread(look):
    """What `look()` gives in a thread of its own."""
    found = []
    thread = threading.Thread(target=lambda: found.append(look()))
    thread.start()
    thread.join()
    return found[0]


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_a_small_step_is_computed_alone_and_other_threads_keep_their_helpers(two_threads):
    def job():
        with alone_if_small(SMALL_STEP - 1):
            torch.ones(64, 64) @ torch.ones(64, 64)
            during = torch.get_num_threads(), in_a_thread(torch.get_num_threads)
        return during, torch.get_num_threads()

    assert in_a_thread(job) == ((1, 2), 2)
    assert torch.get_num_threads() == 2


def test_a_large_step_is_shared(two_threads):
    with alone_if_small(SMALL_STEP):
        assert torch.get_num_threads() == 2
