"""The README stays true: its layout names files that exist, its commands are the ones CI runs, its script works."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_test_command_is_what_ci_runs():
    command = next(block.strip() for block in map(str.strip, code_blocks("bash")) if "pytest" in block)
    assert command in (ROOT / ".ci" / "run").read_text()


def test_the_front_matter_is_what_a_space_needs():
    front = README.split("---")[1]
    for key in ("title:", "sdk: gradio", "sdk_version:", "python_version:", "app_file: app.py", "suggested_hardware:"):
        assert key in front
    short = re.search(r"short_description: (.*)", front).group(1)
    assert len(short) <= 60  # what the Hub accepts


def test_every_python_file_has_its_line_in_the_layout():
    layout = README.split("## The house")[1].split("```")[1]
    rooms_as_a_whole = {"cli", "inspection", "languages", "tabs", "figures"}
    for path in (ROOT / "playground").rglob("*.py"):
        relative = path.relative_to(ROOT / "playground")
        if path.name not in ("__init__.py", "errors.py") and not rooms_as_a_whole & set(relative.parts):
            assert path.name in layout, f"{relative} is missing from the README's layout"


@pytest.mark.parametrize("name", re.findall(r"(?<=[\s])([a-z_]+\.py)\b", README))
def test_every_file_the_readme_names_exists(name):
    assert any(ROOT.glob(f"**/{name}"))


def test_the_script_runs(tmp_path, monkeypatch, capsys):
    script = next(block for block in code_blocks("python") if "gradio_client" not in block)
    (tmp_path / "my_text.txt").write_text("The sun rises over the hill and sets over the sea. " * 60)
    monkeypatch.chdir(tmp_path)
    exec(compile(script.replace("steps=300", "steps=3"), "README", "exec"), {})
    printed = capsys.readouterr().out.strip().splitlines()
    assert (printed[0].startswith("0 ") and "nats" in printed[0]) or "Worse" in printed[0]
