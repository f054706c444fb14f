"""A visitor without a browser: presses what a page's components hear, over HTTP, and reads what they show."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx

from tests.ui.raw import RawCaller


@contextlib.asynccontextmanager
async def connected(address: str, most: int) -> AsyncIterator[httpx.AsyncClient]:
    """The connections of a crowd of so many."""
    limits = httpx.Limits(max_connections=2 * most + 4, keepalive_expiry=2)  # the server closes them after 5 seconds
    async with httpx.AsyncClient(base_url=address, timeout=600, limits=limits) as client:
        yield client


class Visitor:
    """One open page: a session and the values of the components so far; `open` has the server issue the visitor's id.

    One action at a time. What only a browser does (a `.then` after an event) is asked for by the script.
    """

    def __init__(self, client: httpx.AsyncClient, house: RawCaller):
        """house: the page's own description of itself, fetched once for all."""
        self.client, self.house = client, house
        self.session = secrets.token_hex(8)
        self.values: dict[int, Any] = {house.component("browserstate"): ""}
        self.props: dict[int, dict[str, Any]] = {}
        self.panels: dict[str, tuple[dict[str, Any], dict[str, str]]] = {}
        """By its name, what a panel has selected and shows."""
        self.slots: dict[str, dict[str, Any]] = {}
        """The contents of a panel's slots, by the panel's name."""
        self.first: float | None = None
        """Seconds from the last press to the first thing that it showed."""

    def set(self, name: str, value: Any) -> None:
        """Fill in a component, by elem_id or label."""
        self.values[self.house.component(name)] = value

    def get(self, name: str) -> Any:
        """What a component holds or shows."""
        return self._value(self.house.component(name))

    def shown(self, name: str) -> dict[str, Any]:
        """How a component looks: whether it is awake, its label …"""
        number = self.house.component(name)
        return self.props.get(number, self.house.components[number]["props"])

    @property
    def id(self) -> str:
        """The visitor's id, as the browser keeps it."""
        return self.get("browserstate")

    async def press(self, name: str, event: str = "click", said: Any = None) -> float:
        """Press a component and wait for the answer; seconds it took.

        Raises RuntimeError with what the page would say.
        """
        return await self.call(self.house.endpoint(name, event), said)

    async def submits(self, form: str) -> None:
        """Press a form's button. Raises RuntimeError with what the page would say where nothing is begun."""
        body = self.house.form_body(form, self.id, self.values)
        answer = (await self.client.post(f"/do/{form}", json=body)).json()
        if not answer.get("begun"):
            raise RuntimeError(str(answer.get("problem") or " ".join(map(str, answer.get("shows", {}).values()))))

    async def looks(self, panel: str, **changes: Any) -> float:
        """Change a panel's selection and wait for what it shows; seconds it took.

        Raises RuntimeError with what the panel would say.
        """
        began, seen = time.perf_counter(), self.panels.setdefault(panel, ({}, {}))
        selection, have = seen
        selection |= {"model": "shipped-stories", **changes}
        body = {"visitor": self.values[self.house.component("browserstate")], "selection": selection, "have": have}
        answer = (await self.client.post(f"/view/{panel}", json=body)).json()
        if "problem" in answer:
            raise RuntimeError(answer["problem"])
        selection |= answer["selection"]
        have |= {name: digest for name, (digest, _) in answer["slots"].items()}
        self.slots.setdefault(panel, {}).update({name: content for name, (_, content) in answer["slots"].items()})
        return time.perf_counter() - began

    async def does(self, deed: str, **selection: Any) -> dict[str, Any]:
        """Press a panel's button; the answer. Raises RuntimeError with what the panel would say."""
        body = {"visitor": self.values[self.house.component("browserstate")], "selection": selection}
        answer = (await self.client.post(f"/do/{deed}", json=body)).json()
        if "problem" in answer:
            raise RuntimeError(answer["problem"])
        return answer

    async def news(self) -> dict[str, Any]:
        """What an open page hears: among it the seconds until it looks again, none while nothing goes on."""
        params = {"visitor": self.values[self.house.component("browserstate")]}
        return (await self.client.get("/news", params=params)).json()

    async def writes(self, **changes: Any) -> float:
        """Have a text written; seconds it took. Raises RuntimeError with what the panel would say."""
        if "generate" not in self.panels:
            await self.looks("generate")
        began, self.first = time.perf_counter(), None
        visitor, selection = self.values[self.house.component("browserstate")], self.panels["generate"][0]
        selection |= changes
        async with self.client.stream("POST", "/write", json={"visitor": visitor, "selection": selection}) as answer:
            async for line in answer.aiter_lines():
                said = json.loads(line)
                if "problem" in said:
                    raise RuntimeError(said["problem"])
                if "new" in said:
                    self.first = self.first or time.perf_counter() - began
        return time.perf_counter() - began

    async def stay(self) -> None:
        """Keep the session alive as an open page does, until cancelled; then the server may forget it."""
        async with self.client.stream("GET", f"/gradio_api/heartbeat/{self.session}") as beats:
            async for _ in beats.aiter_lines():
                pass

    async def open(self) -> float:
        """Do what a page does when it opens, in its order; seconds of the handlers together."""
        depends = self.house.config["dependencies"]
        waiting = [d for d in depends if any(event == "load" for _, event in d["targets"]) and d["backend_fn"]]
        seconds = 0.0
        for dependency in waiting:
            seconds += await self.call(dependency)
            waiting += [d for d in depends if d.get("trigger_after") == dependency["id"] and d["backend_fn"]]
        return seconds

    async def call(self, dependency: dict[str, Any], said: Any = None) -> float:
        """Call one handler with what its inputs hold now, and take in what it answers; seconds it took."""
        began, self.first = time.perf_counter(), None
        body = {
            "data": [self._value(number) for number in dependency["inputs"]],
            "fn_index": dependency["id"],
            "session_hash": self.session,
            "event_data": said,
            "trigger_id": dependency["targets"][0][0] if dependency["targets"] else None,
        }
        if dependency["queue"] is False:
            answer = (await self._post("run/predict", body))["data"]
        else:
            event = (await self._post("queue/join", body))["event_id"]
            answer = await self._answer(event, began)
        seconds = time.perf_counter() - began
        self.first = self.first or seconds
        for number, value in zip(dependency["outputs"], answer):
            if isinstance(value, dict) and value.get("__type__") == "update":
                self.props.setdefault(number, dict(self.house.components[number]["props"])).update(value)
                if "value" in value:
                    self.values[number] = value["value"]
            else:
                self.values[number] = value
        return seconds

    def _value(self, number: int) -> Any:
        return self.values.get(number, self.house.components[number]["props"].get("value"))

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        json_header = {"Content-Type": "application/json"}
        answer = await self.client.post(f"/gradio_api/{path}", content=json.dumps(body), headers=json_header)
        if answer.status_code != 200:
            raise RuntimeError(f"{answer.status_code}: {answer.text[:200]}")
        return answer.json()

    async def _answer(self, event: str, began: float) -> list[Any]:
        found: list[Any] = []
        async with self.client.stream("GET", "/gradio_api/queue/data", params={"session_hash": self.session}) as lines:
            async for line in lines.aiter_lines():
                if not line.startswith("data:"):
                    continue
                message = json.loads(line.removeprefix("data:"))
                if message["msg"] == "close_stream":
                    break
                if message.get("event_id") != event:
                    continue
                if message["msg"] in ("process_generating", "process_completed"):
                    self.first = self.first or time.perf_counter() - began
                if message["msg"] == "process_completed":
                    if not message["success"]:
                        raise RuntimeError(str(message["output"])[:200])
                    found = message["output"]["data"]
        return found
