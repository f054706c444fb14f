"""What the page's shared parts promise the tabs."""

import re
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import gradio as gr
import plotly
import pytest

from playground.ui import theme
from playground.ui.refusals import in_words, sentence

ROOT = Path(__file__).parents[2]


def test_what_a_visitor_typed_is_no_html_in_a_notice_and_as_it_is_for_a_program():
    typed = "there is no model called <img src=x onerror=alert(1)>"
    assert "<img" not in theme.notice(sentence(typed), "error") and "&lt;img src=x" in theme.notice(sentence(typed))
    with pytest.raises(gr.Error) as told, in_words():
        raise ValueError(typed)
    assert "<img src=x" in told.value.message


def test_no_path_of_the_server_reaches_a_visitor(served):
    _, address = served
    own = {str(ROOT), sys.prefix, str(Path(plotly.__file__).parent), tempfile.gettempdir(), str(Path.home())} - {"/"}
    for path in ("", "config"):
        with urllib.request.urlopen(f"{address}{path}") as answer:
            said = answer.read().decode()
        assert "site-packages" not in said and not [each for each in own if f"{each}/" in said]
        for name in set(re.findall(r'ours/[^"\\]+', said)):  # and the page finds all of them where it says
            with urllib.request.urlopen(f"{address}{name}") as answer:
                assert answer.status == 200 and answer.read()
    assert "ours/assets/chart.js" in said
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{address}ours/assets/../chart.py")
