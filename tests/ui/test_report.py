"""A run's report: one page that needs nothing else, says the run's own numbers, and runs nobody's scripts."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from playground.data import Ladder
from playground.data.tokenizers import CharTokenizer
from playground.figures import palette
from playground.figures.loss import Run, loss_curve
from playground.figures.still import colour, still
from playground.model import ModelConfig
from playground.service.views import RunView
from playground.training import Evaluated, Finished, GradientsMeasured, History, Sampled, Stepped
from playground.ui.tabs.train.report import report_html

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
    history.add(Finished(20, 2.0, reason="done", message=text, val_loss=0.125))
    probabilities = torch.tensor([0.5, 0.3, 0.1, 0.05, 0.05])
    return RunView(
        id="a-run", name=text, state="finished", message=text, history=history, planned_steps=20,
        ladder=Ladder(1.6, 1.5, 1.4, 0.1), config=ModelConfig(vocab_size=5), tokenizer=CharTokenizer("<&ab"),
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


def test_a_report_holds_the_runs_own_numbers_and_pictures():
    text = report_html(view(), letters="1abc")
    reader = Reader(text)
    assert reader.tags.count("svg") == 4
    for fact in ("0.1250", "1.6000", "this model", "?run=1abc", "cpu, float32"):
        assert fact in text, fact


def test_a_report_needs_nothing_from_anywhere_and_forbids_it():
    text = report_html(view(), letters="1abc")
    reader = Reader(text)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name in ("src", "href", "srcset") or name.startswith("on")]
    assert "url(" not in text and "@import" not in text
    assert "default-src 'none'" in text and len(text) < 200_000
    addresses = set(re.findall(r"https?://[^\s\"'<]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}, "the name of SVG's language, which nobody fetches"


def test_names_texts_and_tokens_never_become_markup():
    reader = Reader(report_html(view(EVIL), letters=EVIL))
    assert not {"script", "img"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert sorted(set(reader.tags) & {"h1", "h2", "svg", "table"}) == ["h1", "h2", "svg", "table"]


def test_a_run_that_has_nothing_yet_still_makes_a_page():
    empty = RunView(id="x", name="Run 1", state="training")
    assert "Run 1" in report_html(empty)


def test_both_themes_are_there():
    text = report_html(view())
    assert "prefers-color-scheme: dark" in text
    assert f"var(--c{palette.DENSE[1:]}, {palette.DENSE})" in text and palette.DARK[palette.DENSE] in text


# ---- stills ----------------------------------------------------------------------------------------------------------


def picture(figure, words: str = "") -> ET.Element:
    """The SVG, which must be well-formed XML."""
    return ET.fromstring(still(figure, words))


def curve(**more):
    """A loss figure of known numbers."""
    steps = {"step": [1, 2, 3, 4], "loss": [4.0, 3.0, 2.0, 1.0]}
    evaluations = {"step": [0, 2, 4], "train_loss": [4.0, 3.0, 2.0], "val_loss": [4.0, math.nan, 2.0]}
    return loss_curve(Run("run", steps, evaluations), [("uniform", 4.2), ("floor", 1.0)], planned_steps=4, **more)


def points(svg: ET.Element) -> list[list[tuple[float, float]]]:
    """The corner points of every line."""
    lines = [e for e in svg.iter() if e.tag.endswith("polyline")]
    return [[tuple(map(float, p.split(","))) for p in e.get("points").split()] for e in lines]


def test_points_lie_where_their_numbers_are():
    svg = picture(curve())
    batch = points(svg)[0]
    xs, ys = np.array(batch).T
    assert np.allclose(np.diff(xs), np.diff(xs)[0], atol=0.15) and (np.diff(ys) > 0).all(), "even steps, falling losses"
    ticks = {e.text: float(e.get("y")) for e in svg.iter() if e.tag.endswith("text") and e.get("text-anchor") == "end"}
    a, b = ticks["2"] - 4, ticks["3"] - 4
    assert abs(ys[2] - a) < 0.2 and abs(ys[1] - b) < 0.2, "2.0 and 3.0 lie on their grid lines"


@pytest.mark.parametrize("log_y", [False, True])
def test_the_ladder_stands_where_its_numbers_are_and_within_the_picture(log_y):
    """A curve that passes through 2 must meet a rung at 2, on either kind of axis, and see rungs that it never met."""
    steps = {"step": [1, 2, 3], "loss": [4.0, 2.0, 1.0]}
    run = Run("run", steps, {"step": [], "train_loss": [], "val_loss": []})
    svg = picture(loss_curve(run, [("uniform", 8.0), ("bigram", 2.0), ("floor", 0.25)], planned_steps=3, log_y=log_y))
    (_, high), (_, middle), (_, low) = points(svg)[0]
    across = [e for e in svg.iter() if e.tag.endswith("line") and e.get("y1") == e.get("y2")]
    dashed = [float(e.get("y1")) for e in across if "dasharray: 7" in e.get("style")]
    floor = [float(e.get("y1")) for e in across if palette.HIGHLIGHT in e.get("style")]
    assert len(dashed) == 2 and len(floor) == 1
    assert max(dashed) == pytest.approx(middle, abs=0.2), "the rung at 2"
    assert 0 < min(dashed) < high < middle < low < floor[0] < float(svg.get("viewBox").split()[3])
    if log_y:  # equal ratios, equal distances
        assert floor[0] - low == pytest.approx(2 * (low - middle), abs=0.3)
        ticks = [e.text for e in svg.iter() if e.tag.endswith("text") and e.get("text-anchor") == "end"]
        assert {"0.5", "1", "2", "5"} <= set(ticks)


def test_a_gap_is_a_gap():
    lines = points(picture(curve()))
    assert len(lines) == 4, "batch and training in one piece, validation in two"


def test_words_of_figures_are_escaped_and_plotlys_own_markup_is_undone():
    figure = {
        "data": [{"type": "bar", "orientation": "h", "y": ["a&lt;b&gt;", "<b>bold</b>"], "x": [1.0, 2.0],
                  "text": ["&lt;script&gt;", "2"], "name": "x"}],
        "layout": {"height": 120, "xaxis": {}, "yaxis": {"autorange": "reversed"}},
    }  # fmt: skip
    svg = picture(figure, 'say "<hello>"')
    texts = [e.text for e in svg.iter() if e.tag.endswith("text")]
    assert {"a<b>", "bold", "<script>"} <= set(texts) and svg.get("aria-label") == 'say "<hello>"'
    a, b = (float(e.get("width")) for e in svg.iter() if e.tag.endswith("rect"))
    assert b == pytest.approx(2 * a, rel=0.02)
    assert [t for t in texts if t in ("a<b>", "bold")] == ["a<b>", "bold"]


def test_maps_draw_a_cell_per_number_and_leave_out_what_is_none():
    figure = {
        "data": [{"type": "heatmap", "z": [[0.0, 1.0], [math.nan, 0.5]], "x": [10, 20], "y": ["p", "q"]}],
        "layout": {"height": 120, "xaxis": {}, "yaxis": {}},
    }
    cells = [e for e in picture(figure).iter() if e.tag.endswith("rect")]
    assert len(cells) == 3 and all("color-mix" in e.get("style") for e in cells)


@pytest.mark.parametrize("value", ["red;background:url(http://x)", "var(--x)", "expression(1)", "#12", ""])
def test_only_colours_are_colours(value):
    assert colour(value) == "currentColor"
