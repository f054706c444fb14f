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

A view's own choices reach `draw` by `follow(draw, outputs, extra=[radio])`, and redraw by `frame.redraws(radio.input)`.
`follow` and `moves` raise nothing on the page: a ValueError becomes the frame's notice and the pictures stay.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from ....inspection import Look
from ... import theme
from ...lenient import LenientDropdown
from ...links import copy_link, linked_prompt, query_of
from ...page import QUIETLY, Page, sentence
from ...prompts import suggestions
from .looks import EXAMPLE_NOTE, Looks
from .place import Place, best, last, watched, whole

__all__ = ["EXAMPLE", "MODEL", "Frame", "Place", "best", "build", "watched", "whole"]

MODEL, EXAMPLE = "model", "example"
Draw = Callable[..., dict[Any, Any]]
"""draw(look, place, *extra) → updates by component."""


@dataclass(frozen=True)
class _Follower:
    view: str
    draw: Draw
    extra: tuple[Any, ...]
    per: str


@dataclass
class Frame:
    """What the views share. `inputs` is for handlers that take `values: dict`, `read(values)` makes sense of them."""

    page: Page
    subject: gr.Radio
    """The chosen model, or the worked example."""
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
    seen: gr.Textbox
    """Hidden; value: which model and prompt were drawn last."""
    building: str = ""
    """The view being built."""
    _followers: list[_Follower] = field(default_factory=list)
    _outputs: list[Any] = field(default_factory=list)
    _moves: list[tuple[str, Any, Callable, tuple[Any, ...]]] = field(default_factory=list)
    _redraws: list[tuple[str, Any, Callable | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._looks = Looks(self.page)

    @property
    def pickers(self) -> list[gr.Dropdown]:
        """The four drop-downs that make a Place."""
        return [self.layer, self.head, self.query, self.key]

    @property
    def inputs(self) -> set[Any]:
        """Inputs of a handler that calls `read`."""
        return {self.page.visitor, self.page.model, self.subject, self.prompt, *self.pickers}

    def look(self, visitor: str | None, model_id: str | None, prompt: str, subject: str = MODEL) -> Look:
        """The model's own look at this prompt, from a small memory of the latest ones. Raises ValueError."""
        return self._looks.look(visitor, model_id, prompt, example=subject == EXAMPLE)

    def read(self, values: dict[Any, Any]) -> tuple[Look, Place]:
        """Look and place from a handler's values, which anybody may have sent. Raises ValueError."""
        page = self.page
        found = self.look(values[page.visitor], values[page.model], values[self.prompt], values[self.subject])
        return found, Place(*(whole(values[picker]) for picker in self.pickers)).within(found)

    def follow(self, draw: Draw, outputs: Iterable[Any], *, extra: Iterable[Any] = (), per: str = "place") -> None:
        """Call `draw(look, place, *extra values)` whenever these have changed while the view being built is open.

        Args:
            per: "place" for any change, "head" to be left alone while only query or key move.
        """
        assert per in ("place", "head"), per
        self._followers.append(_Follower(self.building, draw, tuple(extra), per))
        self._outputs.extend(outputs)

    def moves(self, event: Any, where: Callable[..., Place], *, extra: Iterable[Any] = ()) -> None:
        """On this event go to `where(look, place, event_data, *extra values)`; a ValueError is shown, nothing moves."""
        self._moves.append((self.building, event, where, tuple(extra)))

    def redraws(self, event: Any, alter: Callable[[Look, Place, dict], dict] | None = None) -> None:
        """On this event draw again; `alter(look, place, values)` may return values to be taken instead."""
        self._redraws.append((self.building, event, alter))

    # ---- wiring ----------------------------------------------------------------------------------------------------

    def connect(self, tabs: dict[str, gr.Tab]) -> None:
        """Wire everything, once all views are built."""
        page = self.page
        everything = list(dict.fromkeys([self.notice, self.view, self.seen, *self.pickers, *self._outputs]))
        extras = [component for follower in self._followers for component in follower.extra]
        inputs = {*self.inputs, self.view, self.seen, *extras}
        # one at a time, so in the order of the visitor's clicks: an older answer must not come in after a newer one
        quick = {"show_progress": "hidden", "api_visibility": "private", "concurrency_limit": 1,
                 "concurrency_id": "inspect", "trigger_mode": "always_last"}  # fmt: skip

        def on(event: Any, handler: Callable) -> Any:
            return event(handler, inputs, everything, **quick)

        def renewed(values: dict) -> dict:
            return self.update(values, where=self._rule(values)) if values[self.view] else gr.skip()

        for name, tab in tabs.items():  # a view's tab says so, too, when the tab around it opens
            on(tab.select, self._opener(name))
        # `change`, because `input` says nothing when a text is pasted with the mouse
        for event in (self.prompt.change, self.prompt.submit, self.subject.input):
            on(event, renewed)
        for picker in self.pickers:
            per = "head" if picker in (self.layer, self.head) else "place"
            on(picker.input, lambda values, per=per: self.update(values, lists=False, changed=per))
        # what is clicked in a view names it: the page may not have heard yet that the view was opened
        for view, event, where, extra in self._moves:
            on(event, self._mover(view, where, extra))
        for view, event, alter in self._redraws:
            on(event, self._redrawer(view, alter))

        def suggested(visitor: str | None, model_id: str | None, request: gr.Request) -> tuple:
            known = suggestions(page, model_id, visitor)
            return linked_prompt(request, "inspect", model_id) or known[0], gr.Dataset(samples=[[s] for s in known])

        chosen = page.model.change(suggested, [page.visitor, page.model], [self.prompt, self.ideas], **QUIETLY)
        on(chosen.then, renewed)
        self.ideas.click(lambda sample: sample[0], self.ideas, self.prompt, **QUIETLY)

    def _rule(self, values: dict, request: gr.Request | None = None) -> Callable[[Look, Place], Place] | None:
        """Where to look: anew for another model, at the end of another prompt, else (or by a link) where it is."""
        before, now = str(values[self.seen] or "").split("\n", 1), self._name(values).split("\n", 1)
        if before[0] != now[0]:
            linked = before == [""] and query_of(request).keys() & {"layer", "head", "cell"}
            return None if linked else best
        return last if before != now else None

    def _name(self, values: dict) -> str:
        """Model and subject, a line break, the prompt."""
        return f"{values[self.page.model]} {values[self.subject]}\n{values[self.prompt]}"

    def _opener(self, name: str) -> Callable:
        def open_view(values: dict, request: gr.Request) -> dict:
            values = {**values, self.view: name}
            return {**self.update(values, where=self._rule(values, request)), self.view: name}

        return open_view

    def _mover(self, view: str, where: Callable[..., Place], extra: tuple[Any, ...]) -> Callable:
        def move(values: dict, event: gr.SelectData) -> dict:
            more = [values[component] for component in extra]
            return self._in_view(view, values, where=lambda f, p: where(f, p, event, *more))

        return move

    def _redrawer(self, view: str, alter: Callable | None) -> Callable:
        def redraw(values: dict) -> dict:
            try:
                values = values if alter is None else {**values, **alter(*self.read(values), values)}
            except ValueError as problem:
                return {self.notice: theme.notice(sentence(str(problem)), "error")}
            return self._in_view(view, values)

        return redraw

    def _in_view(self, view: str, values: dict, **where: Any) -> dict:
        values = {**values, self.view: view or values[self.view]}
        return {**self.update(values, lists=False, changed="place", **where), self.view: values[self.view]}

    def update(
        self,
        values: dict,
        *,
        lists: bool = True,
        changed: str = "all",
        where: Callable[[Look, Place], Place] | None = None,
    ) -> dict:
        """Updates of the open view's components and of the pickers, with `lists` of their choices as well."""
        try:
            found, before = self.read(values)
            place = before if where is None else where(found, before).within(found)
        except ValueError as problem:
            return {self.notice: theme.notice(sentence(str(problem)), "error")}
        if changed == "place" and place.owner != before.owner:
            changed = "head"
        shown = {self.seen: self._name(values)}
        notes = [theme.notice(note, "info" if note == EXAMPLE_NOTE else "warning") for note in found.notes]
        problems = []
        for follower in self._followers:
            if follower.view != values[self.view] or (changed == "place" and follower.per == "head"):
                continue
            try:
                shown |= follower.draw(found, place, *(values[component] for component in follower.extra))
            except ValueError as problem:
                problems.append(theme.notice(sentence(str(problem)), "error"))
        return {**shown, **self._picked(found, place, lists), self.notice: "".join([*notes, *problems])}

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
        with gr.Row(equal_height=False):
            with gr.Column(scale=3, min_width=300):
                prompt = gr.Textbox(
                    known[0],
                    label="Prompt",
                    info="What the model reads; everything below follows as you type.",
                    max_lines=4,
                    elem_id="inspect-prompt",
                )
                ideas = gr.Dataset(
                    components=[prompt],
                    samples=[[s] for s in known],
                    label="Beginnings this model knows",
                    type="values",
                )
            with gr.Column(scale=2, min_width=300):
                subject = gr.Radio(
                    [("The chosen model", MODEL), ("A worked example", EXAMPLE)],
                    value=MODEL,
                    label="Look into",
                    elem_classes="pills",
                    elem_id="inspect-subject",
                )
                with gr.Row(elem_id="inspect-place"):
                    layer = _picker("Layer", "inspect-layer")
                    head = _picker("Head", "inspect-head")
                    query = _picker("Asks (query)", "inspect-query")
                    key = _picker("Looks at (key)", "inspect-key")
                copy_link(page, "inspect")
        notice = gr.HTML(padding=False, elem_id="inspect-notice")
        view, seen = gr.Textbox("", visible=False), gr.Textbox("", visible=False)
    shared = {"prompt": prompt, "layer": layer, "head": head, "query": query, "key": key, "view": view}
    for name, component in shared.items():
        page.share(f"inspect.{name}", component)
    return Frame(page, subject, prompt, ideas, layer, head, query, key, notice, view, seen)


def _picker(label: str, elem_id: str) -> gr.Dropdown:
    # `Place.within` holds every number to what there is
    return LenientDropdown([("0", 0)], value=0, label=label, filterable=False, min_width=96, elem_id=elem_id)


def _numbered(count: int) -> list[tuple[str, int]]:
    return [(str(i), i) for i in range(count)]
