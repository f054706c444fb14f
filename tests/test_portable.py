"""What the page and the shell need is there on Linux, macOS and Windows, and in every Python from 3.10 on."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = sorted([*(ROOT / "playground").rglob("*.py"), ROOT / "app.py"])
EVERYTHING = [
    *SHIPPED,
    *(path for room in ("tests", "benchmarks", "checkpoints") for path in (ROOT / room).rglob("*.py")),
]
POSIX_ONLY = set(
    re.findall(
        r"\S+",
        """
        fcntl grp posix pty pwd resource syslog termios tty
        os.chown os.fchmod os.fork os.forkpty os.getloadavg os.getpgid os.getuid os.geteuid os.killpg os.mkfifo os.nice
        os.sched_getaffinity os.sched_setaffinity os.setpgid os.setsid os.sysconf os.uname os.wait4
        signal.SIGALRM signal.SIGCHLD signal.SIGHUP signal.SIGKILL signal.SIGQUIT signal.SIGUSR1 signal.SIGUSR2
        signal.alarm signal.pause signal.setitimer
        """,
    )
)


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


def posix_only(tree: ast.AST) -> set[str]:
    """Modules and names used that Windows does not have."""
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            used |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            used |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute):
            used.add(ast.unparse(node))
    return used & POSIX_ONLY


def forced_without_right(tree: ast.AST) -> list[str]:
    """Files opened for reading only and forced to disk, which Windows refuses."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.With) and any(name == "fsync" for part in node.body for name, _ in calls(part)):
            found += [
                ast.unparse(call)
                for item in node.items
                for name, call in calls(item.context_expr)
                if name == "open" and not set(mode_of(name, call)) & set("wax+")
            ]
    return found


def test_slips_are_seen():
    assert len(without_encoding(ast.parse("open('a')\nopen('a', mode='w')\npath.open('w')\np.read_text()"))) == 4
    assert not without_encoding(ast.parse("open('a', 'rb')\npage.open('train')\nopen('a', encoding='utf-8')"))
    assert posix_only(ast.parse("import os, fcntl\nos.fork()\nfrom signal import SIGKILL")) == {
        "fcntl", "os.fork", "signal.SIGKILL",
    }  # fmt: skip
    assert forced_without_right(ast.parse("with open(p, 'rb') as f:\n    os.fsync(f.fileno())"))
    assert not forced_without_right(ast.parse("with open(p, 'r+b') as f:\n    os.fsync(f.fileno())"))


@pytest.mark.parametrize("slip", [without_encoding, posix_only, forced_without_right])
def test_what_ships_runs_on_every_system(slip):
    found = {str(path.relative_to(ROOT)): slip(parsed(path)) for path in SHIPPED}
    assert not {path: slips for path, slips in found.items() if slips}


def test_the_documented_scripts_do_too():
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *ROOT.glob("docs/*.md"))]
    blocks = [block for page in pages for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL)]
    assert len(blocks) >= 3 and not [slip for block in blocks for slip in without_encoding(ast.parse(block))]


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
