"""TwoModels: the two that are looked at side by side, and what else the parts of this tab share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from ....kept import Kept
from ...links import copy_link, linked_models
from ...page import QUIETLY, Page, model_dropdown
from ...quoted import model_facts, quoted
from ...widgets.turns import Question, Turns, by_component

SHIPPED_DENSE, SHIPPED_MOE = "shipped-dialects-dense", "shipped-dialects-moe"
UNFOLDED = "unfolded"


@dataclass
class TwoModels:
    """A part is a module with `TITLE` and `build(two)`:

    def build(two: TwoModels) -> None:
        picture = Chart(...)

        def draw(visitor, moe_id):
            checkpoint = two.page.registry.get(moe_id, visitor)       # ValueError in words where there is none
            ...
        two.on_change(draw, [two.page.visitor, two.moe], picture)   # when somebody sees the part, once for all
    """

    page: Page
    dense: gr.Dropdown
    """Value: the id of the dense model, for `page.registry.get`; None where there is none to choose."""
    moe: gr.Dropdown
    """Value: the id of the mixture of experts, likewise."""
    looked_at: gr.Textbox
    """Both ids. Its change is the sign of another pair: gradio reports a drop-down's change over and over once a
    handler has set its list, whether or not its value is another one."""
    _accordion: gr.Accordion | None = None
    _unfolded: gr.Textbox | None = None
    handlers: list[Callable] = field(default_factory=list)
    """What `on_change` was given, in its order."""
    _answers: Kept = field(default_factory=lambda: Kept(entries=96, megabytes=96))

    @contextmanager
    def part(self, title: str, name: str, *, open: bool) -> Iterator[None]:
        """Lay out a part that can be folded; what stands in it is drawn when it is seen."""
        with gr.Accordion(title, open=open, elem_classes="card", elem_id=f"moe-{name}") as self._accordion:
            self._unfolded = gr.Textbox(UNFOLDED if open else "", visible=False)
            for event, value in ((self._accordion.expand, UNFOLDED), (self._accordion.collapse, "")):
                event(None, None, self._unfolded, js=f"() => {value!r}", api_visibility="private")
            yield
        self._accordion = self._unfolded = None

    def on_change(self, handler: Callable, inputs: list, outputs: Any, *, linked: bool = False) -> None:
        """Call the handler when another dense model or another mixture is looked at, as soon as its part is seen.

        What it answers is worked out once for all who look at the same mixture; its first input is the visitor.

        Args:
            linked: give it the page's request as well, by whose address a link may ask for something else.
        """
        self.handlers.append(handler)
        outputs = [outputs] if isinstance(outputs, gr.blocks.Block) else list(outputs)
        page, accordion, unfolded = self.page, self._accordion, self._unfolded
        turns = Turns(accordion.elem_id if accordion else "tab-moe")
        shown = gr.Textbox("", visible=False)  # the pair that is drawn

        def renew(question: Question, *sure: gr.Textbox) -> Callable[[], dict]:
            values = question.values
            steps = (page.step_of(values[inputs[0]], model_id) for model_id in each(values[self.looked_at]))
            pair = f"{values[self.looked_at]} {' '.join(map(str, steps))}"  # and whose weights they have
            seen = {page.opened: "moe", unfolded: UNFOLDED}
            if values[shown] == pair or any(values[c] != seen[c] for c in seen if c and c not in sure):
                return dict
            now = dict(
                zip((self.dense, self.moe), each(values[self.looked_at]))
            )  # the pickers may hold them a moment later
            arguments = [now.get(component, values[component]) for component in inputs]
            more = [question.request] if linked else []
            about = model_facts(page.registry, arguments[0], *arguments[1:])
            return lambda: {**quoted(self._answer(handler, arguments, more, outputs), **about), shown: pair}

        events = [(self.looked_at.change, ()), (page.tab.select, (page.opened,))]
        if accordion:
            events.append((accordion.expand, (page.opened, unfolded)))
        for event, sure in events:  # what an event says itself, the page need not have noted down yet
            asked = {*inputs, self.looked_at, shown, page.opened, unfolded} - {None}
            turns.on(event, lambda question, sure=sure: renew(question, *sure), asked, [*outputs, shown])

    def _answer(self, handler: Callable, arguments: list, more: list, outputs: list) -> dict:
        def answer() -> dict:
            return by_component(handler(*arguments, *more), outputs)

        visitor, *others = arguments
        try:
            owner = next(self.page.registry.get(chosen, visitor) for chosen in others if isinstance(chosen, str))
        except (ValueError, StopIteration):
            return answer()
        key = (handler, id(owner), *map(repr, others))  # by the checkpoint, too: a model's record may become another
        return answer() if more else self._answers.get(key, answer, owner=owner.model)

    def pair(self, visitor: str | None, dense: str | None, moe: str | None) -> tuple[gr.Dropdown, gr.Dropdown, str]:
        """What a handler whose outputs are `pickers` returns to renew their lists and choose from them."""
        lists, ids = [], []
        for chosen, experts in ((dense, False), (moe, True)):
            choices = self.page.registry.choices(visitor, experts=experts)
            known = chosen in [model_id for _, model_id in choices]
            ids.append(chosen if known else first_choice(self.page, experts, visitor))
            lists.append(gr.Dropdown(choices=choices, value=ids[-1]))
        return *lists, both(*ids)

    def renew(self, visitor: str | None, dense: str | None, moe: str | None) -> tuple:
        """The visitor's models have changed: the lists do, and what is chosen only where it is not there any more."""
        *lists, looked_at = self.pair(visitor, dense, moe)
        if looked_at != both(dense, moe):
            return *lists, looked_at
        return *(gr.Dropdown(choices=renewed.choices) for renewed in lists), gr.skip()

    def arrive(self, visitor: str | None, dense: str | None, moe: str | None, request: gr.Request) -> tuple:
        """A browser opened the page: the pair that its address names, where it does, is looked at."""
        named = linked_models(self.page, request, visitor, "moe")
        return self.pair(visitor, named[0] or dense, named[1] or moe)

    @property
    def pickers(self) -> list[gr.components.Component]:
        """Both lists and the sign of their change."""
        return [self.dense, self.moe, self.looked_at]


def pick_two(page: Page, letters: gr.Textbox) -> TwoModels:
    """Draw the two pickers, whose lists follow the visitor's models, and the button that copies a link to them.

    Args:
        letters: those of the comparison that made the two, where one did.
    """
    dense = _picker(page, False, label="Dense model", elem_id="moe-dense")
    moe = _picker(page, True, label="Mixture of experts", elem_id="moe-mixture")
    two = TwoModels(
        page, dense, moe, gr.Textbox(both(dense.value, moe.value), visible="hidden", elem_id="moe-looked-at")
    )
    gr.on([dense.input, moe.input], both, [dense, moe], two.looked_at, **QUIETLY)
    page.on_load(two.arrive, [page.visitor, dense, moe], two.pickers)
    signs = [page.model.change, page.over.change]  # of another list, see `Page.model_picker`
    page.later(lambda: gr.on(signs, two.renew, [page.visitor, dense, moe], two.pickers, **QUIETLY))
    copy_link(page, "moe", of={"model": moe, "dense": dense, "pair": letters}, scale=0)
    return two


def both(dense: str | None, moe: str | None) -> str:
    """The two ids as one text."""
    return f"{dense or ''} {moe or ''}"


def each(pair: str | None) -> tuple[str, str]:
    """The two ids of such a text, empty where there is none."""
    dense, _, moe = (pair or "").partition(" ")
    return dense, moe


def first_choice(page: Page, experts: bool, visitor: str | None = None) -> str | None:
    """The shipped one made for this tab, if it is there; otherwise whatever stands first."""
    ids = [model_id for _, model_id in page.registry.choices(visitor, experts=experts)]
    made_for_this = SHIPPED_MOE if experts else SHIPPED_DENSE
    return made_for_this if made_for_this in ids else next(iter(ids), None)


def _picker(page: Page, experts: bool, **dropdown: Any) -> gr.Dropdown:
    return model_dropdown(page.registry, value=first_choice(page, experts), experts=experts, **dropdown)
