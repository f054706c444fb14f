"""A caller without a page: finds the endpoints a page would use and posts to them whatever a test likes."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import httpx

from playground.ui.app import launch
from playground.ui.gradio_fixes.blocks import Blocks
from playground.ui.page import Page

JSON = {"content-type": "application/json"}


@contextlib.contextmanager
def serving(app: Blocks, **how: Any) -> Iterator[tuple[Page, str]]:
    """The page's parts and its address, as long as it is served."""
    _, address, _ = launch(app, port=None, prevent_thread_lock=True, quiet=True, **how)
    yield app.page, address
    app.close(verbose=False)


def web(method: str, address: str, **asked: Any) -> httpx.Response:
    """The answer, whatever its status. Nothing is encrypted here, so no certificates are read, which takes long."""
    return httpx.request(method, address, verify=False, timeout=60, **asked)


class RawCaller:
    """Posts to one address as one session. Components are named by elem_id, label or type."""

    def __init__(self, address: str, session: str = "a-session"):
        self.address, self.session = address.rstrip("/"), session
        self.config = web("GET", f"{self.address}/config").json()
        self.components = {component["id"]: component for component in self.config["components"]}

    def component(self, name: str) -> int:
        """The id of the first component with this elem_id, label or type."""
        return self._named(name)[0]

    def _named(self, name: str) -> list[int]:
        return [
            number
            for number, component in self.components.items()
            if name in (component["props"].get("elem_id"), component["props"].get("label"), component["type"])
        ]

    def endpoint(self, name: str, event: str = "click") -> dict[str, Any]:
        """The first dependency with a handler in Python that this event of a component of this name calls."""
        return next(self._endpoints(name, event))

    def _endpoints(self, name: str, event: str) -> Iterator[dict[str, Any]]:
        targets = [[number, event] for number in self._named(name)]
        for dependency in self.config["dependencies"]:
            if dependency["backend_fn"] and any(list(target) in targets for target in dependency["targets"]):
                yield dependency

    def call(self, name: str, event: str = "click", **changes: Any) -> tuple[int, str]:
        """Call it with the page's first values, some changed (by elem_id or label); (status, answer as text)."""
        wanted = {changed: set(self._named(changed)) for changed in changes}
        fits = (one for one in self._endpoints(name, event) if all(ids & {*one["inputs"]} for ids in wanted.values()))
        endpoint = next(fits, None)
        assert endpoint, f"{name} has nothing that takes {', '.join(changes)}"
        data = {number: self.components[number]["props"].get("value") for number in endpoint["inputs"]}
        for changed, value in changes.items():
            data[next(number for number in data if number in wanted[changed])] = value
        return self.post(endpoint["id"], list(data.values()))

    def form(self, name: str, visitor: Any, causes: list[str] | None = None, /, **changes: Any) -> tuple[int, str]:
        """Press the button of a form (`ui/forms/followed.py`), or touch it with these causes; changes by field."""
        body = self.form_body(name, visitor, {}, causes)
        values = body["selection"]["values"]
        assert changes.keys() <= values.keys(), changes.keys() - values.keys()
        values |= changes
        return self._posted(f"do/{name}", json.dumps(body).encode())

    def form_body(
        self, name: str, visitor: Any, values: dict[int, Any], causes: list[str] | None = None
    ) -> dict[str, Any]:
        """What that sends; `values` are those of components that do not hold the page's first ones."""
        begins = f'playground.form.pressed({{"name": "{name}"'
        its = next(each for each in self.config["dependencies"] if begins in (each["js"] or ""))
        fields = json.JSONDecoder().raw_decode(its["js"], its["js"].index('{"name"'))[0]["reads"]
        held = [values.get(number, self.components[number]["props"].get("value")) for number in its["inputs"]]
        selection = {"values": dict(zip(fields, held)), "causes": causes or [], "pressed": causes is None}
        return {"visitor": visitor, "selection": selection}

    def post(self, function: int, data: list[Any]) -> tuple[int, str]:
        """Post to the endpoint that gradio's page uses for events outside the queue."""
        body = json.dumps({"data": data, "fn_index": function, "session_hash": self.session}).encode()
        return self._posted("gradio_api/run/predict", body)

    def _posted(self, path: str, body: bytes) -> tuple[int, str]:
        answer = web("POST", f"{self.address}/{path}", content=body, headers=JSON)
        return answer.status_code, answer.text
