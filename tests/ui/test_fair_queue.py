"""One address neither fills gradio's queue nor keeps others waiting in it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import gradio as gr
from gradio import state_holder
from gradio.data_classes import PredictBodyInternal

from playground.service.limits import PUBLIC
from playground.ui.app import build_app
from playground.ui.gradio_fixes.blocks import Blocks
from playground.ui.gradio_fixes.calm_queue import FULL


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
