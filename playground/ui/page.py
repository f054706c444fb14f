"""Page: what the tabs share, passed to each tab's `build(page)`: models, limits, the visitor, the chosen model.

A tab is a module of `playground.ui.tabs` with `TITLE` and `build(page)`; its id is the module's name. It shows a
panel (`panel.py`), and its settings are a form (`forms/followed.py`). When the page loads, only the functions given to
`page.on_load` run. Wiring that needs other tabs goes to `page.later`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gradio as gr
from starlette.requests import Request

from ..kept import Latest
from ..service.board import Board
from ..service.cards import run_letters
from ..service.limits import PAGES, Limits
from ..service.models import Registry
from ..service.uploads import Uploads
from .panel import Panels
from .where import Reach

# for handlers that only the page itself calls, and that show their own progress. Nothing is to show
# gradio's progress: else its page tells all outputs of all handlers of each change, a tenth of a second per click
UNSEEN = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
VISITOR_HEADER = "x-playground-visitor"
"""The header that names an upload's visitor; assets/complaints.js writes it."""
# for handlers that answer at once
QUIETLY = {"queue": False, **UNSEEN}


@dataclass
class Page:
    """The shared parts of the page while it is being built, and for its handlers afterwards."""

    limits: Limits
    registry: Registry
    board: Board
    visitor: gr.BrowserState
    """Value: the visitor's unguessable id. Whoever knows it is that visitor."""
    model: gr.Dropdown
    """Value: the id of the model chosen now, above all tabs; give its value to `registry.get`."""
    tabs: gr.Tabs
    tab_ids: tuple[str, ...] = ()
    """The tabs this page has."""
    reach: Reach = field(default_factory=Reach)
    """How visitors reach the server."""
    opened: Latest = field(default_factory=lambda: Latest(PAGES))
    """The visitors who have opened a page, with whom programs share the server."""
    panels: Panels = field(init=False)
    """The panels, which answer a selection in the browser."""
    uploads: Uploads = field(init=False)
    """Whose files are in gradio's upload folder."""
    _shared: dict[str, Any] = field(default_factory=dict)
    on_load_handlers: list[tuple[Callable, list, list, Callable]] = field(default_factory=list)
    """What was given to `on_load`."""
    _later: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.panels = Panels(self.known, self.link_to, self.reach.origin_of)
        self.uploads = Uploads(self.limits)

    def model_list(self, visitor: str | None, chosen: str | None) -> gr.Dropdown:
        """The update with which a handler renews the list of `page.model`."""
        value = chosen if self.registry.has(chosen, visitor) else self.registry.default
        return gr.Dropdown(choices=self.models_of(visitor, value), value=value)

    def models_of(self, visitor: str | None, chosen: str | None) -> list[tuple[str, str]]:
        """(label, id) of the models that this visitor may choose; a shared one is listed only while it is chosen.

        A label begins with the step in use, where that is not the last.
        """
        steps = {
            job.id: f"Step {job.used:,} of {job.view().history.last_step:,} · "
            for job in self.board.of(visitor)
            if job.used is not None and not job.active
        }
        choices = [(f"{steps.get(model_id, '')}{name}", model_id) for name, model_id in self.registry.choices(visitor)]
        if chosen in (None, *(model_id for _, model_id in choices)) or not self.registry.has(chosen, visitor):
            return choices
        return [(f"{self.registry.get(chosen, visitor).name} · shared", chosen), *choices]

    def step_of(self, visitor: str | None, model_id: str | None) -> int | None:
        """The step whose weights are the model now; None if the model is not here."""
        return self.registry.get(model_id, visitor).history.last_step if self.registry.has(model_id, visitor) else None

    def share(self, name: str, component: Any) -> None:
        """Let others use this part of a tab, commonly a component, under a name such as `train.prompt`."""
        self._shared[name] = component

    def shared(self, name: str) -> Any:
        """Another tab's part, or None if this page lacks that tab; call it from within `later`."""
        return self._shared.get(name)

    def later(self, wire: Callable[[], None]) -> None:
        """Call this once all tabs are built."""
        self._later.append(wire)

    def on_load(
        self, handler: Callable, inputs: list, outputs: list, after: Callable[[Any], None] = lambda event: None
    ) -> None:
        """Call this whenever a browser opens the page, once the visitor's id and list of models are known.

        `after` is given the event, to bind what follows it.
        """
        self.on_load_handlers.append((handler, inputs, outputs, after))

    def known(self, visitor: str | None) -> str:
        """The visitor's id. Raises ValueError for one that this server has not issued."""
        if not self.registry.data.knows(visitor):
            raise ValueError("This page has not been set up yet: reload it and try again.")
        return visitor

    def link_to(self, visitor: str, model_id: Any) -> dict[str, str]:
        """The words of a link: a shipped model by its name, the visitor's own with its run's recipe.

        `share` is the model's id in a copied link, if this server keeps the model for others.
        """
        if not isinstance(model_id, str) or not model_id:
            return {}
        if model_id.startswith("shipped-"):
            return {"model": model_id.removeprefix("shipped-")}
        job = self.board.find(visitor, model_id)
        letters = run_letters(job.view(), job.spec) if job else ""
        share = {"share": self.registry.data.shared_id(model_id)} if self.shares(visitor, model_id) else {}
        return ({"run": letters} if letters else {}) | {"model": model_id} | share

    def shares(self, visitor: str, model_id: Any) -> bool:
        """Whether a copied link opens this model of the visitor's own for everybody."""
        return self.registry.data.lasting and self.registry.owns(model_id, visitor)

    def sender_of(self, request: Request) -> tuple[str, str]:
        """The address from which an upload comes, and its visitor according to the page; no visitor for a program."""
        visitor = request.headers.get(VISITOR_HEADER, "")
        return self.reach.origin_of(request), visitor if self.registry.data.knows(visitor) else ""

    def share_of(self, request: Any, visitor: str = "") -> str:
        """The key by which work is divided fairly: a request's network, with pages and programs counted separately.

        `visitor` is the one whose panel or form sent the request; empty for a program.
        """
        return f"{self.reach.origin_of(request)} {'pages' if visitor in self.opened else 'programs'}"

    def finish(self) -> None:
        """Run what `later` postponed; call it once all tabs are built."""
        for wire in self._later:
            wire()
