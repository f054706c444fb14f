"""Whatever is saved can be quoted: it says what it is of, has a name of its own, and holds the numbers themselves."""

import ast
import re
from collections import Counter
from html import unescape
from pathlib import Path

import numpy as np

from playground import __version__
from playground.figures import maps, parts, shapes
from playground.ui import chart, theme
from playground.ui.chart import show
from playground.ui.quoted import about, quoted
from tests.figures.decoded import numbers_of

UI = Path(chart.__file__).parent
FIGURE = shapes.figure([], 100)


def test_a_line_names_what_it_is_of_and_ends_with_the_version():
    said = about(model="Tiny stories", step=2400, prompt="a\nb", layer=2, head=None)
    assert (
        said["line"] == f"Tiny stories · step 2,400 · prompt “a ⏎ b” · layer 2 · Transformer Playground {__version__}"
    )
    assert said["name"] == "tiny-stories-step2400-layer2", "what tells it from the next head's file"


def test_charts_and_saved_tables_are_quoted_and_nothing_else():
    table = theme.table(("a",), [("b",)], save="numbers")
    facts = {"model": "M & <b>", "head": 1}
    drawn, shown = quoted(show(FIGURE, "Words."), **facts), quoted(table, **facts)
    assert drawn["about"]["line"].startswith("M &amp; &lt;b&gt; · head 1 · ")
    assert unescape(unescape(re.search(r'data-about="(.*?)"', shown)[1])).startswith("M & <b> · head 1 · ")
    assert 'data-of="m-b-head1"' in shown and "<b>" not in f"{drawn} {shown}"
    assert [quoted(each, **facts) for each in ("words", {"value": 3}, None)] == ["words", {"value": 3}, None]


def test_no_two_files_have_one_name():
    """Of charts and tables: a folder of what a student saved has to be told apart a week later."""
    calls = [n for p in UI.rglob("*.py") for n in ast.walk(ast.parse(p.read_text("utf-8"))) if isinstance(n, ast.Call)]
    words = [(k.arg, k.value.value) for c in calls for k in c.keywords if isinstance(k.value, ast.Constant)]
    names = Counter(name for key, name in words if key in ("save", "save_name"))
    assert len(names) > 30 and [name for name, times in names.items() if times > 1] == []


def test_the_numbers_are_saved_and_not_their_roundings_roots_or_logarithms():
    def saved(trace) -> dict[str, np.ndarray]:
        return {title: numbers_of(values) for title, values in trace["meta"]["saved"].items()}

    cell = theme.Cell("821 kB", 821_043.0)
    assert 'data-value="821043.0">821 kB<' in theme.table(("bytes",), [(cell,)], save="x")
    values = np.array([[0.25, -4.0], [1e-9, 0.1]])
    np.testing.assert_array_equal(saved(parts.part_map(values, ["a", "b"], "")["data"][0])[""], values)
    records = [{"step": s, "norms": {"a": 1 / 3 + s}} for s in (0, 1)]
    drawn = maps.gradient_map(*maps.gradient_table(records))["data"][0]
    assert saved(drawn)["gradient norm"].tolist() == [[1 / 3, 4 / 3]]
