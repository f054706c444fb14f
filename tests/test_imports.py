"""How the house hangs together: no imports in a circle, and none against the arrows of docs/architecture.md."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = {module_name(path): path for path in sorted((ROOT / "playground").rglob("*.py"))}

ONLY_FROM = {
    "gradio": {"ui"},
    "plotly": {"ui"},
    "starlette": {"ui"},
    "spaces": {"service"},
    "transformers": {"storage"},
    "tokenizers": {"data", "storage"},
    "tiktoken": {"data", "storage"},
    "huggingface_hub": {"data", "storage", "ui"},
}
"""Which rooms may import a library."""


def packages_above(module: str) -> list[str]:
    """The packages that are imported before this module is, from the outermost in."""
    parts = module.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts))]


def statements(node: ast.AST, typed: bool) -> Iterator[ast.AST]:
    """Everything below this node that runs, functions' insides too; where `typed`, also what type checkers read."""
    for child in ast.iter_child_nodes(node):
        if not typed and isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from statements(child, typed)


@cache
def imported(module: str, typed: bool = False) -> frozenset[str]:
    """What the module names in its imports: modules of ours by their full names, others as they are written."""
    found, path = set(), PATHS[module]
    home = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in statements(ast.parse(path.read_text(encoding="utf-8")), typed):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            here = home[: len(home) - node.level + 1] if node.level else []
            source = ".".join([*here, *([node.module] if node.module else [])])
            full = {f"{source}.{alias.name}" for alias in node.names}
            found |= {name if name in PATHS else source for name in full}
    return frozenset(found)


def ours(module: str) -> set[str]:
    """Modules of ours that have to be imported for this one: those it names, and the packages around them."""
    named = {name for name in imported(module) if name in PATHS}
    around = {package for name in named for package in packages_above(name)}
    return (named | around) - {module, *packages_above(module)}


def test_no_circle_every_room_in_its_place_and_libraries_in_their_rooms():
    TopologicalSorter({module: ours(module) for module in PATHS}).prepare()  # raises CycleError, which names them
    rooms = {module.split(".")[1] for module in PATHS if module != "playground"}
    assert rooms - {"__main__"} == set().union(*chains()[0])
    for module in PATHS:
        room = (*module.split("."), "")[1]
        libraries = {name.split(".")[0] for name in imported(module)}
        strays = {library for library in libraries if room not in ONLY_FROM.get(library, {room})}
        assert not strays, f"{module} imports {strays}"


def chains() -> list[list[set[str]]]:
    """The arrows of docs/architecture.md: chains of steps, each of one or more names."""
    drawing = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawn = re.search(r"Imports run one way: (.*?)\n\n", drawing, re.DOTALL)
    return [
        [set(step.split(", ")) for step in " ".join(chain.split()).split(" → ")]
        for chain in re.findall(r"`([^`]*→[^`]*)`", drawn.group(1))
    ]


def against(chain: list[set[str]], of: str) -> list[str]:
    """Imports between the rooms directly in package `of` that do not run from left to right along the chain."""
    place = {f"{of}.{room}": step for step, rooms in enumerate(chain) for room in rooms}

    def room(module: str) -> str | None:
        return next((room for room in place if f"{module}.".startswith(f"{room}.")), None)

    edges = [(module, other) for module in PATHS for other in ours(module) if room(module) and room(other)]
    return [
        f"{module} imports {other}"
        for module, other in edges
        if room(module) != room(other) and place[room(other)] >= place[room(module)]
    ]


@pytest.mark.parametrize(("n", "of"), [(0, "playground"), (1, "playground.ui")])
def test_imports_run_along_the_arrows(n, of):
    assert not against(chains()[n], of)


@pytest.mark.parametrize(
    ("room", "allowed"), [("model", {"torch"}), ("engine", {"torch"}), ("devices", {"torch"}), ("figures", {"numpy"})]
)
def test_some_rooms_need_one_library(room, allowed):
    inside = [module for module in PATHS if f"{module}.".startswith(f"playground.{room}.")]
    needed = {name.split(".")[0] for module in inside for name in imported(module)} - {"playground"}
    assert inside and needed - sys.stdlib_module_names <= allowed
