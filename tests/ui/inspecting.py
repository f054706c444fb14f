"""An Inspect panel without a browser: one model of a visitor's own, and what the panel shows of it for a selection."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go

from playground.data.tokenizers import CharTokenizer
from playground.inspection import Look
from playground.model import ModelConfig, Transformer
from playground.service.limits import LOCAL, Limits
from playground.service.models import Registry
from playground.storage import Checkpoint
from playground.training import History
from playground.ui.panel import Asked, Shown
from playground.ui.tabs import inspect
from playground.ui.tabs.inspect.looks import Looks
from playground.ui.tabs.inspect.selection import At
from tests.model.configs import TINY

from ..figures.decoded import numbers_of
from .panels import page_of

LETTERS = CharTokenizer("ab<>&cde\n ")


def made_up(config: ModelConfig = TINY, seed: int = 1, **more: Any) -> Checkpoint:
    """A model of these letters that learned nothing and of which nothing is known, as one from the Hub."""
    config = config.replace(vocab_size=LETTERS.vocab_size, init_std=0.5)
    return Checkpoint(Transformer(config, seed=seed), LETTERS, History(), "tried", **more)


def check_figures(made: Mapping[str, Any]) -> int:
    """Plotly itself takes every figure of these slots; how many there are. Raises on what it does not know."""
    figures = [content["figure"] for content in made.values() if isinstance(content, dict) and "figure" in content]
    for figure in figures:
        layout = {key: value for key, value in figure["layout"].items() if key not in ("template", "meta")}
        go.Figure({"data": [{k: v for k, v in t.items() if k != "meta"} for t in figure["data"]], "layout": layout})
    return len(figures)


class Inspecting:
    """The panel's view, asked as a browser asks it."""

    def __init__(self, checkpoint: Checkpoint, limits: Limits = LOCAL):
        registry = Registry(limits)
        self.visitor = registry.data.new_visitor()
        self.model_id = registry.add(self.visitor, checkpoint)
        self.page = page_of(registry)
        self.looks = Looks(self.page)
        self.page.share("inspect.looks", self.looks)

    def add(self, checkpoint: Checkpoint) -> str:
        """The id of another model of the visitor's; the one before it goes."""
        return self.page.registry.add(self.visitor, checkpoint, model_id="another")

    def asked(self, prompt: Any, clicked: Mapping[str, Any] | None = None, **selection: Any) -> Asked:
        """What a browser sends."""
        sent = {"model": self.model_id, "prompt": prompt, **selection}
        return Asked(self.visitor, sent, dict(clicked) if clicked else None)

    def at(self, prompt: Any, **selection: Any) -> At:
        """What the views draw from."""
        return inspect.read(self.page, self.looks, self.asked(prompt, **selection))[0]

    def look(self, prompt: str) -> Look:
        """The model's look at the prompt."""
        return self.at(prompt).look

    def shown(self, prompt: Any, clicked: Mapping[str, Any] | None = None, **selection: Any) -> Shown:
        """The selection afterwards, and the slots."""
        return inspect.show(self.page, self.looks, self.asked(prompt, clicked, **selection))

    def made(self, prompt: Any, **selection: Any) -> dict[str, Any]:
        """What every slot shows; a refusal as its sentence."""
        contents = {}
        for name, slot in self.shown(prompt, **selection).slots.items():
            try:
                contents[name] = slot.make()
            except ValueError as problem:
                contents[name] = str(problem)
        return contents


def drawn(content: Mapping[str, Any], trace: int = 0) -> np.ndarray:
    """The numbers of a map."""
    return numbers_of(content["figure"]["data"][trace]["z"])
