"""A chart is a part of the page, the pieces of HTML escape what they are given."""

import re

from playground.ui import chart, theme
from playground.ui.chart import chart_place, show


def test_a_charts_place_escapes_its_name_and_nothing_is_shown_for_no_figure():
    assert "<script>" not in chart_place("curve", save_name='"><script>')
    assert show({"data": []}, "Two points.", layer=2) == {
        "figure": {"data": []}, "summary": "Two points.", "facts": {"layer": 2},
    }  # fmt: skip
    assert show(None) is None


def test_the_head_names_only_files_of_this_machine():
    head = chart.head_html()
    assert "://" not in head and "plotly-cartesian.min.js" in head and "chart.js" in head


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
