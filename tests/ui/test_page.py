"""What the page's shared parts promise the tabs."""

from __future__ import annotations

import gradio as gr
import pytest

from playground.ui.refusals import in_words


def test_what_a_visitor_typed_is_no_html_in_a_notice_and_as_it_is_for_a_program():
    typed = "there is no model called <img src=x onerror=alert(1)>"
    with pytest.raises(gr.Error) as shown, in_words():
        raise ValueError(typed)
    assert "<" not in shown.value.message and "&lt;img src=x" in shown.value.message
    with pytest.raises(gr.Error) as told, in_words(labels=False):
        raise ValueError(typed)
    assert "<img src=x" in told.value.message
