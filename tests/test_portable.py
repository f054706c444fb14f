"""What the page and the shell need is there on Linux, macOS and Windows, and in every Python from 3.10 on."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = sorted([*(ROOT / "playground").rglob("*.py"), ROOT / "app.py"])
EVERYTHING = [
    *SHIPPED,
    *(path for room in ("tests", "benchmarks", "checkpoints") for path in (ROOT / room).rglob("*.py")),
]


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 10))


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Each call with the last part of the name it calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func).rsplit(".", 1)[-1], node


def mode_of(name: str, call: ast.Call) -> str:
    """How a call of open(file, mode) or path.open(mode) opens; "r" unless it says so."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"] or call.args[
        isinstance(call.func, ast.Name) :
    ]
    return str(getattr(given[0], "value", "r")) if given else "r"


def without_encoding(tree: ast.AST) -> list[str]:
    """Calls that read or write text in whatever encoding a machine prefers, which is not UTF-8 on Windows."""
    found = []
    for name, call in calls(tree):
        text = name in ("read_text", "write_text") or (
            name == "open" and re.fullmatch("[rwax+t]+", mode_of(name, call))
        )
        named = ("open" not in name) or ast.unparse(call.func) == "open" or "path" in ast.unparse(call.func).lower()
        if text and named and not any(keyword.arg == "encoding" for keyword in call.keywords):
            found.append(ast.unparse(call))
    return found


def test_every_file_is_python_3_10():
    for path in EVERYTHING:
        parsed(path)


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


def test_texts_are_read_and_written_in_an_encoding_of_our_own_choice():
    found = {str(path.relative_to(ROOT)): without_encoding(parsed(path)) for path in SHIPPED}
    assert not {path: slips for path, slips in found.items() if slips}
