"""Our Blocks send the page what gradio's would, and leave nothing behind for outputs that were left alone."""

from __future__ import annotations

import asyncio
import urllib.request

import gradio as gr
import pytest
from gradio import state_holder

from playground.service.limits import QUEUED_EVENTS
from playground.ui.app import build_app, launch
from playground.ui.blocks import QUEUE_PAUSE, Blocks

ANSWERS = {
    "all skipped at once": lambda c: gr.skip(),
    "all skipped one by one": lambda c: (gr.skip(), gr.skip(), gr.skip(), gr.skip()),
    "one value": lambda c: {c[1]: 7},
    "one value in a list": lambda c: (gr.skip(), 7, gr.skip(), gr.skip()),
    "a value that is a dictionary": lambda c: {c[2]: {"a": 1}},
    "an empty one": lambda c: {c[2]: {}},
    "new properties and a value, out of order": lambda c: {c[3]: gr.Button("new", interactive=False), c[0]: "text"},
    "an update": lambda c: {c[0]: gr.update(visible=False, value=None)},
    "all": lambda c: ["a", 1, [1, 2], "b"],
    "None is a value": lambda c: {c[0]: None},
}


def answered(kind: type[gr.Blocks], answer) -> tuple[list, state_holder.SessionState, list]:
    """What goes to the page when a handler of four outputs gives this answer."""
    with kind() as app:
        outputs = [gr.Textbox(), gr.Number(), gr.JSON(), gr.Button()]
        outputs[0].change(lambda: None, None, outputs)
    state = state_holder.SessionState(app)
    (handler,) = app.fns.values()
    return asyncio.run(app.postprocess_data(handler, answer(outputs), state)), state, outputs


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_the_page_is_sent_what_gradio_would_send(answer):
    ours, _, _ = answered(Blocks, answer)
    theirs, _, _ = answered(gr.Blocks, answer)
    assert [_plain(value) for value in ours] == [_plain(value) for value in theirs]


def _plain(value):
    return value.model_dump() if hasattr(value, "model_dump") else value


def test_a_session_keeps_only_what_changed():
    _, state, outputs = answered(Blocks, ANSWERS["new properties and a value, out of order"])
    assert {i for i, c in enumerate(outputs) if c._id in state.config_values} == {0, 3}
    assert state.config_values[outputs[0]._id]["props"]["value"] == "text"
    assert [state[c._id] is c for c in outputs] == [True, True, True, False]
    assert state[outputs[3]._id].interactive is False
    _, state, outputs = answered(gr.Blocks, ANSWERS["one value"])
    assert sum(state[c._id] is not c for c in outputs) == 3, "gradio leaves skipped outputs alone now: so may we"


def test_wrong_numbers_of_values_are_gradios_to_refuse():
    with pytest.raises(ValueError, match="didn't return enough output values"):
        answered(Blocks, lambda c: ("a", 1))
    with gr.Blocks():
        stranger = gr.Textbox()
    with pytest.raises(ValueError, match="not specified as output"):
        answered(Blocks, lambda c: {stranger: "a"})


def test_an_empty_queue_is_looked_at_rarely():
    with Blocks() as app:
        pass
    assert app._queue.sleep_when_free == QUEUE_PAUSE
    assert app.queue(max_size=3)._queue.sleep_when_free == QUEUE_PAUSE


def test_where_gpus_are_lent_the_third_visitor_is_not_turned_away(monkeypatch):
    monkeypatch.setattr("gradio.utils.get_space", lambda: "someone/somewhere")
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    with Blocks() as app:
        pass
    assert app._queue.max_size == QUEUED_EVENTS and app.queue()._queue.max_size == QUEUED_EVENTS
    assert app.queue(max_size=3)._queue.max_size == 3


def test_a_script_of_ours_stands_before_gradios_own():
    app = build_app()
    _, address, _ = launch(app, port=None, prevent_thread_lock=True, quiet=True)
    with urllib.request.urlopen(address + "?view=anything", timeout=30) as answer:
        page, length = answer.read().decode(), int(answer.headers["content-length"])
    assert len(page.encode()) == length
    early = page.index("assets/page.js")
    assert page.index("<head>") < early < page.index('type="module"')
    path = page[page.rindex('"', 0, early) + 1 : page.index('"', early)]
    with urllib.request.urlopen(address + path, timeout=30) as answer:
        assert b"requestAnimationFrame" in answer.read()
    with urllib.request.urlopen(address + "config", timeout=30) as answer:
        assert b"<script src" not in answer.read()[:200]
    app.close(verbose=False)
