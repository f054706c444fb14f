"""A Generate panel without a browser: one model of a visitor's own, the texts that it writes, and what is shown."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from playground.data.tokenizers import CharTokenizer
from playground.model import Transformer
from playground.service.limits import LOCAL
from playground.service.models import Registry
from playground.storage import Checkpoint
from playground.training import History
from playground.ui.panel import Asked, Shown
from playground.ui.tabs import generate as tab
from playground.ui.tabs.generate import writing
from playground.ui.tabs.generate.game import Game
from playground.ui.tabs.generate.why import Why
from playground.ui.tabs.generate.writing import Writing
from tests.model.configs import TINY

from .panels import page_of

TOKENIZER = CharTokenizer("<b>&\n\"'xy")
CONFIG = TINY.replace(vocab_size=TOKENIZER.vocab_size)
CHECKPOINT = Checkpoint(Transformer(CONFIG, seed=1), TOKENIZER, History(), "Stories <b>")
PROMPT = "xy<b>"
RULES = {"temperature": 1.3, "top_k": 5, "top_p": 1, "seed": 2}


class Generating:
    """The panel with one model of a visitor's own, asked as a browser asks it."""

    def __init__(self, checkpoint: Checkpoint = CHECKPOINT, limits=LOCAL):
        registry = Registry(limits)
        self.visitor = registry.data.new_visitor()
        self.model_id = registry.add(self.visitor, checkpoint)
        self.checkpoint = registry.get(self.model_id, self.visitor)
        self.page = page_of(registry)
        self.game, self.writing, self.why = Game(self.page), Writing(self.page), Why(self.page)

    def asked(self, **selection: Any) -> Asked:
        return Asked(self.visitor, {"model": self.model_id, "prompt": PROMPT, **RULES, **selection})

    def lines(self, after: Any = None, stopped: threading.Event | None = None, **selection: Any) -> Iterator[dict]:
        return writing.written(self.page, self.asked(**selection), after, stopped or threading.Event())

    def text(self, after: Any = None, **selection: Any) -> Text:
        return Text(list(self.lines(after, **selection)), after)

    def shown(self, **selection: Any) -> Shown:
        return tab.show(self.page, self.game, self.why, self.asked(**selection))

    def made(self, name: str, **selection: Any) -> Any:
        return self.shown(**selection).slots[name].make()

    def client(self) -> TestClient:
        write = Route("/write", self.writing.answer, methods=["POST"])
        return TestClient(Starlette(routes=[*self.page.panels.routes(), write]))


class Text:
    """A text as the browser has it after these lines."""

    def __init__(self, lines: list[dict], after: Any = None):
        json.dumps(lines)
        self.head, self.end = lines[0]["head"], lines[-1].get("end")
        new = [line["new"] for line in lines if "new" in line]
        kept = list(after["tokens"]) if after else []
        samples = len(new[0])
        self.ids = [kept + [token[0] for part in new for token in part[i]] for i in range(samples)]
        self.pieces = [self.head["kept"] + [token[1] for part in new for token in part[i]] for i in range(samples)]
        self.chances = [[token[2] for part in new for token in part[i]] for i in range(samples)]

    def up_to(self, index: int, *, sample: int = 0, **more: Any) -> dict[str, Any]:
        """What a browser sends to have a token opened."""
        part = self.head["part"]
        return {
            "prompt": self.head["prompt"], "tokens": self.ids[sample][: index + 1], "start": part["start"],
            "rules": part["rules"], "precision": part["precision"], "step": self.head["step"], "chosen": False, **more,
        }  # fmt: skip
