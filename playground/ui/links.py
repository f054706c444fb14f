"""Links on the page: what `?run=…` and `?tab=…` in its address do when it opens, and the buttons that copy such links.

A tab takes part by sharing controls under agreed names, and by drawing itself when they change:

    page.share("inspect.prompt", prompt)     # text
    page.share("inspect.layer", layer)       # a whole number from 0, likewise .head, .query and .key
    page.share("inspect.step", steps)        # a word, likewise .subject; .edits is a list of texts
    page.share("inspect.views", views)       # gr.Tabs inside the tab, by the ids of their tabs
    copy_link(page, "inspect")               # a button where a visitor has something to show

A handler that puts a model's own prompt into the box when another model is chosen asks `linked_prompt` first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

from ..links import LinkError, View
from ..links.letters import cut
from ..service.limits import Limits
from . import theme
from .forms import sampling
from .page import Page
from .refusals import sentence

CONTROLS = ("prompt", "layer", "head", "query", "key", "step", "subject", "edits")
_OPENS_AS_USUAL = "The page opens as usual."
PAIR_GONE = (
    "This older link holds the settings of a comparison, which are no longer read. Press Train both to make one."
)

# builds the link from the controls' values, copies it, and says so on the button
_COPY = """(...values) => {
  const names = NAMES, words = new URLSearchParams(), found = {};
  names.forEach((name, i) => { found[name] = values[i]; });
  const model = found.model || '', only_run = !found.tab && found.run;
  if (!only_run) words.set('tab', found.tab || 'train');
  if (only_run) words.set('run', found.run);
  else if (model.startsWith('shipped-')) words.set('model', model.slice(8));
  else {
    if (found.run) words.set('run', found.run);
    if (model) words.set('model', model);
  }
  if (found.dense) words.set('dense', found.dense.replace(/^shipped-/, ''));
  for (const name of ['view', 'step', 'subject', 'prompt', 'layer', 'head'])
    if (found[name] !== undefined && found[name] !== null && found[name] !== '') words.set(name, found[name]);
  if (Number.isInteger(found.query) && Number.isInteger(found.key)) words.set('cell', found.query + ',' + found.key);
  if (found.edits?.length) words.set('edits', '[' + found.edits.join(',') + ']');
  const link = location.origin + location.pathname + '?' + words;
  const say = (text) => {
    const button = document.querySelector('#ID');
    if (!button) return;
    button.dataset.said = text;
    button.setAttribute('aria-label', text);
    setTimeout(() => { delete button.dataset.said; button.removeAttribute('aria-label'); }, 2500);
  };
  const by_hand = () => {
    const box = document.createElement('textarea');
    box.value = link; box.style.position = 'fixed'; box.style.opacity = 0;
    document.body.append(box); box.select();
    const done = document.execCommand('copy');
    box.remove();
    done ? say('Link copied') : window.prompt('Copy this link:', link);
  };
  navigator.clipboard && window.isSecureContext
    ? navigator.clipboard.writeText(link).then(() => say('Link copied'), by_hand) : by_hand();
}"""


def build(page: Page, note: gr.HTML) -> None:
    """Open what the page's address says whenever a browser opens the page; `note` takes what there is to say of it."""

    def wire() -> None:
        shared = {
            f"{tab}.{name}": component
            for tab in page.tab_ids
            for name in (*CONTROLS, "views")
            if (component := page.shared(f"{tab}.{name}")) is not None
        }

        def open_view(visitor: str, request: gr.Request) -> dict:
            query = query_of(request)
            if "pair" in query and not is_here(page, query, visitor):
                return {note: theme.notice(PAIR_GONE, "warning"), page.tabs: page.open("moe")}
            if "tab" not in query:
                return {note: ""} if "run" not in query else gr.skip()
            try:
                view = View.from_query(query, page.tab_ids)
                waiting = _trains(request) and not is_here(page, query, visitor)
                return _opened(page, view, shared, note, visitor, waiting=waiting)
            except ValueError as problem:
                return {note: broken(problem)}

        page.on_load(open_view, [page.visitor], [note, page.tabs, page.model, *shared.values()])

    page.share("links.note", note)
    page.later(wire)


def _opened(
    page: Page, view: View, shared: dict[str, Any], note: gr.HTML, visitor: str, *, waiting: bool
) -> dict[Any, Any]:
    """Updates that show a view. `waiting`: its model is one that this visitor still has to train."""
    if view.prompt is not None:
        page.limits.check_prompt(view.prompt)
    out: dict[Any, Any] = {note: ""}
    if not waiting:
        out[page.tabs] = page.open(view.tab)
    if view.model is not None and not waiting:
        model_id = _here(page, view.model, visitor)
        if model_id is None:
            raise LinkError(
                "its model neither ships with this page nor is among yours. A model of one's own opens only in the "
                "browser that trained it or took it in, as long as the server keeps it"
            )
        out[page.model] = page.model_list(visitor, model_id)
    query, key = view.cell or (None, None)
    values = {"prompt": view.prompt, "layer": view.layer, "head": view.head, "query": query, "key": key}
    values |= {"step": view.step, "subject": view.subject, "edits": view.edits}
    for name, value in values.items():
        component = shared.get(f"{view.tab}.{name}")
        if component is not None and value is not None:
            out[component] = _holding(component, value)
    check_rules(view.rules, page.limits)
    views = shared.get(f"{view.tab}.views")
    if views is not None and view.view in {tab.id for tab in views.children}:  # older links may know others
        out[views] = gr.Tabs(selected=view.view)
    return out


def check_rules(rules: Sequence[tuple[str, float]], limits: Limits) -> None:
    """How a text is to be written, as a link says it. Raises ValueError where it says what the controls could not."""
    for name, value in rules:
        if name not in (*sampling.BY_NAME, "greedy"):
            raise LinkError(f"there is no rule called “{cut(name)}” here")
        if name != "greedy":  # as older links say it
            sampling.BY_NAME[name].read(value, limits)


def is_here(page: Page, query: dict[str, str], visitor: str | None) -> bool:
    """Whether the address names a model of this visitor's own that is here still: its run need not be repeated."""
    return "model" in query and page.registry.has(query["model"], visitor)


def _here(page: Page, name: str | None, visitor: str | None) -> str | None:
    """The id of the model that a link calls so, if this visitor has it."""
    return next((m for m in (f"shipped-{name}", name) if name and page.registry.has(m, visitor)), None)


def _holding(component: Any, value: Any) -> Any:
    """An update to this value; layers and heads, whose number is not known yet, get a list that holds it."""
    if isinstance(component, (gr.Dropdown, gr.Radio)) and isinstance(value, int):
        return gr.update(choices=[(str(i), i) for i in range(value + 1)], value=value)
    if isinstance(value, tuple):
        return gr.update(choices=list(value), value=list(value))
    if isinstance(component, gr.Radio) and value not in [name for _, name in component.choices]:
        raise LinkError(f"there is no “{value}” to choose here")
    return value


def copy_link(page: Page, tab: str, *, of: Mapping[str, Any] | None = None, **button: Any) -> gr.Button:
    """A button that copies a link to what this tab shows: its model, and the controls it has shared.

    `of` are the tab's own pickers, `model` and `dense`, and the letters of their `pair`, where it does not look at the
    page's model.
    """
    made = gr.Button(
        "Copy link", **{"size": "sm", "min_width": 100, "elem_id": f"copy-{tab}", "elem_classes": "copy-link"} | button
    )

    def wire() -> None:
        found = {name: page.shared(f"{tab}.{name}") for name in (*CONTROLS, "view")}
        inputs = {**(of or {"model": page.model, "run": page.shared("train.letters")}), **found}
        inputs = {name: component for name, component in inputs.items() if component is not None}
        made.click(None, list(inputs.values()), None, js=copying(made.elem_id, list(inputs), tab))

    page.later(wire)
    return made


def copying(elem_id: str, names: list[str], tab: str | None = None) -> str:
    """The script that copies a link made of inputs of these names; without a tab, a link to the run there is."""
    script = _COPY.replace("NAMES", json.dumps(names)).replace("ID", elem_id)
    return script if tab is None else script.replace("found = {};", f"found = {{tab: {json.dumps(tab)}}};")


def linked_prompt(request: gr.Request | None, tab: str, model_id: str | None) -> str | None:
    """The prompt that the page's own address asks for in this tab with this model, if it does and may."""
    view = _linked_view(request, tab, model_id)
    return view.prompt if view else None


def linked_place(
    request: gr.Request | None, tab: str, model_id: str | None, prompt: str, subject: str, *, first: bool
) -> dict[str, int]:
    """The layer, head, query and key that the page's own address asks for, if with this model, prompt and subject.

    `first`: nothing was shown yet. Later only the model that the address names is shown there once more.
    """
    view = _linked_view(request, tab, model_id)
    if view is None or view.prompt not in (None, prompt) or view.subject not in (None, subject):
        return {}
    if not first and view.model not in (model_id, str(model_id).removeprefix("shipped-")):
        return {}
    query, key = view.cell or (None, None)
    found = {"layer": view.layer, "head": view.head, "query": query, "key": key}
    return {name: number for name, number in found.items() if number is not None}


def awaits(request: gr.Request | None, tab: str, model_id: str | None) -> bool:
    """Whether the page's own address is of another model than this one, which has to be trained first."""
    view = _view_of(request, tab)
    return bool(view and view.model and _trains(request)) and view.model != model_id


def _linked_view(request: gr.Request | None, tab: str, model_id: str | None) -> View | None:
    view = _view_of(request, tab)
    fits = view and (view.model in (None, model_id, str(model_id).removeprefix("shipped-")) or _trains(request))
    return view if fits else None


def _view_of(request: gr.Request | None, tab: str) -> View | None:
    query = query_of(request)
    try:
        return View.from_query(query, (tab,)) if query.get("tab") == tab else None
    except LinkError:
        return None


def _trains(request: gr.Request | None) -> bool:
    """Whether the address holds what its model is trained by."""
    return "run" in query_of(request)


def query_of(request: gr.Request | None) -> dict[str, str]:
    """The words after the question mark of the page's address, one value each."""
    try:
        return dict(request.query_params)
    except (AttributeError, TypeError, ValueError):
        return {}


def broken(problem: ValueError) -> str:
    """The sentence for a link that cannot be opened, as HTML. Escaped."""
    said = sentence(str(problem))
    return theme.notice(f"This link cannot be opened: {said[:1].lower()}{said[1:]} {_OPENS_AS_USUAL}", "error")
