"""Frame: what the parts of this tab share: the page, and the two models that are looked at side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr
import torch

from ...lenient import LenientDropdown
from ...page import QUIETLY, Page

SHIPPED_DENSE, SHIPPED_MOE = "shipped-dialects-dense", "shipped-dialects-moe"


@dataclass
class Frame:
    """A part is a module with `TITLE` and `build(frame)`:

    def build(frame: Frame) -> None:
        picture = Chart(...)

        def draw(visitor, moe_id):
            with in_words():
                checkpoint = frame.page.registry.get(moe_id, visitor)   # ValueError in words where there is none
                ...
        frame.on_change(draw, [frame.page.visitor, frame.moe], picture)
    """

    page: Page
    dense: gr.Dropdown
    """Value: the id of the dense model, for `page.registry.get`; None where there is none to choose."""
    moe: gr.Dropdown
    """Value: the id of the mixture of experts, likewise."""
    looked_at: gr.Textbox
    """Both ids. Its change is the sign of another pair: gradio reports a drop-down's change over and over once a
    handler has set its list, whether or not its value is another one."""

    def on_change(self, handler: Callable, inputs: Any, outputs: Any, **event: Any) -> None:
        """Call the handler when another dense model or another mixture was chosen or trained, and on page load."""
        self.looked_at.change(handler, inputs, outputs, **{**QUIETLY, **event})
        self.page.on_load(handler, inputs, outputs)

    def snapshots(self, visitor: str | None, model_id: str | None) -> list[tuple[int, dict[str, torch.Tensor]]]:
        """(step, weights) at the moments that were kept of this model's training; none for most. Raises ValueError."""
        kept = self.page.registry.get(model_id, visitor).snapshots
        return [(step, kept.model(step).state_dict()) for step in kept.steps] if kept else []

    def pair(self, visitor: str | None, dense: str | None, moe: str | None) -> tuple[gr.Dropdown, gr.Dropdown, str]:
        """What a handler whose outputs are `pickers` returns to renew their lists and choose from them."""
        lists, ids = [], []
        for chosen, experts in ((dense, False), (moe, True)):
            choices = models_of(self.page, visitor, experts=experts)
            known = chosen in [model_id for _, model_id in choices]
            ids.append(chosen if known else first_choice(choices, experts=experts))
            lists.append(gr.Dropdown(choices=choices, value=ids[-1]))
        return *lists, both(*ids)

    @property
    def pickers(self) -> list[gr.components.Component]:
        """Both lists and the sign of their change."""
        return [self.dense, self.moe, self.looked_at]


def build_frame(page: Page) -> Frame:
    """Draw the two pickers; their lists follow the visitor's models."""
    dense = _picker(page, "Dense model", experts=False, elem_id="moe-dense")
    moe = _picker(page, "Mixture of experts", experts=True, elem_id="moe-mixture")
    frame = Frame(page, dense, moe, gr.Textbox(both(dense.value, moe.value), visible="hidden", elem_id="moe-looked-at"))
    gr.on([dense.input, moe.input], both, [dense, moe], frame.looked_at, **QUIETLY)
    page.on_load(frame.pair, [page.visitor, dense, moe], frame.pickers)
    # a new run is always chosen at once, so a change of the page's model is the sign that the list has changed
    page.later(lambda: page.model.change(frame.pair, [page.visitor, dense, moe], frame.pickers, **QUIETLY))
    return frame


def both(dense: str | None, moe: str | None) -> str:
    """The two ids as one text."""
    return f"{dense or ''} {moe or ''}"


def each(pair: str | None) -> tuple[str, str]:
    """The two ids of such a text, empty where there is none."""
    dense, _, moe = (pair or "").partition(" ")
    return dense, moe


def models_of(page: Page, visitor: str | None, *, experts: bool) -> list[tuple[str, str]]:
    """(label, id) of the visitor's models with or without experts: own ones first, the newest on top."""
    entries = [entry for entry in page.registry.models(visitor) if entry.has_experts == experts]
    return [(f"{entry.name} · shipped" if entry.shipped else entry.name, entry.id) for entry in entries]


def first_choice(choices: list[tuple[str, str]], *, experts: bool) -> str | None:
    """The shipped one made for this tab, if it is there; otherwise whatever stands first."""
    ids = [model_id for _, model_id in choices]
    made_for_this = SHIPPED_MOE if experts else SHIPPED_DENSE
    return made_for_this if made_for_this in ids else next(iter(ids), None)


def _picker(page: Page, label: str, *, experts: bool, **dropdown: Any) -> gr.Dropdown:
    choices = models_of(page, None, experts=experts)
    value = first_choice(choices, experts=experts)
    # the list is per visitor, and a session's own list may have been forgotten: the registry checks every id itself
    return LenientDropdown(choices, value=value, label=label, filterable=False, **dropdown)
