"""A run's report: one page that needs nothing else, says the run's own numbers, and runs nobody's scripts."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from playground.data import Baselines
from playground.data.tokenizers import CharTokenizer
from playground.figures import palette
from playground.figures.loss import Run, loss_curve
from playground.figures.stills import png, still
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


def lines(svg: ET.Element, color: str) -> list[list[tuple[float, float]]]:
    """The corner points of every line of a colour within the axes, a list per unbroken piece."""
    inside = [e for e in svg.iter() if e.tag.endswith("path") and e.get("clip-path")]
    paths = [e for e in inside if f"stroke: var(--c{color[1:]}" in e.get("style", "")]
    drawn = [re.findall(r"([ML]) ([-\d.]+) ([-\d.]+)", e.get("d")) for e in paths]
    pieces: list[list[tuple[float, float]]] = []
    for path in drawn:
        for letter, x, y in path:
            if letter == "M":
                pieces.append([])
            pieces[-1].append((float(x), float(y)))
    return pieces


def texts(svg: ET.Element) -> dict[str, float]:
    """Every piece of writing, and the height of its foot."""
    return {e.text: float(e.get("y")) for e in svg.iter() if e.tag.endswith("text")}


def test_points_lie_where_their_numbers_are():
    svg = picture(curve())
    xs, ys = np.array(max(lines(svg, palette.FAINT), key=len)).T
    assert np.allclose(np.diff(xs), np.diff(xs)[0], atol=0.15) and (np.diff(ys) > 0).all(), "even steps, falling losses"
    grid = [y for piece in lines(svg, palette.GRID) for _, y in piece]
    written = texts(svg)
    for value, y in ((2, ys[2]), (3, ys[1])):
        assert min(abs(y - other) for other in grid) < 0.1, "2.0 and 3.0 lie on their grid lines"
        assert 0 < written[str(value)] - y < 6, "and so do the words beside these"


@pytest.mark.parametrize("log_y", [False, True])
def test_the_ladder_stands_where_its_numbers_are_and_within_the_picture(log_y):
    """A curve that passes through 2 must meet a rung at 2, on either kind of axis, and see rungs that it never met."""
    steps = {"step": [1, 2, 3], "loss": [4.0, 2.0, 1.0]}
    run = Run("run", steps, {"step": [], "train_loss": [], "val_loss": []})
    svg = picture(loss_curve(run, [("uniform", 8.0), ("bigram", 2.0), ("floor", 0.25)], planned_steps=3, log_y=log_y))
    faint = lines(svg, palette.FAINT)
    ((_, high), (_, middle), (_, low)), *_ = [piece for piece in faint if len(piece) == 3]
    dashed = {piece[0][1] for piece in faint if len(piece) == 2 and piece[0][1] == piece[1][1]}
    ((_, floor), _) = lines(svg, palette.HIGHLIGHT)[0]
    assert len(dashed) == 2
    assert max(dashed) == pytest.approx(middle, abs=0.2), "the rung at 2"
    assert 0 < min(dashed) < high < middle < low < floor < float(svg.get("viewBox").split()[3])
    if log_y:  # equal ratios, equal distances
        assert floor - low == pytest.approx(2 * (low - middle), abs=0.3)
        assert {"0.5", "1", "2", "5"} <= set(texts(svg))


def test_a_gap_is_a_gap():
    svg = picture(curve())
    assert len(lines(svg, palette.FAINT)) - 1 == 1, "the batch loss in one piece, beside a rung"
    assert [len(piece) for piece in lines(svg, palette.DENSE)] == [3, 1, 1], "training in one piece, validation in two"
    assert len(dots(svg, palette.DENSE)) == 3, "two of its points, and one in the legend"


def dots(svg: ET.Element, color: str) -> list[ET.Element]:
    """The marks of a colour."""
    uses = [e for e in svg.iter() if e.tag.endswith("use")]
    return [e for e in uses if f"fill: var(--c{color[1:]}" in e.get("style", "")]


def test_words_of_figures_are_escaped_and_plotlys_own_markup_is_undone():
    figure = {
        "data": [{"type": "bar", "orientation": "h", "y": ["a&lt;b&gt;", "<b>bold</b>"], "x": [1.0, 2.0],
                  "text": ["&lt;script&gt;", "$2$"], "name": "x"}],
        "layout": {"height": 120, "xaxis": {}, "yaxis": {"autorange": "reversed"}},
    }  # fmt: skip
    svg = picture(figure, 'say "<hello>"')
    assert {"a<b>", "bold", "<script>", "$2$"} <= set(texts(svg)) and svg.get("aria-label") == 'say "<hello>"'
    paths = [e.get("d") for e in svg.iter() if e.tag.endswith("path") and palette.DENSE in e.get("style", "")]
    a, b = (np.ptp([float(x) for x in re.findall(r"[ML] ([-\d.]+)", d)]) for d in paths)
    assert b == pytest.approx(2 * a, rel=0.02)
    written = texts(svg)
    assert written["a<b>"] < written["bold"], "the first on top"


def test_maps_draw_a_cell_per_number_and_leave_out_what_is_none():
    scale = [list(stop) for stop in palette.SEQUENTIAL_SCALE]
    cells = {"type": "heatmap", "z": [[0.0, 1.0], [math.nan, 0.6]], "x": [10, 20], "y": ["p", "q"], "colorscale": scale}
    figure = {"data": [cells], "layout": {"height": 120, "xaxis": {}, "yaxis": {}}}
    drawn = [e.get("style") for e in picture(figure).iter() if "color-mix" in e.get("style", "")]
    assert len(drawn) == 3, "a gap is no cell"
    low, high, between = drawn
    assert low.count(palette.SEQUENTIAL_SCALE[0][1]) and f"100%, var(--c{palette.SEQUENTIAL_SCALE[3][1][1:]}" in high
    assert between.index(palette.SEQUENTIAL_SCALE[3][1]) and palette.SEQUENTIAL_SCALE[2][1] in between


def test_the_words_of_a_visitor_are_no_colours():
    """Only what is drawn changes with the theme, not what is written."""
    figure = {
        "data": [{"type": "bar", "orientation": "h", "y": [palette.DENSE], "x": [1.0]}],
        "layout": {"height": 120, "xaxis": {}, "yaxis": {}},
    }
    assert palette.DENSE in texts(picture(figure))


def test_several_threads_draw_the_same():
    """Two visitors ask for their reports at the same moment."""
    alone = still(curve())
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda _: still(curve()), range(8))) == {alone}
    assert png(curve()).startswith(b"\x89PNG")
