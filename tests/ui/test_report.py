"""Whatever is saved can be quoted, and a run's report is one page that says its own numbers and runs no script."""

import ast
import re
import xml.etree.ElementTree as ET
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import torch

from playground import __version__
from playground.data import Baselines
from playground.data.tokenizers import CharTokenizer
from playground.figures import maps, palette, parts, shapes
from playground.figures.curve_svg import curve_svg
from playground.figures.loss import Run
from playground.model import ModelConfig
from playground.service.views import RunView
from playground.training import Evaluated, Finished, GradientsMeasured, History, Sampled, Stepped
from playground.ui import chart, theme
from playground.ui.chart import show
from playground.ui.quoted import about, quoted
from playground.ui.tabs.train.report import report_html
from tests.figures.decoded import numbers_of

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'&"


def view(text: str = "Run 1 · Tiny stories") -> RunView:
    """A finished run with everything a report shows."""
    history = History()
    common = {"learning_rate": 0.1, "gradient_norm": 1.0, "tokens_per_second": 10.0, "time_left": 1.0}
    for step in range(1, 21):
        history.add(Stepped(step, step / 10, loss=3.0 / step, **common))
        if step % 5 == 0:
            history.add(Evaluated(step, step / 10, train_loss=2.0 / step, val_loss=2.5 / step))
            history.add(GradientsMeasured(step, step / 10, {"embedding": 0.1, text: 0.5 / step}))
            history.add(Sampled(step, step / 10, prompt=text, text=text))
    history.add(Finished(20, 2.0, reason="done", steps=20, val_loss=0.125))
    probabilities = torch.tensor([0.5, 0.3, 0.1, 0.05, 0.05])
    return RunView(
        id="a-run", name=text, state="finished", message=text, history=history, planned_steps=20,
        baselines=Baselines(1.6, 1.5, 1.4, 0.1), config=ModelConfig(vocab_size=5), tokenizer=CharTokenizer("<&ab"),
        corpus=text, prompt=text, now=probabilities, before=probabilities.flip(0),
        settings={"text": text, "n_layers": 4}, device="cpu, float32",
    )  # fmt: skip


class Reader(HTMLParser):
    """Tags and attributes of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def test_a_report_holds_the_runs_own_numbers_and_needs_nothing_from_anywhere():
    text = report_html(view(), letters="1abc")
    reader = Reader(text)
    assert reader.tags.count("svg") == 1
    assert all(fact in text for fact in ("0.1250", "uniform 1.60", "?run=1abc", "cpu, float32"))
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name in ("src", "srcset") or name.startswith("on")]
    assert all(value.startswith("#") for name, value in reader.attributes if "href" in name), "marks, drawn once"
    assert set(re.findall(r"url\((.)", text)) <= {"#"}, "only places of the page itself"
    assert "@import" not in text
    assert "default-src 'none'" in text and len(text) < 200_000
    addresses = set(re.findall(r"https?://[^\s\"'<]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}, "the name of SVG's language, which nobody fetches"


def test_names_texts_and_tokens_never_become_markup():
    reader = Reader(report_html(view(EVIL), letters=EVIL))
    assert not {"script", "img"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert sorted(set(reader.tags) & {"h1", "h2", "svg", "table"}) == ["h1", "h2", "svg", "table"]
    run = Run("run", {"step": [1, 2], "loss": [2.0, 1.0]}, view().history.evaluations)
    plain = curve_svg(run, words=EVIL)
    assert ET.fromstring(plain).get("aria-label") == EVIL, "well-formed XML"
    assert palette.DENSE in plain and 'fill="#ffffff"' in plain, "colours of its own, for a card"


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
