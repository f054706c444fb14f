"""A page's panels without a page: asks the routes for what a panel shows, presses its buttons, hears the news."""

import html
import re
from typing import Any

from playground.service.board import Board
from playground.service.models import Registry
from playground.ui.page import Page

from .raw import RawCaller, web
from .runs import known


class PanelCaller:
    """One visitor's panel. It keeps the selection as the browser does, and `slots` of the last answer."""

    def __init__(self, address: str, visitor: str, panel: str, model: str = "", **selection: Any):
        self.address, self.visitor, self.panel, self.model = address.rstrip("/"), visitor, panel, model
        self.selection: dict[str, Any] = selection
        self.slots: dict[str, Any] = {}

    def post(self, path: str, **body: Any) -> tuple[int, dict]:
        """Post to a route as the page does."""
        answer = web("POST", f"{self.address}/{path}", json={"visitor": self.visitor, **body})
        return answer.status_code, answer.json()

    def look(self, **moves: Any) -> dict[str, Any]:
        """What the panel shows after these moves, the slow slots among it: HTML, or a chart's value."""
        self.selection |= moves
        asked = {"selection": {**self.selection, "model": self.model}}
        status, answer = self.post(f"view/{self.panel}", **asked)
        assert status == 200 and "problem" not in answer, answer
        slots, late = dict(answer["slots"]), answer
        while late["later"]:
            have = {name: digest for name, (digest, _) in slots.items()}
            late = self.post(f"view/{self.panel}", **asked, have=have, later=True)[1]
            slots |= late["slots"]
        self.selection = answer["selection"]
        self.slots = {name: content for name, (_, content) in slots.items()}
        return self.slots

    def do(self, deed: str, /, **more: Any) -> dict:
        """Press a button; returns the answer."""
        _, answer = self.post(f"do/{deed}", selection={**self.selection, "model": self.model, **more})
        self.selection |= answer.get("move", {})
        return answer

    def news(self) -> dict[str, Any]:
        """What the page hears."""
        return web("GET", f"{self.address}/news?visitor={self.visitor}").json()


class PageCaller(PanelCaller):
    """An open page of a visitor: a panel, the bar above it, and what calls the page's own endpoints."""

    panel: str

    def __init__(self, served: tuple[Any, str], visitor: str, model: str = "shipped-stories"):
        self.board, address = served
        super().__init__(address, known(visitor), self.panel, model)
        self.bar = PanelCaller(address, self.visitor, f"{self.panel}-bar", model)
        self.caller = RawCaller(address, visitor)

    def text(self, *slots: str) -> str:
        """What these slots say."""
        said = " ".join(str(self.slots[slot]) for slot in slots)
        return " ".join(html.unescape(re.sub("<[^>]+>", " ", said)).split())


def page_of(registry: Registry, **more: Any) -> Page:
    """A page of these models that nobody has opened, without components."""
    return Page(registry.limits, registry, Board(registry, registry.limits), None, None, None, **more)
