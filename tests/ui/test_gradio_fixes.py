"""What we mend in gradio is still broken there and mended here, sends what gradio would, and its queue is fair."""

import asyncio
import re
import urllib.error
import urllib.request

import gradio as gr
import pytest
from gradio import state_holder

from playground.ui.app import build_app
from playground.ui.gradio_fixes import checks, lenient, small_sessions
from playground.ui.gradio_fixes.blocks import QUEUE_PAUSE, Blocks
from playground.ui.gradio_fixes.checks import out_of_place
from playground.ui.gradio_fixes.first_script import SCRIPTS

from .raw import serving

ANSWERS = {
    "all skipped at once": (lambda c: gr.skip(), set()),
    "values, one a dictionary": (lambda c: {c[2]: {"a": 1}, c[1]: 7}, set()),
    "new properties and None, out of order": (lambda c: {c[3]: gr.Button("new", interactive=False), c[0]: None}, {3}),
    "one update": (lambda c: {c[0]: gr.update(visible=False, value=None)}, {0}),
}
"""What a handler answers, and which of its outputs that should change for good."""


def answered(kind: type[gr.Blocks], answer) -> tuple[list, set[int]]:
    """What goes to the page when a handler of four outputs gives this answer, and which components are made anew."""
    with kind() as app:
        outputs = [gr.Textbox(), gr.Number(), gr.JSON(), gr.Button()]
        outputs[0].change(lambda: None, None, outputs)
    state, (handler,) = state_holder.SessionState(app), app.fns.values()
    made = asyncio.run(app.postprocess_data(handler, answer(outputs), state))
    plain = [value.model_dump() if hasattr(value, "model_dump") else value for value in made]
    return plain, {at for at, output in enumerate(outputs) if state[output._id] is not output}


@pytest.mark.parametrize(("answer", "changed"), ANSWERS.values(), ids=ANSWERS)
def test_the_page_is_sent_what_gradio_would_send_and_only_changed_components_are_made_anew(answer, changed):
    (ours, anew), (theirs, all_anew) = answered(Blocks, answer), answered(gr.Blocks, answer)
    assert ours == theirs and anew == changed
    assert all_anew > changed, "gradio leaves skipped outputs alone now: so may we"


def test_a_session_keeps_what_changed_and_no_more():
    with gr.Blocks() as app:
        box, *_ = [gr.Textbox() for _ in range(5)]
    ours, theirs = small_sessions.Session(app), small_sessions.PLAIN(app)
    ours[box._id] = gr.Textbox("new")
    ours._update_value_in_config(box._id, "value")
    assert state_holder.SessionState is small_sessions.Session and ours[box._id].value == "new"
    assert len(ours.config_values) < 2
    assert len(theirs.config_values) >= 5, "gradio copies nothing now: nor need we mend it"


def test_no_handler_on_the_server_hears_of_what_is_typed_or_chosen():
    """Gradio drops or puts off such events while the answer to the one before is on its way. Forms have their own way
    (front/form.js); only a model's change is put off, whose handler then reads what is chosen."""
    choosing = {"input", "select", "blur", "change", "clear"}
    handlers = build_app().fns.values()
    heard = [fn for fn in handlers if fn.fn and choosing & {event for _, event in fn.targets}]
    assert all(len(set(fn.outputs)) == len(fn.outputs) for fn in handlers), "gradio sends a value to the first alone"
    assert {(fn.api_name, fn.trigger_mode) for fn in heard} <= {("act", "multiple"), ("about", "always_last")}


def test_an_empty_queue_is_looked_at_rarely():
    with Blocks() as app, gr.Blocks() as plain:
        pass
    assert app._queue.sleep_when_free == QUEUE_PAUSE
    assert app.queue(max_size=3)._queue.sleep_when_free == QUEUE_PAUSE
    assert plain.queue()._queue.sleep_when_free < QUEUE_PAUSE, (
        "gradio's queue is in no hurry now: drop it from blocks.py"
    )


@pytest.fixture(scope="module")
def page():
    """The page as it is served: its address, its HTML, and how long it says that this is."""
    app = build_app()
    with serving(app) as (_, address), urllib.request.urlopen(address + "?view=anything", timeout=30) as answer:
        yield app, address, answer.read().decode(), int(answer.headers["content-length"])


def test_scripts_of_ours_stand_before_gradios_own(page):
    _, address, html, length = page
    assert len(html.encode()) == length
    for script in SCRIPTS:
        early = html.index(f"{script.parent.name}/{script.name}")
        assert html.index("<head>") < early < html.index('type="module"')
        path = html[html.rindex('"', 0, early) + 1 : html.index('"', early)]
        with urllib.request.urlopen(address + path, timeout=30) as answer:
            assert b"use strict" in answer.read()
    with urllib.request.urlopen(address + "config", timeout=30) as answer:
        assert b"<script src" not in answer.read()[:200]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(address + "gradio_api/deep_link?session_hash=any", timeout=30)


def test_a_fix_that_has_no_place_any_more_says_so_at_the_start(page, monkeypatch):
    assert out_of_place(page[0]) == []
    monkeypatch.delattr(gr.Dropdown, "_warn_if_invalid_choice")
    monkeypatch.setattr(checks, "CLOCK", re.compile("no such place in any script"))
    (first, second) = out_of_place(page[0])
    assert "lenient.py" in first and "_warn_if_invalid_choice" in first and "clock.js" in second


def test_a_value_of_an_old_list_reaches_us_where_gradio_refuses_it():
    assert lenient.LenientDropdown(["new"]).preprocess("old") == "old"
    with pytest.raises(gr.Error):
        gr.Dropdown(["new"]).preprocess("old")
    assert lenient.LenientDropdown(["new"]).preprocess({}) is None


def sent(kind: type[gr.Blocks], value, event=None):
    """What a handler of a radio, which takes "a" or "b", answers to a value and an event."""

    def clicked(value, event: gr.SelectData):
        return value

    with kind() as app:
        radio = gr.Radio(["a", "b"])
        radio.select(clicked, radio, radio)
    (handler,) = app.fns.values()
    event = gr.EventData(radio, {"index": 0, "value": "a", "selected": True} if event is None else event)
    state = state_holder.SessionState(app)
    return asyncio.run(app.process_api(handler, [value], state, event_data=event))["data"][0]


@pytest.mark.parametrize(("value", "event"), [("c", None), ({}, None), ("a", {"no": "index"}), ("a", "text")])
def test_what_no_page_sends_is_refused_in_a_line(value, event, caplog):
    assert sent(Blocks, "a") == "a" and not caplog.records
    with pytest.raises(gr.Error) as refused:
        sent(Blocks, value, event)
    assert not refused.value.print_exception and "Traceback" not in caplog.text
    assert len(caplog.records) == 1 and len(caplog.records[0].getMessage()) < 250
    with pytest.raises(Exception) as theirs:
        sent(gr.Blocks, value, event)
    loud = getattr(theirs.value, "print_exception", True)
    assert loud, "gradio refuses quietly now: so we may leave it to it"
