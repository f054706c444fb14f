"""A chart is its figure with a sentence; the pieces of HTML escape what they are given."""

from __future__ import annotations

import re

import numpy as np

from playground.figures import shapes
from playground.figures.wire import numbers
from playground.ui import chart, theme
from playground.ui.chart import chart_place, show


def figure(*lengths: int, title: str = "") -> dict:
    lines = [{"type": "scatter", "x": numbers(range(n)), "y": numbers(np.arange(n) ** 2)} for n in lengths]
    return shapes.figure(lines, 300, xaxis=shapes.axis(title))


def test_a_charts_place_escapes_its_name():
    assert "<script>" not in chart_place("curve", save_name='"><script>')
    assert show(figure(2), "Two points.", layer=3) == {
        "figure": figure(2),
        "summary": "Two points.",
        "facts": {"layer": 3},
    }
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
