"""The README stays true: its layout names files that exist, its commands are the ones CI runs, its script works."""

import ast
import re
from importlib import metadata
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_test_command_is_what_ci_runs():
    command = next(block.strip() for block in map(str.strip, code_blocks("bash")) if "pytest" in block)
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_front_matter_is_what_a_space_needs():
    front = README.split("---")[1]
    for key in ("title:", "sdk: gradio", "sdk_version:", "python_version:", "app_file: app.py", "suggested_hardware:"):
        assert key in front
    short = re.search(r"short_description: (.*)", front).group(1)
    assert len(short) <= 60  # what the Hub accepts


def layout() -> dict[str, list[str]]:
    """The README's tree: every file and folder that has a line, a folder's ending with "/", and what its line names."""
    paths, above = {}, []  # above: (indent, path) of the folders that the line is in
    for line in README.split("## The code")[1].split("```")[1].strip("\n").splitlines():
        indent = len(line) - len(line.lstrip())
        name, says = line.split(maxsplit=1)
        above = [(depth, path) for depth, path in above if depth < indent]
        path = (above[-1][1] if above else "") + name
        files = re.findall(r"[\w*/]+(?:\.py|/)(?=[:;,. ])", says) if path.startswith("playground/") else []
        paths[path] = [path + file for file in files]
        above += [(indent, path)] if name.endswith("/") else []
    return paths


def test_every_folder_of_code_has_its_line():
    folders = {f"{path.parent.relative_to(ROOT).as_posix()}/" for path in (ROOT / "playground").rglob("*.py")}
    assert folders <= layout().keys()


def test_every_path_of_the_tree_exists():
    assert len(layout()) > 25
    named = [path for line, files in layout().items() for path in (line, *files)]
    assert not [path for path in named if not list(ROOT.glob(path.rstrip("/")))]


def test_every_file_says_in_one_line_what_it_is():
    """The first line of its docstring, which is short enough to be read in a list of files."""
    for path in (ROOT / "playground").rglob("*.py"):
        first = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
        assert first or path.stat().st_size == 0, path


def test_every_file_named_outside_the_layout_exists():
    tree = README.split("## The code")[1].split("```")[1]
    named = set(re.findall(r"[\w./-]+\.(?:py|md|txt)\b", README.replace(tree, ""))) - {"my_text.txt"}
    assert len(named) > 5 and not [name for name in named if not (ROOT / name).exists()]


def test_the_page_is_tested_with_the_gradio_that_a_space_and_a_clone_install():
    """One minor version of gradio everywhere: what is patched of it is looked up in that one."""
    requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    allowed = SpecifierSet(re.search(r"^gradio(\S+)", requirements, re.MULTILINE)[1])
    tested, on_a_space = metadata.version("gradio"), re.search(r"sdk_version: (\S+)", README)[1]
    assert tested in allowed and on_a_space in allowed
    major, minor = map(int, tested.split(".")[:2])
    assert f"{major}.{minor + 1}.0" not in allowed and f"{major}.{minor - 1}.9" not in allowed


def test_the_script_runs(tmp_path, monkeypatch, capsys):
    script = next(block for block in code_blocks("python") if "gradio_client" not in block)
    text = "The sun rises over the hill and sets over the sea. " * 60
    (tmp_path / "my_text.txt").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(script.replace("steps=300", "steps=3"), "README", "exec"), {})
    printed = capsys.readouterr().out.strip().splitlines()
    assert printed[0].startswith("0 ") and "characters that occur alike" in printed[0]
