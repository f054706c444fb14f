"""What we mend in gradio is still broken there and mended here, sends what gradio would, and its queue is fair."""

import asyncio
import re
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from gradio import state_holder
from gradio.data_classes import PredictBodyInternal

from playground.service.limits import PUBLIC
from playground.ui.app import build_app
from playground.ui.gradio_fixes import checks, lenient, small_sessions
from playground.ui.gradio_fixes.blocks import Blocks
from playground.ui.gradio_fixes.calm_queue import FULL, QUEUE_PAUSE
from playground.ui.gradio_fixes.checks import out_of_place
from playground.ui.gradio_fixes.first_script import SCRIPTS

from .raw import serving

ANSWERS = {
    "all skipped at once": lambda c: gr.skip(),
    "one value": lambda c: {c[1]: 7},
    "a value that is a dictionary": lambda c: {c[2]: {"a": 1}},
    "an empty one": lambda c: {c[2]: {}},
    "new properties and a value, out of order": lambda c: {c[3]: gr.Button("new", interactive=False), c[0]: "text"},
    "an update": lambda c: {c[0]: gr.update(visible=False, value=None)},
    "a list": lambda c: ["a", 1, [1, 2], "b"],
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


def test_an_output_that_is_named_twice_gets_all_of_its_update():
    with Blocks() as app:
        box = gr.Dropdown(["old"])
        box.change(lambda: None, None, [box, gr.Number(), box])
    (handler,) = app.fns.values()
    update = {box: gr.update(choices=["new"], value="new")}
    first, *rest = asyncio.run(app.postprocess_data(handler, update, state_holder.SessionState(app)))
    assert (first["value"], first["choices"]) == ("new", [["new", "new"]]) and rest == [gr.skip(), gr.skip()]


def _plain(value):
    return value.model_dump() if hasattr(value, "model_dump") else value


def test_no_handler_on_the_server_hears_of_what_is_typed_or_chosen():
    """Gradio drops or puts off such events while the answer to the one before is on its way. Forms have their own way
    (front/form.js); only a model's change is put off, whose handler then reads what is chosen."""
    choosing = {"input", "select", "blur", "change", "clear"}
    heard = [fn for fn in build_app().fns.values() if fn.fn and choosing & {event for _, event in fn.targets}]
    assert {(fn.api_name, fn.trigger_mode) for fn in heard} <= {("act", "multiple"), ("about", "always_last")}


def test_a_session_keeps_what_changed_and_no_more():
    def kept_anew(kind: type[gr.Blocks], answer: str) -> list[bool]:
        _, state, outputs = answered(kind, ANSWERS[answer])
        return [state[c._id] is not c for c in outputs]

    assert kept_anew(Blocks, "new properties and a value, out of order") == [False, False, False, True]
    assert kept_anew(Blocks, "one value") == [False] * 4
    assert any(kept_anew(gr.Blocks, "one value")), "gradio leaves skipped outputs alone now: so may we"
    with gr.Blocks() as app:
        box, *_ = [gr.Textbox() for _ in range(5)]
    ours, theirs = small_sessions.Session(app), small_sessions.PLAIN(app)
    ours[box._id] = gr.Textbox("new")
    ours._update_value_in_config(box._id, "value")
    assert state_holder.SessionState is small_sessions.Session and ours[box._id].value == "new"
    assert len(ours.config_values) < 2
    assert len(theirs.config_values) >= 5, "gradio copies nothing now: nor need we mend it"


def test_an_empty_queue_is_looked_at_rarely():
    with Blocks() as app, gr.Blocks() as plain:
        pass
    assert app._queue.sleep_when_free == QUEUE_PAUSE
    assert app.queue(max_size=3)._queue.sleep_when_free == QUEUE_PAUSE
    assert plain.queue()._queue.sleep_when_free < QUEUE_PAUSE, (
        "gradio's queue is in no hurry now: drop it from calm_queue.py"
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


def line(kind: type[gr.Blocks], origins: list[str], text: str = "", **attributes: Any) -> tuple[list[str], list[str]]:
    """Where events from these addresses wait, none of them at work yet, and why others were turned away."""
    with kind() as app:
        gr.Button().click(lambda: None)
    vars(app).update({"origin_of": lambda request: request.client, **attributes})
    holder = state_holder.StateHolder()
    holder.set_blocks(app)
    app.app = SimpleNamespace(state_holder=holder)
    app.queue()
    (fn,) = app.fns.values()
    refused = []

    async def all_come() -> None:
        for number, origin in enumerate(origins):
            body = PredictBodyInternal(data=[text], fn_index=fn._id, session_hash=f"session {number}")
            taken, said, _ = await app._queue.push(body, SimpleNamespace(client=origin), None)
            refused.extend([] if taken else [said])

    asyncio.run(all_come())
    (lane,) = app._queue.event_queue_per_concurrency_id.values()
    return [event.request.client for event in lane.queue], refused


def test_addresses_take_turns_in_the_queue():
    crowd = ["mob"] * 20 + ["anna"] + ["mob"] * 5 + ["bert", "anna"]
    waits, _ = line(Blocks, crowd)
    assert waits[:5] == ["mob", "anna", "bert", "mob", "anna"] and waits.count("mob") == 25
    assert line(gr.Blocks, crowd)[0] == crowd, "gradio's own queue is fair now: _take_turns of calm_queue.py can go"


def test_one_address_has_a_part_of_the_queue_and_waiting_texts_have_a_bound_for_it_and_in_all():
    waits, refused = line(Blocks, ["mob"] * 30 + ["anna"], calls_per_address=10)
    assert waits.count("mob") == 10 and "anna" in waits and refused == [FULL] * 20
    text = "w" * 10_000_000
    waits, refused = line(Blocks, ["mob"] * 8 + ["anna"], text)
    assert waits == ["mob", "anna", *["mob"] * 5] and refused == [FULL] * 2
    assert len(line(Blocks, [f"mob {n}" for n in range(30)], text)[0]) == 25
    assert len(line(Blocks, [f"mob {n}" for n in range(30)], "w" * 60_000)[0]) == 30


def test_the_page_counts_by_the_address_of_a_call():
    app = build_app(PUBLIC)
    assert app.calls_per_address == PUBLIC.calls_per_address and app.origin_of == app.page.reach.origin_of
