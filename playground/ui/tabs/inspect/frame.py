"""Frame: the prompt and the place looked at, which all views of this tab share, and what redraws them.

A view is a module of this folder with TITLE and `build(frame)`:

    def build(frame: Frame) -> None:
        chart = Chart(...)

        def draw(look: Look, place: Place) -> dict:          # pure: numbers → what the components show
            return {chart: show(figure, sentence)}

        frame.follow(draw, [chart])                          # drawn whenever model, prompt or place has changed
                                                             # and this view is the open one
        def clicked(look, place, event: gr.EventData):       # a click that moves the place
            return place.at(key=index_of(event, look.length))
        frame.moves(chart.select, clicked)

        def press(look, place, question: Question):          # the view's own button, with inputs of its own
            return lambda: {note: ...}                       # what takes long
        frame.presses(button.click, press, {slider}, [note])

A view's own choices reach `draw` by `follow(draw, outputs, extra=[radio])`, and redraw by `frame.redraws(radio.input)`.
`follow`, `moves` and `redraws` raise nothing on the page: a ValueError becomes the frame's notice. Where it is the
prompt that cannot be read, or the view that cannot be drawn of it, what was drawn of another one goes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from ....inspection import Look
from ....inspection.example import EXAMPLES
from ....words.edits import edit_words
from ... import theme
from ...gradio_fixes.lenient import LenientDropdown
from ...links import awaits, copy_link, linked_place, linked_prompt
from ...page import QUIETLY, Page
from ...prompts import chip_text, chips
from ...quoted import model_facts, quoted
from ...refusals import sentence
from ...widgets.turns import Question, Slow, Turns
from .beginnings import hint, prompts
from .changes import exchanged, in_force, owner, parsed, waiting_at
from .looks import Looks
from .place import Place, at_link, best, last, watched, whole

__all__ = ["MODEL", "Frame", "Place", "best", "build", "watched", "whole"]

MODEL = "model"
SUBJECTS = [("Chosen model", MODEL), *((example.title, name) for name, example in EXAMPLES.items())]
Draw = Callable[..., dict[Any, Any]]
"""draw(look, place, *extra) → updates by component."""


WHEN_DRAWN = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))"
LISTS = "the choices of the pickers"


@dataclass(frozen=True, eq=False)
class _Follower:
    view: str
    draw: Draw
    outputs: tuple[Any, ...]
    extra: tuple[Any, ...]
    per: str
    slow: bool

    def cleared(self) -> dict[Any, Any]:
        """Its charts and texts, empty; what begins out of sight and is shown by a drawing, out of sight again."""
        empty = {c: None if "chart" in c.elem_classes else "" for c in self.outputs if isinstance(c, gr.HTML)}
        return empty | {c: gr.update(visible=False) for c in self.outputs if c.visible is False}


@dataclass
class Frame:
    """What the views share. `inputs` is for handlers that take `values: dict`, `read(values)` makes sense of them."""

    page: Page
    subject: gr.Radio
    """The chosen model, or a worked example."""
    prompt: gr.Textbox
    ideas: gr.Dataset
    layer: gr.Dropdown
    head: gr.Dropdown
    query: gr.Dropdown
    key: gr.Dropdown
    notice: gr.HTML
    """One sentence on how the prompt was read, or what is wrong with it."""
    hint: gr.HTML
    """What can be broken here."""
    view: gr.Textbox
    """Hidden; value: the name of the view that is open, empty before the tab was opened for the first time."""
    seen: gr.Textbox
    """Hidden; value: which model and prompt were drawn last."""
    own: gr.HTML
    """A worked example's own prompt, in place of the box."""
    kept: gr.Textbox
    """Hidden; value: whose the changes in force are, and those of other models (`changes.exchanged`)."""
    changes: gr.Dropdown | None = None
    """The changes in force; the view that has them hands it over."""
    building: str = ""
    """The view being built."""
    _followers: list[_Follower] = field(default_factory=list)
    _moves: list[tuple[str, Any, Callable, tuple[Any, ...]]] = field(default_factory=list)
    _redraws: list[tuple[str, Any, Callable | None, Any]] = field(default_factory=list)
    _presses: list[tuple[Any, Callable, set, list]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._looks = Looks(self.page)
        self.turns = Turns("inspect-views")

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
        return self._looks.look(visitor, model_id, prompt, example=subject)

    def read(self, values: dict[Any, Any]) -> tuple[Look, Place]:
        """Look and place from a handler's values, which anybody may have sent. Raises ValueError."""
        page = self.page
        found = self.look(values[page.visitor], values[page.model], values[self.prompt], values[self.subject])
        return found, Place(*(whole(values[picker]) for picker in self.pickers)).within(found)

    def follow(
        self, draw: Draw, outputs: Iterable[Any], *, extra: Iterable[Any] = (), per: str = "place", slow: bool = False
    ) -> None:
        """Call `draw(look, place, *extra values)` whenever these have changed while the view being built is open.

        Args:
            per: "place" for any change, "head" to be left alone while only query or key move.
            slow: seconds are nothing unusual.
        """
        assert per in ("place", "head"), per
        self._followers.append(_Follower(self.building, draw, tuple(outputs), tuple(extra), per, slow))

    def moves(self, event: Any, where: Callable[..., Place], *, extra: Iterable[Any] = ()) -> None:
        """On this event go to `where(look, place, event_data, *extra values)`; a ValueError is shown, nothing moves."""
        self._moves.append((self.building, event, where, tuple(extra)))

    def redraws(self, event: Any, alter: Callable[..., dict] | None = None, *, of: Any = None) -> None:
        """On this event draw again.

        Args:
            alter: `alter(look, place, values, event_data)` may return values to be taken instead.
            of: the component whose own input the event is.
        """
        self._redraws.append((self.building, event, alter, of))

    def keeps(self, changes: gr.Dropdown) -> None:
        """This list of changes belongs to the model that is looked at: another one has its own."""
        self.changes = changes
        self.page.share("inspect.edits", changes)

    def presses(
        self, event: Any, press: Callable[..., Callable[[], dict]], inputs: Iterable[Any], outputs: Iterable[Any]
    ) -> None:
        """On this event call what `press(look, place, values)` returns, for something that is no drawing of the place.

        `press(look, place, question)` gets the values as `question.values`. What it returns may take seconds. A
        ValueError of either is said in a corner of the page.
        """
        self._presses.append((event, press, set(inputs), list(outputs)))

    # ---- wiring ----------------------------------------------------------------------------------------------------

    def connect(self, tabs: dict[str, gr.Tab]) -> None:
        """Wire everything, once all views are built."""
        page = self.page
        drawn = [output for follower in self._followers for output in follower.outputs]
        own = [self.notice, self.hint, self.view, self.seen, self.kept, *self.pickers]
        everything = list(dict.fromkeys([*own, *drawn]))
        extras = [component for follower in self._followers for component in follower.extra]
        inputs = {*self.inputs, self.view, self.seen, self.kept, page.opened, *extras}

        def on(event: Any, ask: Callable[[Question], dict], of: Any = None) -> Any:
            return self.turns.on(event, lambda q: self.plan(q.values, turn=q, **ask(q)), inputs, everything, of=of)

        def renewed(question: Question) -> dict:
            # what nobody looks at is drawn when it is opened
            unseen = not question.values[self.view] or (question.values[page.opened] or "inspect") != "inspect"
            return {"changed": ""} if unseen else {"where": self._rule(question)}

        def returned(question: Question) -> dict:
            # model, prompt or weights may have become others elsewhere
            same = not question.values[self.view] or question.values[self.seen] == self._name(question.values)
            return {"changed": ""} if same else {"where": self._rule(question)}

        def retrained(question: Question) -> dict:
            drawn, now = str(question.values[self.seen] or ""), self._name(question.values)
            return renewed(question) if drawn.rpartition("\n")[0] == now.rpartition("\n")[0] else {"changed": ""}

        # what became of a prompt while the tab was away is among the page's values only when it stands there again
        on(page.tab.select(None, None, None, js=WHEN_DRAWN, api_visibility="private").then, returned)
        on(page.weights.change, retrained)
        for name, tab in tabs.items():  # a view's tab says so, too, when the tab around it opens
            on(tab.select, lambda q, name=name: {"view": name, "where": self._rule(q)})
        # `change`, because `input` says nothing when a text is pasted with the mouse
        for event in (self.prompt.change, self.prompt.submit, self.subject.input):
            on(event, renewed)
        for picker in self.pickers:
            per = "head" if picker in (self.layer, self.head) else "place"
            on(picker.input, lambda _, per=per: {"lists": False, "changed": per}, of=picker)
        # what is clicked in a view names it: the page may not have heard yet that the view was opened
        for view, event, where, extra in self._moves:
            on(event, lambda q, clicked=(view, where, extra): self._clicked(q, *clicked))
        for view, event, alter, of in self._redraws:
            on(event, lambda q, again=(view, alter): self._again(q, *again), of)
        for event, press, more, outputs in self._presses:
            self.turns.on(event, self._presser(press), {*self.inputs, *more}, outputs, draws=False)

        def suggested(visitor: str | None, model_id: str | None, request: gr.Request) -> tuple:
            known = prompts(page, model_id, visitor)
            return linked_prompt(request, "inspect", model_id) or known[0], gr.Dataset(**chips(known))

        chosen = page.model.change(suggested, [page.visitor, page.model], [self.prompt, self.ideas], **QUIETLY)
        on(chosen.then, renewed)

        def given(subject: str) -> list:
            said = own_prompt(subject)
            box = gr.update(visible="hidden" if said else True)
            return [box, box, gr.update(value=said, visible=bool(said))]

        self.subject.change(given, self.subject, [self.prompt, self.ideas, self.own], **QUIETLY)
        self.ideas.click(chip_text, self.ideas, self.prompt, **QUIETLY)

    def _rule(self, question: Question) -> Callable[[Look, Place], Place] | None:
        """Where to look: anew for another model, at the end of another prompt, else where it is.

        The model of the page's own link is opened at the link's place, whichever of the events that the opening of a
        link sets off is heard first.
        """
        values = question.values
        before, now = str(values[self.seen] or ""), self._name(values)
        if before.split("\n")[0] != now.split("\n")[0]:
            chosen = values[self.page.model], values[self.prompt], values[self.subject]
            linked = linked_place(question.request, "inspect", *chosen, first=not before)
            return functools.partial(at_link, linked) if linked else best
        same = before.rpartition("\n")[0] == now.rpartition("\n")[0]
        return None if same and values[self.query] is not None else last  # nothing could be read in between

    def _name(self, values: dict) -> str:
        """Model and subject, the prompt, the step of the weights: with line breaks in between."""
        step = self.page.step_of(values[self.page.visitor], values[self.page.model])
        return f"{values[self.page.model]} {values[self.subject]}\n{values[self.prompt]}\n{step}"

    def _clicked(self, question: Question, view: str, where: Callable[..., Place], extra: tuple[Any, ...]) -> dict:
        more = [question.values[component] for component in extra]

        def moved(found: Look, place: Place) -> Place:
            return where(found, place, question.event, *more)

        return {"view": view, "where": moved, "lists": False, "changed": "place"}

    def _again(self, question: Question, view: str, alter: Callable[..., dict] | None) -> dict:
        def altered(found: Look, place: Place, values: dict) -> dict:
            return alter(found, place, values, question.event) if alter else {}

        return {"view": view, "alter": altered, "lists": False, "changed": "place"}

    def _presser(self, press: Callable) -> Callable[[Question], Slow]:
        def pressed(question: Question) -> Slow:
            found, place = self.read(question.values)
            answer = press(found, place, question)
            return Slow(lambda: quoted(answer(), **self._facts(question.values, found, place)))

        return pressed

    def update(self, values: dict, **change: Any) -> dict:
        """What `plan` draws, at once."""
        return self.plan(values, **change)()

    def plan(
        self,
        values: dict,
        *,
        view: str = "",
        lists: bool = True,
        changed: str = "all",
        where: Callable[[Look, Place], Place] | None = None,
        alter: Callable[[Look, Place, dict], dict] | None = None,
        turn: Question | None = None,
    ) -> Callable[[], dict]:
        """Decide where the visitor looks now, and return what draws that: the open view's components and the pickers.

        Args:
            view: the view to be drawn; without one, that which is open.
            lists: renew the pickers' choices as well.
            changed: "place" leaves alone what is drawn per head only; "" draws nothing, since nobody looks.
            where: moves the place.
            alter: returns values to be taken instead of others.
            turn: whose page is told what has changed, and owed what has to be drawn.
        """
        if not changed:
            return dict
        view = view or values[self.view]
        followers = [follower for follower in self._followers if follower.view == view]
        turn = turn or Question(values)
        told = {} if view == values[self.view] else {self.view: view}
        told |= self._exchanged(values, turn.request)
        values = {**values, **told}
        try:
            found, before = self.read(values)
        except ValueError as problem:
            turn.tell(told)
            cleared = {c: value for follower in followers for c, value in follower.cleared().items()}
            nowhere = {picker: gr.update(choices=[], value=None) for picker in (self.query, self.key)}
            unread = f'<div class="unread">{_refused(problem)}</div>'
            cleared |= {self.notice: unread, self.hint: "", self.view: view}
            return functools.partial(dict, {**cleared, **nowhere, **self._changes(turn.unheard)})
        place, problem, due = before, "", [LISTS] if lists else []
        try:
            altered = alter(found, before, values) if alter else {}
            place = where(found, before).within(found) if where else before
            moved = zip(self.pickers, dataclasses.astuple(place))
            told |= {**altered, **{picker: number for picker, number in moved if number != values[picker]}}
            due += [f for f in followers if changed != "place" or f.per == "place" or place.owner != before.owner]
        except ValueError as mistake:
            place, problem = before, _refused(mistake)
        turn.tell(told)
        due = turn.owe(due)
        draw = functools.partial(self._draw, {**values, **told}, found, place, view, due, problem, turn.unheard)
        return Slow(draw) if any(f.slow for f in followers if f in due) else draw

    def _draw(self, values: dict, found: Look, place: Place, view: str, due: list, problem: str, unheard: dict) -> dict:
        shown = self._changes(unheard)
        kind = "info" if values[self.subject] in EXAMPLES else "warning"
        notes = [theme.notice(note, kind) for note in self._looks.notes[found]] + self._said_of_changes(values, view)
        for follower in self._followers:
            if follower.view == view and follower in due:
                try:
                    drawn = follower.draw(found, place, *(values[component] for component in follower.extra))
                    shown |= quoted(drawn, **self._facts(values, found, place))
                except ValueError as mistake:
                    shown |= follower.cleared()
                    notes.append(_refused(mistake))
        for component, value in unheard.items():  # a drawing may leave a value as it is: the page has another one
            if isinstance(update := shown.get(component), dict) and update.get("__type__") == "update":
                shown[component] = {"value": value, **update}
        drawn = {self.view: view, self.seen: self._name(values), self.notice: "".join([*notes, problem])}
        drawn[self.hint] = theme.notice(words) if (words := hint(found)) else ""
        return {**shown, **self._picked(found, place, LISTS in due), **drawn}

    def _exchanged(self, values: dict, request: gr.Request | None) -> dict:
        """The changes of the model that is looked at now, where another one's were in force."""
        model_id, codes = values[self.page.model], values[self.changes]
        awaited = awaits(request, "inspect", model_id)
        kept, now = exchanged(values[self.kept], owner(model_id, values[self.subject]), codes, awaited=awaited)
        return ({} if kept == values[self.kept] else {self.kept: kept}) | ({} if now == codes else {self.changes: now})

    def _changes(self, unheard: dict) -> dict:
        """What the page may not know yet of the changes."""
        shown = {self.kept: unheard[self.kept]} if self.kept in unheard else {}
        try:
            return shown | ({self.changes: in_force(parsed(unheard[self.changes]))} if self.changes in unheard else {})
        except ValueError:  # the view that shows them says so
            return shown

    def _said_of_changes(self, values: dict, view: str) -> list[str]:
        """Which changes are in force, in the views that do not draw them; and whose wait, in the one that does."""
        try:
            listed = parsed(values[self.changes])
        except ValueError:
            return []
        if view != "edit" and listed:
            words = "; ".join(edit_words(edit) for edit in listed)
            return [theme.notice(f"In force under “Change it”: {words}. This view shows the model as it is.")]
        called = [self._called(values, whose) for whose in waiting_at(values[self.kept])]
        names = ", ".join(f"“{name}”" for name in called if name)
        words = (
            f"Changes belong to the model that they were made on. Put away until it is chosen again: those of {names}."
        )
        return [theme.notice(words)] if view == "edit" and names else []

    def _called(self, values: dict, whose: str) -> str:
        page, visitor = self.page, values[self.page.visitor]
        if whose in EXAMPLES:
            return EXAMPLES[whose].title
        return page.registry.get(whose, visitor).name if page.registry.has(whose, visitor) else ""

    def _facts(self, values: dict, found: Look, place: Place) -> dict[str, Any]:
        """What a saved picture or table has to say of itself."""
        where = {"layer": place.layer, "head": place.head}
        if example := EXAMPLES.get(values[self.subject]):
            return {"model": f"worked example “{example.title}”", "prompt": example.prompt, **where}
        page = self.page
        known = model_facts(page.registry, values[page.visitor], values[page.model])
        return {**known, "prompt": values[self.prompt], **where}

    def _picked(self, found: Look, place: Place, lists: bool) -> dict:
        numbers = dataclasses.astuple(place)
        if not lists:
            return dict(zip(self.pickers, numbers))
        tokens = [(label, i) for i, label in enumerate(found.labels())]
        choices = (_numbered(found.config.n_layers), _numbered(found.config.n_heads), tokens, tokens)
        return {p: gr.Dropdown(choices=c, value=n) for p, c, n in zip(self.pickers, choices, numbers)}


def build(page: Page) -> Frame:
    """The prompt, its suggestions, the four pickers and the notice."""
    known = prompts(page, page.registry.default, None)
    with gr.Column(elem_classes="card", elem_id="inspect-frame"):
        with gr.Row(equal_height=False):
            with gr.Column(scale=3, min_width=300):
                prompt = gr.Textbox(
                    known[0],
                    label="Prompt",
                    placeholder="What the model reads; everything below follows as you type.",
                    max_lines=4,
                    elem_id="inspect-prompt",
                )
                ideas = gr.Dataset(
                    components=[prompt],
                    **chips(known),
                    label="Prompts to try",
                    type="values",
                )
                own = gr.HTML(padding=False, visible=False, elem_id="inspect-own")
            with gr.Column(scale=2, min_width=300):
                with gr.Row(equal_height=False, elem_id="inspect-subjects"):
                    subject = gr.Radio(
                        SUBJECTS, value=MODEL, label="Look into", elem_classes="pills", elem_id="inspect-subject"
                    )
                    copy_link(page, "inspect")
                with gr.Row(elem_id="inspect-place"):
                    layer = _picker("Layer", "inspect-layer")
                    head = _picker("Head", "inspect-head")
                    query = _picker("Asks (query)", "inspect-query")
                    key = _picker("Looks at (key)", "inspect-key")
        notice = gr.HTML(padding=False, elem_id="inspect-notice")
        told = gr.HTML(padding=False, elem_id="inspect-hint")
        view, seen, kept = (gr.Textbox("", visible=False) for _ in range(3))
    shared = {"prompt": prompt, "layer": layer, "head": head, "query": query, "key": key, "view": view}
    shared |= {"subject": subject, "seen": seen}
    for name, component in shared.items():
        page.share(f"inspect.{name}", component)
    return Frame(page, subject, prompt, ideas, layer, head, query, key, notice, told, view, seen, own, kept)


def own_prompt(subject: str) -> str:
    """What stands in place of the box where a worked example is looked into; empty for a model."""
    if subject not in EXAMPLES:
        return ""
    said = f"“{EXAMPLES[subject].prompt}”: this example has no other. To type one, look into “{SUBJECTS[0][0]}”."
    return theme.heading("Prompt", said)


def _picker(label: str, elem_id: str) -> gr.Dropdown:
    # `Place.within` holds every number to what there is
    return LenientDropdown([("0", 0)], value=0, label=label, filterable=False, min_width=96, elem_id=elem_id)


def _refused(problem: ValueError) -> str:
    return theme.notice(sentence(str(problem)), "error")


def _numbered(count: int) -> list[tuple[str, int]]:
    return [(str(i), i) for i in range(count)]
