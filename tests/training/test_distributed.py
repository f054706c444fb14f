"""Laws of training in several processes: the losses of one, one set of weights, and a lost process loses nothing."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from playground.cli import main
from playground.model import Pass, Transformer
from playground.training import Stepped, loss_of, train, workers
from playground.training.distributed import ALONE, Alone, Group, WorkerLost
from playground.training.optimizers import make_optimizers

from .several import STREAM, TINY, TRAINING, record, runs

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(arguments: list, rank: int, size: int, port: int) -> subprocess.Popen:
    """Python with these arguments as one of several processes, as torchrun would start it."""
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "MASTER_PORT": port}
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", **{name: str(value) for name, value in place.items()}}
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What each of two processes recorded, and what one did."""
    folder, port, other_port = tmp_path_factory.mktemp("two"), free_port(), free_port()
    processes = [start(["-m", "tests.training.several", folder, other_port], rank, 2, port) for rank in range(2)]
    alone = record()
    for process in processes:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    return *(json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)), alone


@pytest.mark.parametrize("name", [name for name in runs() if name != "dropout"])
def test_two_processes_make_the_losses_of_one(two, name):
    first, second, alone = two
    expected = alone[name]
    tolerance = 2e-3 if name == "muon" else 2e-5  # Muon's iteration runs in bf16 where the processor has it
    for process in (first, second):
        found = process["records"][name]
        for what in ("losses", "evaluations", "load"):
            assert torch.allclose(torch.tensor(found[what]), torch.tensor(expected[what]), atol=tolerance), what
        assert torch.allclose(torch.tensor(found["norms"]), torch.tensor(expected["norms"]), rtol=20 * tolerance)


def test_all_processes_hold_the_same_weights_to_the_last_bit(two):
    first, second, _ = two
    for name in runs():
        assert first["records"][name]["weights"] == second["records"][name]["weights"], name


def test_each_process_draws_its_own_dropout(two):
    """What two processes do with dropout, done by hand in one: each row's noise from its own process's generator."""
    first, _, alone = two
    corpus, shape, config = runs()["dropout"]
    model = Transformer(shape, seed=1)
    (optimizer,) = make_optimizers(model, config)
    batches = torch.Generator().manual_seed(config.seed)
    noise = [torch.Generator().manual_seed(Group(rank, 2).noise_seed(config.seed + 1, 0)) for rank in range(2)]
    expected = []
    for step in range(1, config.steps + 1):
        x, y = corpus.batch("train", config.batch_size, shape.context_length, batches)
        rows = [slice(rank, None, 2) for rank in range(2)]
        parts = [loss_of(model(x[r], Pass(generator=rng)).logits, y[r], y.numel()) for r, rng in zip(rows, noise)]
        loss = sum(parts)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.gradient_clip)
        for group in optimizer.param_groups:
            group["lr"] = group["peak_lr"] * config.rate_at(step)
        optimizer.step()
        expected.append(loss.item())
    assert first["records"]["dropout"]["losses"] == pytest.approx(expected, abs=2e-5)
    assert first["records"]["dropout"]["losses"] != pytest.approx(alone["dropout"]["losses"], abs=1e-3), "other draws"
    seeds = {Group(rank, 4).noise_seed(7, step) for rank in range(4) for step in (0, 50)}
    assert len(seeds) == 8 and Group(0, 4).noise_seed(7, 0) == ALONE.noise_seed(7, 0)


def test_a_process_that_hangs_ends_the_others_wait(two):
    assert two[0]["hung"] == ["lost", 2, 0]


def test_processes_that_do_not_fit_together_say_so(two):
    for process in two[:2]:
        text, batch = process["refused"]
        assert "do not have the same text" in text
        assert batch == "a batch of 1 cannot be shared out among 2 processes: raise batch_size to at least 2"


def test_every_row_is_read_by_exactly_one_process():
    rows = torch.arange(11)[:, None]
    for size in (2, 3, 16):
        read = torch.cat([Group(rank, size).rows(rows) for rank in range(size)])
        assert sorted(read.flatten().tolist()) == list(range(11))


def test_without_torchrun_there_is_nobody_else(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")  # some clusters set it for other reasons
    with workers("cpu") as together:
        assert together is ALONE


class Leaves(Alone):
    """One of two processes whose partner is gone after some steps, in the middle of one."""

    size = 2

    def __init__(self, after: int):
        self.left = after

    def add_up(self, tensors):
        if len(tensors) > 1:  # a step's gradients
            self.left -= 1
            if self.left < 0:
                raise WorkerLost("connection closed")


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_loss_in_the_middle_of_a_step_is_resumed_on_the_same_curve(tmp_path, dropout):
    def model():
        return Transformer(TINY.replace(dropout=dropout), seed=1)

    def losses(events):
        return [event.loss for event in events if isinstance(event, Stepped)]

    whole = losses(train(model(), STREAM, TRAINING))
    before = list(train(model(), STREAM, TRAINING, folder=tmp_path, workers=Leaves(after=4)))
    assert (before[-1].reason, before[-1].step, before[-1].steps) == ("lost", 4, 6)
    after = losses(train(model(), STREAM, TRAINING, folder=tmp_path, resume=True))
    assert losses(before) + after == whole


SMALL = ["--preset", "tiny", "--set", "d_model=16", "context_length=16", "batch_size=4", "eval_every=0",
         "eval_windows=4", "precision=fp32", "optimizer=adamw", "schedule=constant"]  # fmt: skip


def test_torchrun_trains_and_a_killed_process_leaves_a_run_that_one_process_finishes(tmp_path, capsys):
    out = tmp_path / "m"
    (tmp_path / "text.txt").write_text("a stitch in time saves nine, and nine in time make ten. " * 60)
    command = ["train", "--text", str(tmp_path / "text.txt"), "--json", *SMALL]
    launcher = subprocess.Popen(
        [*TORCHRUN, "-m", "playground", *command, "--out", str(out), "--steps", "100000"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    events, killed_at = [], None
    try:
        for line in launcher.stdout:
            events.append(json.loads(line))  # nothing but one process's events
            if events[-1]["step"] == 20 and killed_at is None:
                os.kill(worker_of(launcher.pid, rank=1), signal.SIGKILL)
                killed_at = time.monotonic()
        assert launcher.wait(timeout=60) != 0
        assert time.monotonic() - killed_at < 60, "the others hung"
    finally:
        launcher.terminate()
        launcher.wait()
    last = events[-1]
    assert last["event"] == "finished" and last["reason"] == "lost" and "One of the 2 processes" in last["message"]
    together = [event["loss"] for event in events if event["event"] == "stepped"]
    assert len(together) == last["step"] >= 20

    def by_one(*arguments) -> list[float]:
        assert main([*arguments, "--json", "--steps", str(last["step"] + 5)]) == 0
        lines = map(json.loads, capsys.readouterr().out.splitlines())
        return [event["loss"] for event in lines if event["event"] == "stepped"]

    alone = by_one(*command, "--out", str(tmp_path / "alone"))
    resumed = by_one("train", "--resume", "--out", str(out))
    assert len(resumed) == 5
    assert torch.allclose(torch.tensor(together + resumed), torch.tensor(alone), atol=1e-3)


def worker_of(launcher: int, rank: int) -> int:
    """The id of the process that torchrun started with this rank."""
    threads = Path(f"/proc/{launcher}/task").glob("*/children")
    for child in (child for thread in threads for child in thread.read_text().split()):
        if f"\0RANK={rank}\0" in Path(f"/proc/{child}/environ").read_text():
            return int(child)
    raise AssertionError("no such process")
