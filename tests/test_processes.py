"""Small steps are computed alone, only who asks sets the process, and devices are those that a machine has."""

import ctypes
import sys
import threading

import pytest
import torch

from playground import processes
from playground.data import corpus_from_text
from playground.devices import has_fast_bf16, pick_device, pick_precision
from playground.model import ModelConfig, Transformer
from playground.processes import SMALL_STEP, Aside, threads_for, threads_used
from playground.training import TrainConfig, train


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


def helpers_of(step: int) -> tuple[tuple[int, int], int]:
    """Threads during such a step, in its thread and another one, and afterwards in its own."""

    def job():
        with threads_for(step):
            torch.ones(64, 64) @ torch.ones(64, 64)
            during = torch.get_num_threads(), in_a_thread(torch.get_num_threads)
        return during, torch.get_num_threads()

    return in_a_thread(job)


def test_small_steps_are_computed_alone_and_among_many_only_large_ones_have_helpers(two_threads, monkeypatch):
    assert helpers_of(SMALL_STEP - 1) == ((1, 2), 2) and torch.get_num_threads() == 2
    assert helpers_of(SMALL_STEP)[0] == (2, 2)
    monkeypatch.setattr(processes, "_helpers", None)
    processes.leave_helpers_to_training()
    assert helpers_of(SMALL_STEP) == ((2, 1), 1) and torch.get_num_threads() == 1
    assert (threads_used(SMALL_STEP), threads_used(SMALL_STEP - 1)) == (2, 1)
    torch.set_num_threads(2)
    processes.leave_helpers_to_training(at_once=3)
    assert threads_used(SMALL_STEP) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is nothing to set")
def test_a_run_does_not_set_the_whole_process(monkeypatch):
    """Whoever imports the package as a library keeps torch and its memory as they were."""
    plain = ctypes.CDLL

    def watched(name, *options):
        assert "libc" not in str(name), "the process's memory was set"
        return plain(name, *options)

    monkeypatch.setattr(ctypes, "CDLL", watched)
    with pytest.raises(AssertionError):
        processes.tune_process()
    corpus = corpus_from_text("to be or not to be " * 40)
    model = Transformer(ModelConfig(vocab_size=corpus.vocab_size, d_model=8, n_heads=2, n_layers=1, context_length=8))
    assert list(train(model, corpus, TrainConfig(steps=1, eval_windows=1)))[-1].reason == "done"


def test_a_small_model_decodes_alone_also_after_its_first_operation(two_threads):
    def after_an_operation() -> int:
        torch.randn(300, 300) @ torch.randn(300, 300)
        return torch.get_num_threads()

    processes.lone_threads.cache_clear()  # its threads begin anew, beside two of the process
    try:
        assert processes.in_decoding_threads(1000, torch.device("cpu"), after_an_operation) == 1
        assert torch.get_num_threads() == 2
    finally:
        processes.lone_threads.cache_clear()


def test_work_put_aside_is_done_by_an_idle_thread_or_by_whoever_wants_it():
    """Never by waiting for a thread that is busy elsewhere."""
    pool, free, begun = processes.lone_threads(), threading.Event(), threading.Semaphore(0)
    aside = Aside(lambda: (begun.release(), threading.get_ident())[1], True)
    assert begun.acquire(timeout=30)
    assert aside.result() != threading.get_ident()
    busy = [pool.submit(lambda: (begun.release(), free.wait(30))) for _ in range(pool._max_workers)]
    try:
        assert all(begun.acquire(timeout=30) for _ in busy)
        late = Aside(threading.get_ident, True)
        assert not late.underway
        assert late.result() == threading.get_ident()
        assert Aside(threading.get_ident, False).result() == threading.get_ident()
    finally:
        free.set()


CPU = torch.device("cpu")


@pytest.mark.parametrize(("declared", "dtype"), [("1", torch.bfloat16), ("0", torch.float32)])
def test_what_is_declared_overrules_the_hardware(declared, dtype, monkeypatch):
    monkeypatch.setenv("PLAYGROUND_BF16", declared)
    assert has_fast_bf16(CPU) == (declared == "1") and pick_precision("auto", CPU) == dtype
    assert pick_precision("fp32", CPU) == torch.float32 and pick_precision("bf16", CPU) == torch.bfloat16


@pytest.mark.parametrize("name", ["gpu", "meta", "xpu", "", "cpu:x"])
def test_a_device_nobody_has_is_refused_by_name(name):
    with pytest.raises(ValueError, match="choose auto"):
        pick_device(name)


def test_a_gpu_that_is_not_there_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert pick_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(ValueError, match=r"2.*0.*'cuda:2'"):
        pick_device("cuda:2")
