"""Small runs for the tests of this folder: seconds to train, or made of nothing but events."""

import dataclasses
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playground.data.tokenizers import CharTokenizer
from playground.model import ModelConfig, Transformer
from playground.service.board import Board
from playground.service.data_folder import LETTERS, DataFolder
from playground.service.job import Job
from playground.service.limits import LOCAL, Limits
from playground.service.models import Registry
from playground.service.runs import Learned, Prepared, RunSpec, Source, run_training
from playground.training import Evaluated, Finished, Started, Stepped, TrainConfig

MODEL = ModelConfig(vocab_size=32, context_length=16, n_layers=1, d_model=16, n_heads=2)
TEXT = "the cat sat on the mat and the dog sat on the cat. " * 40


def known(name: str) -> str:
    """A visitor whom every page of these tests knows."""
    drawn = (name + "-" * LETTERS)[:LETTERS]
    return drawn + DataFolder()._signature(drawn)


ANNA, BERT = known("anna"), known("bert")


def small_spec(*, text: str = TEXT, steps: int = 30, **training) -> RunSpec:
    """A run that takes well under a second."""
    settings = {"batch_size": 4, "eval_every": 10, "eval_windows": 8, "warmup_steps": 2, "sample_prompt": "the "}
    config = TrainConfig(**{"steps": steps, **settings, **training})
    return RunSpec(Source("text", text=text), MODEL, config)


def small_limits(**changes) -> Limits:
    """Local limits with some changed."""
    return dataclasses.replace(LOCAL, **changes)


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for something that other threads bring about."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def at_once(count: int, do: Callable[[int], object]) -> None:
    """All of these at the same moment. Raises what one of them raises."""
    barrier = threading.Barrier(count)

    def one(i: int) -> None:
        barrier.wait()
        do(i)

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(one, range(count)))


def house(folder: Path, runner: Callable = run_training, *, data: DataFolder | None = None, **limits) -> Board:
    """A board without any model of ours."""
    bounds = small_limits(**limits)
    return Board(Registry(bounds, shipped=folder / "none", data=data), bounds, runner)


def ended(job: Job, seconds: float = 30.0) -> Job:
    """The same job once it is over, put away and all."""
    until(lambda: job.settled, seconds)
    return job


class ScriptedRunner:
    """A runner whose threads go on only as the test says: prepared, then a step at a time, until stopped or `steps`."""

    def __init__(self, *, hold_preparing: bool = False):
        self.may_prepare = threading.Event()
        if not hold_preparing:
            self.may_prepare.set()
        self.calls = 0

    def __call__(self, spec, limits, *, folder=None, resume=False, should_stop=lambda: False):
        self.calls += 1
        assert self.may_prepare.wait(30)
        tokenizer = CharTokenizer("abcdefghijklmnopqrstuvwxyz .,!?\n")
        yield Prepared(MODEL, tokenizer, "hash", 100, 10, None, ())
        common = {"loss": 1.0, "learning_rate": 0.1, "gradient_norm": 1.0, "tokens_per_second": 10.0, "time_left": 1.0}
        started = {"n_parameters": 1, "tokens_per_step": 1, "device": "cpu", "precision": "float32", "compiled": False}
        yield Started(0, 0.0, steps=spec.training.steps, **started)
        yield Evaluated(0, 0.0, train_loss=3.0, val_loss=3.0)
        step = 0
        while step < spec.training.steps and not should_stop():
            step += 1
            yield Stepped(step, 0.01 * step, **common)
            time.sleep(0.002)
        reason = "done" if step == spec.training.steps else "stopped"
        yield Evaluated(step, 0.01 * step, train_loss=1.0, val_loss=1.0)
        yield Finished(step, 0.01 * step, reason=reason, steps=spec.training.steps, val_loss=1.0)
        yield Learned(Transformer(MODEL))
