"""What goes wrong outside a run: a kill between saves, a full disk, a reader who leaves, wishes beyond machines."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors import SafetensorError

from playground.cli import main
from playground.cli import train as command
from playground.storage import load
from tests.cli.refusals import check_refused

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--set", "d_model=16", "n_layers=1", "context_length=16", "batch_size=2", "eval_every=4", "eval_windows=2",
         "device=cpu", "precision=fp32"]  # fmt: skip


def train(out: Path, *more: str) -> int:
    return main(
        ["train", "--language", "brackets", "--steps", "8", "--preset", "tiny", "--out", str(out), *SMALL, *more]
    )


def test_a_full_disk_is_a_sentence(tmp_path, monkeypatch, capsys):
    def full(*args, **more):
        raise SafetensorError("I/O error: No space left on device")

    monkeypatch.setattr(command, "save", full)
    assert train(tmp_path / "m") == 2
    assert "written: I/O" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--set", "d_model=1000000"], "at most"),
        (["--set", "context_length=100000000"], "at most"),
        (["--set", "batch_size=99999999999"], "100,000 windows"),
        (["--vocab-size", "1000000000"], "1,000,000"),
        (["--text", ""], "folder: name"),
        (["--text", os.devnull], "read again"),
        (["--preset", ""], "called ''"),
    ],
)
def test_what_no_machine_has_is_refused_before_anything_is_made(tmp_path, capsys, asked, said):
    began = time.process_time()
    check_refused(capsys, ["train", "--out", tmp_path / "m", *asked], said)
    assert time.process_time() - began < 2 and not (tmp_path / "m").exists()


def test_a_reader_who_leaves_does_not_end_the_run(tmp_path):
    (tmp_path / "text.txt").write_text("the lamp burns, the sea turns, the night learns. " * 40)
    text = ["--text", str(tmp_path / "text.txt")]
    command = [sys.executable, "-m", "playground", "train", *text, "--steps", "8", "--preset", "tiny"]
    run = subprocess.Popen(
        [*command, "--out", str(tmp_path / "m"), *SMALL], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    run.stdout.readline()
    run.stdout.close()
    assert run.wait(120) == 0
    assert load(tmp_path / "m").history.last_step == 8


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
@pytest.mark.parametrize("program", [["-m", "playground", "info", "nowhere"], ["app.py", "--port", "7959"]])
@pytest.mark.parametrize("seconds", [0.4, 0.9])
def test_an_interrupt_while_the_program_starts_is_quiet(program, seconds):
    run = subprocess.Popen([sys.executable, *program], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    time.sleep(seconds)  # in which torch's C++ starts, or Python's part of it, or gradio
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=60)[1]
    assert "Traceback" not in said and run.returncode in (2, 130, -signal.SIGINT)  # or before Python listens
