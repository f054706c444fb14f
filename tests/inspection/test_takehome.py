"""The head a visitor takes home: it runs without torch, agrees with the model, and would say if it did not."""

import inspect
import io
import subprocess
import sys

import numpy as np
import pytest

from playground.inspection import Look, byhand
from playground.inspection.receipts import packed_head
from tests.inspection.test_receipts import look_at
from tests.model.configs import VARIANTS

ARRAYS, SCRIPT = "head.npz", "head.py"
NAMES = ("one key head, qk-norm, relu2", "separate heads", "sees the future")


def take_home(look: Look, layer: int, head: int) -> dict[str, bytes]:
    return {ARRAYS: packed_head(look, layer, head), SCRIPT: inspect.getsource(byhand).encode()}


def run(folder, files: dict[str, bytes]) -> subprocess.CompletedProcess:
    """Run the script in a folder of its own where torch and this package cannot be imported."""
    for name, contents in files.items():
        (folder / name).write_bytes(contents)
    for barred in ("torch", "playground"):
        (folder / f"{barred}.py").write_text("raise ImportError('not here')")
    return subprocess.run([sys.executable, SCRIPT], cwd=folder, capture_output=True, text=True, timeout=60, env={})


@pytest.mark.parametrize("name", NAMES)
def test_the_script_runs_alone_and_agrees(tmp_path, name):
    done = run(tmp_path, take_home(look_at(VARIANTS[name]), 1, 2))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("largest difference from the model's own forward") == 2
    assert "7 tokens, width 16, 4 per head" in done.stdout


def test_the_script_fails_where_the_numbers_do_not_agree(tmp_path):
    files = take_home(look_at(VARIANTS["rotary"]), 0, 1)
    arrays = dict(np.load(io.BytesIO(files[ARRAYS])))
    arrays["W_q"] = arrays["W_q"] + 0.2
    changed = io.BytesIO()
    np.savez(changed, **arrays)
    done = run(tmp_path, {**files, ARRAYS: changed.getvalue()})
    assert done.returncode != 0 and "AssertionError: pattern" in done.stderr


def test_the_arrays_are_small_and_hold_no_objects():
    files = take_home(look_at(VARIANTS["learned"]), 0, 0)
    with np.load(io.BytesIO(files[ARRAYS]), allow_pickle=False) as arrays:
        assert arrays["x"].shape == (7, 16) and arrays["W_q"].shape == (16, 4) and arrays["W_o"].shape == (4, 16)
        assert arrays["tokens"].tolist() == list("bcdbcea")
    assert len(files[ARRAYS]) < 8000
