"""Panels: what the route answers and refuses, as JSON for a browser; in the script the newest question wins."""

import asyncio
import json
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import playground
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


SCRIPT = """
const asked = [], waits = [], heard = [];
global.setTimeout = (go, time) => { waits.push(time); queueMicrotask(go); };
let answers = {}; // path → how its question ends
const ask = (path, body, signal) => new Promise((answer, fail) => {
  asked.push([path, body, signal]);
  answers[path] = { answer, fail };
});
global.window = { playground: { ask } };
NEWEST
const newest = new window.playground.Newest();
const begin = (path, pause) => newest.do(async (ask) => {
  const first = await ask(path, () => ({ n: asked.length }));
  heard.push(first);
  return first;
}, pause);
const turn = () => new Promise((done) => setImmediate(done));
let ended = null;
(async () => {
  DOINGS;
  const sent = asked.map(([path, body, signal]) => [path, body.n, signal.aborted]);
  console.log(JSON.stringify({ asked: sent, heard, waits, awaits: newest.awaits, ended }));
})();
"""


def run(doings: str) -> dict:
    if shutil.which("node") is None:
        pytest.skip("no node to run the page's script with")
    script = (Path(playground.__file__).parent / "ui/front/newest.js").read_text(encoding="utf-8")
    whole = SCRIPT.replace("NEWEST", script).replace("DOINGS", doings)
    return json.loads(subprocess.run(["node", "-e", whole], capture_output=True, text=True, check=True).stdout)


def test_an_older_answer_is_not_heard_however_late_it_comes():
    said = run("""const a = begin("/a"), b = begin("/b"); await turn(); answers["/b"].answer("b"); await b;
      answers["/a"].answer("a"); ended = [(await a) ?? null, await b]""")
    assert said["heard"] == ["b"] and said["ended"] == [None, "b"]
    assert [each[2] for each in said["asked"]] == [True, False], "the older request is cut off"


def test_what_is_asked_within_a_pause_is_asked_once():
    said = run("""const all = [begin("/a", 120), begin("/b", 120), begin("/c", 120)];
      await turn(); answers["/c"].answer("c"); await Promise.all(all)""")
    assert [each[0] for each in said["asked"]] == ["/c"] and said["waits"] == [120] * 3


def test_a_server_that_does_not_answer_is_asked_again_with_what_holds_by_then():
    said = run("""const a = begin("/a"); await turn(); answers["/a"].fail(new TypeError("no network")); await turn();
      answers["/a"].answer("now"); await a""")
    assert [each[1] for each in said["asked"]] == [0, 1] and said["heard"] == ["now"] and len(said["waits"]) == 1


def test_after_an_answer_or_when_it_is_dropped_nothing_is_awaited():
    assert run("""const a = begin("/a"); await turn()""")["awaits"]
    assert not run("""const a = begin("/a"); await turn(); answers["/a"].answer("a"); await a""")["awaits"]
    said = run("""const a = begin("/a"); await turn(); newest.drop();
      answers["/a"].answer("a"); ended = (await a) ?? null""")
    assert not said["awaits"] and said["heard"] == [] and said["ended"] is None


def test_an_error_of_the_work_itself_is_no_answer_of_the_server():
    said = run(
        """ended = await newest.do(async () => { throw new Error("ours"); }).catch((problem) => problem.message)"""
    )
    assert said["ended"] == "ours" and said["asked"] == [] and not said["awaits"]
