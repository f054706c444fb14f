"""Clicks that no page would send, posted to the real server: sentences, and nothing in the log."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

from playground.ui.app import build_app, launch
from tests.ui.raw import RawCaller
from tests.ui.test_clicks import NONSENSE

SAID = [None, [], "x", 7, {}, *({"index": place, "value": place, "trace": place, "x": place} for place in NONSENSE)]


@pytest.fixture(scope="module")
def caller():
    app = build_app()
    _, address, _ = launch(app, port=None, prevent_thread_lock=True, quiet=True)
    yield RawCaller(address, "a-raw-session")
    app.close(verbose=False)


def clickable(caller: RawCaller) -> list[dict]:
    """What of Inspect and of Dense vs MoE hears clicks."""
    tabs = ("tab-inspect", "tab-moe")
    parts = {number for number, c in caller.components.items() if c["props"].get("elem_id") in tabs}
    inside: set[int] = set()

    def walk(node: dict, within: bool) -> None:
        within = within or node["id"] in parts
        if within:
            inside.add(node["id"])
        for child in node.get("children") or []:
            walk(child, within)

    walk(caller.config["layout"], False)
    return [
        d for d in caller.config["dependencies"]
        if d["backend_fn"] and any(event == "select" and number in inside for number, event in d["targets"])
        and caller.components[d["targets"][0][0]]["type"] == "html"
    ]  # fmt: skip


def asked(caller: RawCaller, dependency: dict, said) -> None:
    data = [caller.components[number]["props"].get("value") for number in dependency["inputs"]]
    body = {"data": data, "fn_index": dependency["id"], "session_hash": caller.session, "event_data": said,
            "trigger_id": dependency["targets"][0][0]}  # fmt: skip
    path = "queue/join" if dependency["queue"] is not False else "run/predict"
    request = urllib.request.Request(
        f"{caller.address}/gradio_api/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        urllib.request.urlopen(request, timeout=60).read()
    except urllib.error.HTTPError as refused:
        words = refused.read().decode()
        assert refused.code == 500 and ("click again" in words or "the page never sends" in words)


def answers(caller: RawCaller, count: int) -> list[dict]:
    """What the queue says, until so many questions are answered."""
    found: list[dict] = []
    with urllib.request.urlopen(
        f"{caller.address}/gradio_api/queue/data?session_hash={caller.session}", timeout=60
    ) as stream:
        for line in stream:
            if line.startswith(b"data:") and (message := json.loads(line[5:]))["msg"] == "process_completed":
                found.append(message)
                if len(found) == count:
                    break
    return found


def test_no_click_ends_in_a_traceback(caller, capfd):
    queued = 0
    for dependency in clickable(caller):
        for said in SAID:
            asked(caller, dependency, said)
            queued += dependency["queue"] is not False
    assert queued > 100
    for answer in answers(caller, queued):
        assert answer["success"] or "the page never sends" in answer["output"]["error"]
    logged = capfd.readouterr()
    assert "Traceback" not in logged.err + logged.out
