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
from playground.storage import load

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--set", "d_model=16", "n_layers=1", "context_length=16", "batch_size=2", "eval_every=4", "eval_windows=2",
         "device=cpu", "precision=fp32"]  # fmt: skip


def train(out: Path, *more: str) -> int:
    return main(
        ["train", "--language", "brackets", "--steps", "8", "--preset", "tiny", "--out", str(out), *SMALL, *more]
    )


def test_a_full_disk_is_a_sentence_and_a_reader_who_leaves_does_not_end_the_run(tmp_path, monkeypatch, capsys):
    def full(*args, **more):
        raise SafetensorError("I/O error: No space left on device")

    monkeypatch.setattr("playground.cli.train.save", full)
    assert train(tmp_path / "m") == 2
    assert "written: I/O" in capsys.readouterr().err
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
