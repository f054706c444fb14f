"""Devices and precisions are chosen by what a machine has or is declared to have; small steps are computed alone."""

from __future__ import annotations

import threading

import pytest
import torch

from playground.devices import SMALL_STEP, alone_if_small, has_fast_bf16, pick_device, pick_precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(("declared", "dtype"), [("1", torch.bfloat16), ("0", torch.float32)])
def test_what_is_declared_overrules_the_hardware(declared, dtype, monkeypatch):
    monkeypatch.setenv("PLAYGROUND_BF16", declared)
    assert has_fast_bf16(CPU) == (declared == "1") and pick_precision("auto", CPU) == dtype
    assert pick_precision("fp32", CPU) == torch.float32 and pick_precision("bf16", CPU) == torch.bfloat16


def test_an_unclear_declaration_is_refused(monkeypatch):
    monkeypatch.setenv("PLAYGROUND_BF16", "yes")
    with pytest.raises(ValueError, match="PLAYGROUND_BF16 is 'yes': set it to 1 or 0"):
        has_fast_bf16(CPU)


@pytest.mark.parametrize("name", ["gpu", "meta", "xpu", "", "cpu:x"])
def test_a_device_nobody_has_is_refused_by_name(name):
    with pytest.raises(ValueError, match="choose auto, cpu, cuda or mps"):
        pick_device(name)


def test_a_gpu_that_is_not_there_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert pick_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(ValueError, match="this machine has 2 CUDA devices, numbered from 0: not 'cuda:2'"):
        pick_device("cuda:2")


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
