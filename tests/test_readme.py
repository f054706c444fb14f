"""The README and docs stay true, their scripts work; all runs on Linux, macOS and Windows, on Python 3.10 and later."""

import ast
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAPERS = ("README.md", "benchmarks/README.md", *(path.relative_to(ROOT) for path in sorted(ROOT.glob("docs/*.md"))))
PAGES = {path: path.read_text(encoding="utf-8") for path in map(ROOT.joinpath, PAPERS)}
TREE = PAGES[ROOT / "docs" / "architecture.md"].split("## The source tree")[1].split("```")[1]
CODE = ("playground", "benchmarks", "checkpoints", "tests")
OURS = [ROOT / "app.py", *(path for folder in CODE for path in (ROOT / folder).rglob("*.py"))]


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_readme_is_short_and_names_the_command_and_the_gradio_that_ci_tests():
    command = next(block.strip() for block in map(str.strip, code_blocks("bash")) if "pytest" in block)
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert len(README.splitlines()) <= 110
    # One minor version of gradio everywhere: what is patched of it is looked up in that one.
    requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    allowed = SpecifierSet(re.search(r"^gradio(\S+)", requirements, re.MULTILINE)[1])
    tested, on_a_space = metadata.version("gradio"), re.search(r"sdk_version: (\S+)", README)[1]
    assert tested in allowed and on_a_space in allowed
    major, minor = map(int, tested.split(".")[:2])
    assert f"{major}.{minor + 1}.0" not in allowed and f"{major}.{minor - 1}.9" not in allowed


def layout() -> dict[str, list[str]]:
    """Each file and folder of the tree, a folder's name ending with "/", and the files that its line names."""
    paths, above = {}, []  # above: (indent, path) of the folders that the line is in
    for line in TREE.strip("\n").splitlines():
        indent = len(line) - len(line.lstrip())
        name, says = line.split(maxsplit=1)
        above = [(depth, path) for depth, path in above if depth < indent]
        path = (above[-1][1] if above else "") + name
        assert path not in paths, f"{path} has two lines"
        paths[path] = [path + file for file in re.findall(r"[\w*/]+(?:\.py|/)(?=[:;,. ])", says)]
        above += [(indent, path)] if name.endswith("/") else []
    return paths


def test_every_file_says_what_it_is_in_one_line_and_has_its_line_in_the_tree():
    folders = {f"{path.parent.relative_to(ROOT).as_posix()}/" for path in (ROOT / "playground").rglob("*.py")}
    assert folders | {"checkpoints/", "benchmarks/", "tests/"} <= layout().keys()
    assert len(layout()) > 25
    named = [path for line, files in layout().items() for path in (line, *files)]
    assert not [path for path in named if not list(ROOT.glob(path.rstrip("/")))]
    # The first line of its docstring: short enough to be read in a list of files, and whole.
    files = [path for path in OURS if path.stat().st_size or "tests" not in path.relative_to(ROOT).parts]
    said = [(path, ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "\n") for path in files]
    assert len(said) > 300 and not [path for path, words in said if "\n" in words.split("\n\n")[0]]


def test_every_file_named_in_the_docs_exists_and_every_link_leads_somewhere():
    named = {name for page in PAGES.values() for name in re.findall(r"[\w.-]+/[\w./-]+\.(?:py|md|txt|png)\b", page)}
    named = {name for name in named if name.split("/")[0] in (*CODE, "docs")}
    assert len(named) > 12 and not [name for name in named if not (ROOT / name).exists()]
    for page, words in PAGES.items():
        for link in re.findall(r"\]\((?!https?:)([^)]+)\)", words):
            path, _, place = link.partition("#")
            target = page.parent / path
            assert target.is_file(), f"{page.name}: {link}"
            headings = re.findall(r"^#+ (.*)", target.read_text(encoding="utf-8"), re.MULTILINE) if place else [""]
            assert place in {heading.lower().replace(" ", "-") for heading in headings}, f"{page.name}: {link}"


def test_the_script_runs(monkeypatch, capsys):
    script = next(block for block in code_blocks("python") if "gradio_client" not in block)
    monkeypatch.chdir(ROOT)
    exec(compile(script.replace("steps=300", "steps=3"), "README", "exec"), {})
    printed = capsys.readouterr().out.strip().splitlines()
    assert re.fullmatch(r"step 0: loss \d\.\d{3}, perplexity \d+\.\d", printed[0])
    assert any(line.startswith("The ") for line in printed)


def test_every_file_is_python_3_10_and_reads_and_writes_texts_in_an_encoding_of_our_own_choice():
    for path in OURS:
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
