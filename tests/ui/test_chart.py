"""A chart is its figure with a sentence; the pieces of HTML escape what they are given."""

from __future__ import annotations

import re

import gradio as gr
import numpy as np

from playground.figures import shapes
from playground.figures.wire import numbers
from playground.ui import chart, theme
from playground.ui.chart import Chart, show


def figure(*lengths: int, title: str = "") -> dict:
    lines = [{"type": "scatter", "x": numbers(range(n)), "y": numbers(np.arange(n) ** 2)} for n in lengths]
    return shapes.figure(lines, 300, xaxis=shapes.axis(title))


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
