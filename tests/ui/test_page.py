"""What the page's shared parts promise the tabs."""

import gradio as gr
import pytest

from playground.links import LinkError
from playground.ui import theme
from playground.ui.chart import chart_place, head_html
from playground.ui.links import broken
from playground.ui.refusals import in_words, sentence


def test_what_a_visitor_typed_is_no_html_in_a_notice_and_as_it_is_for_a_program():
    typed = "there is no model called <img src=x onerror=alert(1)>"
    assert "<img" not in theme.notice(sentence(typed), "error") and "&lt;img src=x" in theme.notice(sentence(typed))
    with pytest.raises(gr.Error) as told, in_words():
        raise ValueError(typed)
    assert "<img src=x" in told.value.message
    pieces = [
        theme.stat_cards([(typed,) * 3]),
        theme.heading(typed, typed),
        theme.badge(typed),
        theme.progress(0.5, typed),
    ]
    assert not [
        piece for piece in [*pieces, broken(LinkError(typed)), chart_place("c", save_name=typed)] if "<img" in piece
    ]
    assert "://" not in head_html() and not theme.theme()._stylesheets
