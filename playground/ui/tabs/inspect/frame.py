"""Frame: the prompt and the place looked at, which all views of this tab share, and what redraws them.

A view is a module of this folder with TITLE and `build(frame)`:

    def build(frame: Frame) -> None:
        chart = Chart(...)

        def draw(look: Look, place: Place) -> dict:          # pure: numbers → what the components show
            return {chart: show(figure, sentence)}

        frame.follow(draw, [chart])                          # drawn whenever model, prompt or place has changed
                                                             # and this view is the open one
        def clicked(look, place, event: gr.SelectData):      # a click that moves the place
            return place.at(key=event.index[1])
        frame.moves(chart.select, clicked)

        def press(values: dict):                             # the view's own button, with inputs of its own
            with in_words():
                look, place = frame.read(values)
                ...
        button.click(press, {*frame.inputs, slider}, [chart])

`follow` and `moves` raise nothing on the page: a ValueError becomes the frame's notice and the pictures stay.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from ....inspection import Look, look
from ... import theme
from ...page import QUIETLY, Page, sentence
from ...prompts import read_prompt, suggestions

KEPT_LOOKS = 8
KEPT_BYTES = 256_000_000
MOST_DRAWN = 64
"""Tokens that a picture of token against token draws at most: those that end with the chosen one."""

Draw = Callable[[Look, "Place"], dict[Any, Any]]


@dataclass(frozen=True)
class Place:
    """Where the visitor looks: all counted from 0."""

    layer: int = 0
    head: int = 0
    query: int = 0
    """The token that asks."""
    key: int = 0
    """The token that it looks at."""

    def at(self, **changes: int) -> Place:
        """The same place with some of its numbers changed."""
        return dataclasses.replace(self, **changes)

    def within(self, look: Look) -> Place:
        """The nearest place that this prompt and model have; under a causal mask no key after its query."""
        layer = min(max(self.layer, 0), look.config.n_layers - 1)
        head = min(max(self.head, 0), look.config.n_heads - 1)
        query = min(max(self.query, 0), look.length - 1)
        return Place(layer, head, query, min(max(self.key, 0), look.length - 1))


@dataclass
class Frame:
    """What the views share. `inputs` is for handlers that take `values: dict`, `read(values)` makes sense of them."""

    page: Page
    prompt: gr.Textbox
    ideas: gr.Dataset
    layer: gr.Dropdown
    head: gr.Dropdown
    query: gr.Dropdown
    key: gr.Dropdown
    notice: gr.HTML
    """One sentence on how the prompt was read, or what is wrong with it."""
    view: gr.Textbox
    """Hidden; value: the name of the view that is open, empty before the tab was opened for the first time."""
    building: str = ""
    """The view being built."""
    _draws: dict[str, list[Draw]] = field(default_factory=dict)
    _outputs: list[Any] = field(default_factory=list)
    _moves: list[tuple[Any, Callable]] = field(default_factory=list)
    _looks: dict[tuple[str, str], Look] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def pickers(self) -> list[gr.Dropdown]:
        """The four drop-downs that make a Place."""
        return [self.layer, self.head, self.query, self.key]

    @property
    def inputs(self) -> set[Any]:
        """Inputs of a handler that calls `read`."""
        return {self.page.visitor, self.page.model, self.prompt, *self.pickers}

    def look(self, visitor: str | None, model_id: str | None, prompt: str) -> Look:
        """The model's own look at this prompt, from a small memory of the latest ones. Raises ValueError."""
        checkpoint = self.page.registry.get(model_id, visitor)
        ids, notes = read_prompt(self.page, checkpoint, prompt)
        name = (str(model_id), prompt)
        with self._lock:
            found = self._looks.pop(name, None)
            if found is not None and found.checkpoint is checkpoint:  # not one that training has replaced since
                self._looks[name] = found
                return found
        found = look(checkpoint, ids[-checkpoint.config.context_length :], notes)
        with self._lock:
            self._looks[name] = found
            while len(self._looks) > 1 and (
                len(self._looks) > KEPT_LOOKS or sum(kept.nbytes for kept in self._looks.values()) > KEPT_BYTES
            ):
                del self._looks[next(iter(self._looks))]
        return found

    def read(self, values: dict[Any, Any]) -> tuple[Look, Place]:
        """Look and place from a handler's values, which anybody may have sent. Raises ValueError."""
        found = self.look(values[self.page.visitor], values[self.page.model], values[self.prompt])
        numbers = (_whole(values[picker]) for picker in self.pickers)
        return found, Place(*numbers).within(found)

    def follow(self, draw: Draw, outputs: Iterable[Any]) -> None:
        """Call `draw(look, place)` whenever either has changed while the view being built is open."""
        self._draws.setdefault(self.building, []).append(draw)
        self._outputs.extend(outputs)

    def moves(self, event: Any, where: Callable[..., Place]) -> None:
        """On this event go to `where(look, place, event_data)`; a ValueError from it is shown, nothing moves."""
        self._moves.append((event, where))

    # ---- wiring ----------------------------------------------------------------------------------------------------

    def connect(self, tabs: dict[str, gr.Tab]) -> None:
        """Wire everything, once all views are built."""
        page, everything = self.page, [self.notice, self.view, *self.pickers, *dict.fromkeys(self._outputs)]
        inputs = {*self.inputs, self.view}
        first = next(iter(tabs), "")

        def opened(values: dict) -> dict:
            return self._redraw({**values, self.view: values[self.view] or first}, renewed=True)

        def renewed(values: dict) -> dict:
            return self._redraw(values, renewed=True) if values[self.view] else {}

        def moved(values: dict) -> dict:
            return self._redraw(values)

        quick = {"show_progress": "hidden", "api_visibility": "private", "concurrency_limit": 4,
                 "concurrency_id": "inspect", "trigger_mode": "always_last"}  # fmt: skip
        page.tab.select(opened, inputs, everything, **quick)
        for name, tab in tabs.items():
            tab.select(_opener(self, name), inputs, everything, **quick)
        self.prompt.input(renewed, inputs, everything, **quick)
        self.prompt.submit(renewed, inputs, everything, **quick)
        for picker in self.pickers:
            picker.input(moved, inputs, everything, **quick)
        for event, where in self._moves:
            event(_mover(self, where), inputs, everything, **quick)

        def another_model(visitor: str | None, model_id: str | None) -> tuple[str, gr.Dataset]:
            known = suggestions(page, model_id, visitor)
            return known[0], gr.Dataset(samples=[[s] for s in known])

        chosen = page.model.change(another_model, [page.visitor, page.model], [self.prompt, self.ideas], **QUIETLY)
        chosen.then(renewed, inputs, everything, **quick)
        self.ideas.click(lambda sample: sample[0], self.ideas, self.prompt, **QUIETLY).then(
            renewed, inputs, everything, **quick
        )

    def _redraw(self, values: dict, *, renewed: bool = False, where: Callable[[Look, Place], Place] | None = None):
        """Updates of the open view's components; with `renewed`, of the pickers as well."""
        try:
            found, place = self.read(values)
            if where is not None:
                place = where(found, place).within(found)
        except ValueError as problem:
            return {self.notice: theme.notice(sentence(str(problem)), "error")}
        shown = {
            self.notice: "".join(theme.notice(note, "warning") for note in found.notes),
            self.view: values[self.view],
        }
        if renewed or where is not None:
            shown |= self._picked(found, place, lists=renewed)
        for draw in self._draws.get(values[self.view], []):
            try:
                shown |= draw(found, place)
            except ValueError as problem:
                shown[self.notice] = theme.notice(sentence(str(problem)), "error")
        return shown

    def _picked(self, found: Look, place: Place, lists: bool) -> dict:
        numbers = dataclasses.astuple(place)
        if not lists:
            return dict(zip(self.pickers, numbers))
        tokens = [(label, i) for i, label in enumerate(found.labels())]
        choices = (_numbered(found.config.n_layers), _numbered(found.config.n_heads), tokens, tokens)
        return {p: gr.Dropdown(choices=c, value=n) for p, c, n in zip(self.pickers, choices, numbers)}


def build(page: Page) -> Frame:
    """The prompt, its suggestions, the four pickers and the notice."""
    known = suggestions(page, page.registry.default, None)
    with gr.Column(elem_classes="card", elem_id="inspect-frame"):
        prompt = gr.Textbox(
            known[0], label="Prompt", info="Type: everything below follows.", max_lines=4, elem_id="inspect-prompt"
        )
        ideas = gr.Dataset(
            components=[prompt], samples=[[s] for s in known], label="Beginnings this model knows", type="values"
        )
        with gr.Row(elem_id="inspect-place"):
            layer, head, query, key = (
                _picker(label, info, elem_id)
                for label, info, elem_id in (
                    ("Layer", "counted from 0", "inspect-layer"),
                    ("Head", "counted from 0", "inspect-head"),
                    ("Token that asks (query)", "a row of the pictures", "inspect-query"),
                    ("Token it looks at (key)", "a column of the pictures", "inspect-key"),
                )
            )
        notice = gr.HTML(padding=False, elem_id="inspect-notice")
        view = gr.Textbox("", visible=False)
    page.share("inspect.prompt", prompt)
    return Frame(page, prompt, ideas, layer, head, query, key, notice, view)


def _picker(label: str, info: str, elem_id: str) -> gr.Dropdown:
    picker = gr.Dropdown([("0", 0)], value=0, label=label, info=info, filterable=False, min_width=120, elem_id=elem_id)
    # a session's own list may have been forgotten: `Place.within` holds every number to what there is
    picker.preprocess = lambda payload: payload
    return picker


def _opener(frame: Frame, name: str) -> Callable:
    def open_view(values: dict) -> dict:
        return frame._redraw({**values, frame.view: name}, renewed=True)

    return open_view


def _mover(frame: Frame, where: Callable[..., Place]) -> Callable:
    def move(values: dict, event: gr.SelectData) -> dict:
        return frame._redraw(values, where=lambda found, place: where(found, place, event))

    return move


def _numbered(count: int) -> list[tuple[str, int]]:
    return [(str(i), i) for i in range(count)]


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0
