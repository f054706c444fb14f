"""Links on the page: what `?run=…` and `?tab=…` in its address do when it opens.

The page opens the tab and chooses the model here; the tab's panel reads the rest of the address by itself
(front/panel.js), and writes the address that a visitor copies.
"""

from __future__ import annotations

import gradio as gr

from ..service.runs import OWN_TEXT
from . import theme
from .page import Page
from .panel import Slot
from .refusals import sentence

_OPENS_AS_USUAL = "The page opens as usual."


def build(page: Page, note: gr.HTML) -> None:
    """Open what the page's address says whenever a browser opens the page; `note` shows remarks on it."""

    def open_view(visitor: str, request: gr.Request) -> dict:
        query = query_of(request)
        tab, name = query.get("tab"), query.get("model")
        if tab is None:
            return {note: ""} if "run" not in query else gr.skip()
        if tab not in page.tab_ids:
            return {note: broken(ValueError(f"there is no tab “{tab[:30]}” here"))}
        if "run" in query and not is_here(page, query, visitor):  # a model that this visitor still has to train
            return {note: ""}
        opened = {note: "", page.tabs: gr.Tabs(selected=tab)}
        if not name:
            return opened
        if model_id := _here(page, name, visitor):
            return opened | {page.model: page.model_list(visitor, model_id)}
        gone = (
            "its model does not ship with this page and is not one of yours. Your own models open only in your "
            "browser, while the server keeps them"
        )
        return {note: broken(ValueError(gone))}

    page.share("links.note", note)
    page.later(lambda: page.on_load(open_view, [page.visitor], [note, page.tabs, page.model]))


def carried(page: Page, visitor: str, model_id: str | None) -> str:
    """A note on the contents of a link to this model, as HTML; empty for a model that ships."""
    if not model_id or model_id.startswith("shipped-"):
        return ""
    job = page.board.find(visitor, model_id)
    if page.shares(visitor, model_id) or page.registry.data.unshared_id(model_id):
        quotes = " It may quote your text." if job is not None and job.spec.source.kind == OWN_TEXT else ""
        return theme.quiet(f"Anybody with this link can use the model.{quotes}")
    if job is None or job.state != "finished":
        return theme.quiet("This link opens the model in this browser only.")
    if job.spec.source.kind == OWN_TEXT:
        return theme.quiet("The link carries the recipe, not your text. Anyone with the text can train the same model.")
    return theme.quiet("The link carries the recipe, so others can train the same model.")


def carried_slot(page: Page, visitor: str, model_id: str | None) -> dict[str, Slot]:
    """The note of `carried` as a slot, for the place beside *Copy link*."""
    said = carried(page, visitor, model_id)
    return {"carried": Slot(said, lambda: said)}


def is_here(page: Page, query: dict[str, str], visitor: str | None) -> bool:
    """Whether the address names a model that this visitor still has, so that its run need not be repeated."""
    return "model" in query and page.registry.has(query["model"], visitor)


def _here(page: Page, name: str, visitor: str | None) -> str | None:
    """The id of the model with this name in a link, if this visitor has it."""
    known = (f"shipped-{name}", name.partition(".")[0], name)  # the visitor's own, even if shared
    return next((m for m in known if page.registry.has(m, visitor)), None)


def query_of(request: gr.Request | None) -> dict[str, str]:
    """The query parameters of the page's address, one value each."""
    return dict(getattr(request, "query_params", ()))


def broken(problem: ValueError) -> str:
    """The sentence for a link that cannot be opened, as HTML. Escaped."""
    said = sentence(str(problem))
    return theme.notice(f"This link cannot be opened: {said[:1].lower()}{said[1:]} {_OPENS_AS_USUAL}", "error")
