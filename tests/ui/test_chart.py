"""A Feed sends a figure once and then only what is new; the pieces of HTML escape what they are given."""

from __future__ import annotations

import contextvars
import re
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
from gradio.context import LocalContext
from hypothesis import given
from hypothesis import strategies as st

from playground.figures import shapes
from playground.figures.wire import numbers, numbers_of
from playground.service.limits import FIGURES_PER_PAGE, PAGES
from playground.ui import chart, theme
from playground.ui.chart import Chart, Feed, show, whole_figure


def figure(*lengths: int, title: str = "") -> dict:
    lines = [{"type": "scatter", "x": numbers(range(n)), "y": numbers(np.arange(n) ** 2)} for n in lengths]
    return shapes.figure(lines, 300, xaxis=shapes.axis(title))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8))
def test_what_was_sent_adds_up_to_the_whole_figure(growths):
    feed, length = Feed(), 0
    page = None
    for growth in growths:
        length += growth
        message = feed.update(figure(length, 3))
        if page is None:
            page = [numbers_of(trace["y"]).tolist() for trace in message["figure"]["data"]]
        elif growth:
            (index, part), *others = message["append"].items()
            assert not others, "a line that did not grow is not sent"
            assert part["from"] == len(page[int(index)])
            assert len(part["x"]) == len(part["y"]) == growth
            page[int(index)] += part["y"]
        else:
            assert message == gr.skip()
    assert page == [[i**2 for i in range(length)], [0, 1, 4]]


@pytest.mark.parametrize(
    "changed", [figure(3, title="other"), figure(3, 3), figure(2)], ids=["layout", "another line", "fewer points"]
)
def test_anything_but_growth_sends_the_whole(changed):
    feed = Feed()
    feed.update(figure(3))
    assert feed.update(changed)["figure"] == changed


def test_points_that_changed_send_the_whole():
    feed, other = Feed(), figure(5)
    feed.update(figure(3))
    other["data"][0]["y"] = numbers([9, 9, 9, 9, 9])
    assert "figure" in feed.update(other)


def test_a_gap_in_the_curve_is_sent_as_null():
    feed, broken = Feed(), figure(2)
    feed.update(figure(1))
    broken["data"][0]["y"] = numbers([0.0, np.nan])
    assert feed.update(broken)["append"]["0"] == {"from": 1, "x": [1.0], "y": [None]}


def test_a_page_that_missed_something_gets_the_last_whole_figure_of_its_own_stream():
    feed, other = Feed(), Feed()
    stream = feed.update(figure(1))["stream"]
    other.update(figure(9))
    feed.update(figure(4), "Four points.")
    assert whole_figure(stream) == {"figure": figure(4), "summary": "Four points.", "stream": stream}
    assert whole_figure("guess") is None
    assert whole_figure({"not": "a name"}) is None


def shown_to(session: str, count: int = 1) -> list[str]:
    """The names of figures with exact numbers that a page of this session is shown."""
    context = contextvars.copy_context()
    context.run(LocalContext.request.set, SimpleNamespace(session_hash=session))
    return [context.run(show, figure(1), exact=lambda: figure(1))["exact"] for _ in range(count)]


def test_a_page_keeps_its_latest_figures_however_many_others_are_shown():
    (anna,) = shown_to("anna's page")
    berts = shown_to("bert's page", 300)
    others = [name for n in range(40) for name in shown_to(f"page {n}", FIGURES_PER_PAGE)]
    assert whole_figure(anna) and all(map(whole_figure, others))
    assert [name for name in berts if whole_figure(name)] == berts[-FIGURES_PER_PAGE:]


def test_of_a_pages_figures_the_least_recently_used_leaves_first():
    first, second, *_ = shown_to("carl's page", FIGURES_PER_PAGE)
    assert whole_figure(first)
    shown_to("carl's page")
    assert whole_figure(first) and whole_figure(second) is None


def test_figures_of_forgotten_pages_make_room():
    (old,) = shown_to("an old page")
    for n in range(PAGES):
        shown_to(f"new page {n}")
    assert whole_figure(old) is None


def test_a_chart_is_a_component_with_its_value_in_the_page():
    with gr.Blocks() as app:
        drawn = Chart(show(figure(2), "Two points."), save_name='"><script>', elem_id="it")
        drawn.select(lambda: None)
    component = next(c for c in app.get_config_file()["components"] if c["props"].get("elem_id") == "it")
    assert component["props"]["value"] == {"figure": figure(2), "summary": "Two points."}
    assert "<script>" not in component["props"]["html_template"]
    assert show(None) is None


def test_the_head_names_only_files_of_this_machine():
    head = chart.head_html()
    assert "://" not in head and "plotly.min.js" in head and "chart.js" in head


def test_pieces_of_html_escape_and_the_theme_asks_no_other_host():
    attack = "<img src=x onerror=alert(1)>"
    pieces = [
        theme.stat_cards([(attack, attack, attack)]),
        theme.notice(attack),
        theme.heading(attack, attack),
        theme.badge(attack),
        theme.progress(0.5, attack),
    ]
    assert all("<img" not in piece for piece in pieces)
    look = theme.theme()
    assert not look._stylesheets
    assert not re.search(r"url\(.?(https?:)?//", look._get_theme_css() + theme.css())
