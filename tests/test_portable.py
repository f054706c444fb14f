"""What the page and the shell need is there on Linux, macOS and Windows, and in every Python from 3.10 on."""

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_every_file_is_python_3_10_and_reads_and_writes_texts_in_an_encoding_of_our_own_choice():
    rooms = ("playground", "tests", "benchmarks", "checkpoints")
    for path in (ROOT / "app.py", *(path for room in rooms for path in (ROOT / room).rglob("*.py"))):
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 10))
    # Not in whatever a machine prefers, which is not UTF-8 on Windows.
    rule = ["--isolated", "--preview", "--select", "PLW1514", "playground", "app.py"]
    found = subprocess.run([sys.executable, "-m", "ruff", "check", *rule], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def test_the_shell_writes_what_its_terminal_lacks(tmp_path):
    (tmp_path / "text.txt").write_text("日本の夜は静かだ。" * 80, encoding="utf-8")
    small = ["d_model=16", "n_layers=1", "context_length=16", "batch_size=2", "eval_windows=2", "eval_every=2"]
    command = ["train", "--text", tmp_path / "text.txt", "--out", tmp_path / "m", "--steps", 2, "--prompt", "夜"]
    shell = subprocess.run(
        [sys.executable, "-m", "playground", *map(str, command), "--preset", "tiny", "--set", *small],
        env={**os.environ, "PYTHONIOENCODING": "cp1252"}, cwd=ROOT, capture_output=True, text=True, timeout=120,
        encoding="cp1252",
    )  # fmt: skip
    assert shell.returncode == 0, shell.stderr
    assert "  | ?" in shell.stdout
