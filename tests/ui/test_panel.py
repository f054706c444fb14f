"""Panels: what the route answers, to whom, and what it refuses; every answer is JSON that a browser can read."""

import asyncio
import json
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from playground.ui import panel
from playground.ui.gradio_fixes.quiet_refusals import OURS, STRANGE
from playground.ui.panel import AT_ONCE, Asked, Panels, Shown, Slot

ME = "a-visitor-of-these-tests"


def known(visitor: Any) -> str:
    if visitor != ME:
        raise ValueError("nobody")
    return visitor


def client(view: Callable[[Asked], Shown] | None = None, act: Callable | None = None) -> TestClient:
    panels = Panels(known)
    panels._views["tried"] = view or (lambda asked: Shown(asked.selection, {}))
    panels.act("tried", act or (lambda asked: None))
    return TestClient(Starlette(routes=panels.routes()))


def ask(client: TestClient, does: str = "view", name: str = "tried", **more: Any) -> Any:
    return client.post(f"/{does}/{name}", json={"visitor": ME, "selection": {}, **more})


def test_only_slots_whose_content_would_differ_are_made_and_slow_ones_when_they_are_asked_for():
    made = []

    def view(asked: Asked) -> Shown:
        def slot(name: str, **more: Any) -> Slot:
            return Slot((name, asked.selection.get(name)), lambda: made.append(name) or f"<p>{name}</p>", **more)

        return Shown(asked.selection, {"a": slot("a"), "b": slot("b"), "slow": slot("slow", slow=True)})

    server = client(view)
    first = ask(server).json()
    assert made == ["a", "b"] and first["later"] == ["slow"] and first["slots"]["a"][1] == "<p>a</p>"
    have = {name: digest for name, (digest, _) in first["slots"].items()}
    later = ask(server, have=have, later=True).json()
    assert made == ["a", "b", "slow"] and list(later["slots"]) == ["slow"]
    have["slow"] = later["slots"]["slow"][0]
    again = ask(server, have=have, selection={"b": 2}).json()
    assert made == ["a", "b", "slow", "b"] and list(again["slots"]) == ["b"] and again["later"] == []


def test_a_slow_slot_that_is_ready_does_not_wait_for_the_next_one(monkeypatch):
    monkeypatch.setattr(panel, "TOGETHER", 0.0)
    slots = {name: Slot(name, lambda name=name: name, slow=True) for name in ("a", "b")}
    server = client(lambda asked: Shown({}, slots))
    first = ask(server, later=True).json()
    assert list(first["slots"]) == ["a"] and first["later"] == ["b"]
    second = ask(server, have={"a": first["slots"]["a"][0]}, later=True).json()
    assert list(second["slots"]) == ["b"] and second["later"] == []
    slow = [True]  # and what is quick by the time that it is asked for is shown, too
    server = client(lambda asked: Shown({}, {"slot": Slot(slow[0], lambda: "there", slow=slow[0])}))
    assert ask(server).json()["later"] == ["slot"]
    slow[0] = False
    assert ask(server, later=True).json()["slots"]["slot"][1] == "there"


def test_a_refusal_of_the_view_is_its_sentence_and_that_of_a_slot_stands_in_its_place():
    def refuses(asked: Asked) -> Shown:
        raise ValueError("no prompt")

    assert ask(client(refuses)).json() == {"problem": "No prompt."}

    def half() -> str:
        raise ValueError("no <such> cell")

    shown = Shown({}, {"good": Slot(1, lambda: "fine"), "bad": Slot(1, half)})
    slots = ask(client(lambda asked: shown)).json()["slots"]
    assert slots["good"][1] == "fine" and "&lt;such&gt; cell" in slots["bad"][1]["problem"]
    shown.slots["odd"] = Slot(1, lambda: {"figure": {"data": [float("nan"), np.float32(1), np.inf]}, "summary": ""})
    odd = ask(client(lambda asked: shown)).json()["slots"]["odd"]
    assert odd[1]["figure"]["data"] == [None, 1.0, None], "numbers that JSON lacks"


def test_an_error_of_ours_is_a_sentence_and_no_traceback(caplog):
    answer = ask(client(lambda asked: 1 / 0))
    assert answer.status_code == 500 and answer.json() == {"problem": OURS}
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[", b"[]", b"7", b'"x"', b"null", b"{}", json.dumps({"visitor": "somebody", "selection": {}}).encode(),
        json.dumps({"visitor": ME}).encode(), json.dumps({"visitor": ME, "selection": []}).encode(),
        json.dumps({"visitor": ME, "selection": {}, "have": 7}).encode(),
        json.dumps({"visitor": ME, "selection": {}, "clicked": [1]}).encode(),
        json.dumps({"visitor": ME, "selection": {"a": 2**70}}).encode(),
        json.dumps({"visitor": [ME], "selection": {}}).encode(),
        b'{"visitor": "%s", "selection": {"a": "\\ud800"}}' % ME.encode(),
        b'{"visitor": "%s", "selection": {"a": NaN}}' % ME.encode(),
        b'{"visitor": "%s", "selection": %s}' % (ME.encode(), b'{"a":' * 900 + b"1" + b"}" * 900),
    ],
)  # fmt: skip
@pytest.mark.parametrize("does", ["view", "do"])
def test_whatever_no_page_sends_is_refused_in_a_sentence(does, body):
    answer = client().post(f"/{does}/tried", content=body)
    assert ask(client(), does, "of no panel").status_code == 400
    expected = 200 if does == "do" and b'"have"' in body else 400
    assert answer.status_code == expected and (expected == 200 or answer.json() == {"problem": STRANGE})


def test_an_act_changes_something_and_moves_the_selection():
    done = []
    server = client(act=lambda asked: done.append(asked.selection) or {"move": {"b": 2}})
    assert ask(server, "do", selection={"a": 1}).json() == {"move": {"b": 2}} and done == [{"a": 1}]
    assert ask(client(), "do").json() == {}


def test_what_stands_in_a_template_is_escaped():
    assert panel.slot("a", class_='b"c') == '<div data-slot="a" class="b&quot;c"></div>'
    button = panel.move_button("<b>", {"prompt": "\"'<"})
    assert "&lt;b&gt;" in button and "<b>" not in button
    assert "<i>" not in panel.choice("a", "<i>", {"<i>": "<i>"}) + panel.switch("a", "<i>", {"<i>": "<i>"})


def question(panels: Panels, visitor: str, network: str = "") -> asyncio.Future:
    """What a visitor asks the panel."""

    async def body() -> dict:
        return {"visitor": visitor, "selection": {"from": network}, "later": True}

    request = SimpleNamespace(path_params={"name": "tried"}, json=body, network=network)
    return asyncio.ensure_future(panels._answer(panels._wish, request))


def test_one_visitor_cannot_keep_all_threads_busy():
    go, panels = threading.Event(), Panels(known)
    panels._views["tried"] = lambda asked: go.wait(20) and Shown({}, {})

    async def crowd() -> list[int]:
        asking = [question(panels, ME) for _ in range(AT_ONCE + 2)]
        await asyncio.sleep(0.2)
        refused = [each.result().status_code for each in asking if each.done()]
        go.set()
        await asyncio.gather(*asking)
        return refused

    assert asyncio.run(crowd()) == [429, 429] and not panels._asking


@pytest.mark.parametrize("who", [None, "anna"], ids=["networks", "visitors of one network"])
def test_networks_and_their_visitors_take_turns_where_threads_are_short(who):
    """Visitors' ids cost nothing: with a hundred, one network kept every thread of the panels to itself."""
    go, asked = threading.Semaphore(0), []

    def view(wish: Asked) -> Shown:
        asked.append((wish.visitor, wish.selection["from"]))
        assert go.acquire(timeout=20)
        return Shown({}, {})

    panels = Panels(lambda visitor: visitor, network=lambda request: request.network)
    panels._views["tried"] = view

    async def crowd() -> None:
        few = AT_ONCE if who else 10 * panel.SLOW  # no visitor may ask more at once
        asking = [question(panels, who or f"visitor {number}", "mob") for number in range(few)]
        await asyncio.sleep(0)
        asking.append(question(panels, "bert", "mob" if who else "a home"))
        for _ in asking:
            go.release()
        await asyncio.gather(*asking)

    asyncio.run(crowd())
    assert [visitor for visitor, _ in asked].index("bert") <= 2 * panel.SLOW
