"""A panel: one gr.HTML whose selection lives in the browser, and one function that says what its slots show for it.

    def view(asked: Asked) -> Shown:
        look = look_at(asked.visitor, asked.selection)                     # a ValueError is shown in the notice slot
        selection = {**asked.selection, "query": look.length - 1}          # as it is from now on
        return Shown(selection, {
            "headline": Slot((look.ids, "…"), lambda: "<h2>Head 3.2 …</h2>"),
            "pattern": Slot((look.ids, 3, 2), lambda: show(pattern_map(…), "One sentence.")),
        })

    page.panels.add("inspect", view, template, elem_id="inspect-panel")    # within the layout

The browser's half is front/panel.js: it keeps the selection, sends it to /view/<name> whenever it changes, shows the
newest answer only, and redraws the slots that changed. The server stores nothing: the browser sends along what each
slot was made from (`Slot.depends_on`, as a digest), and slots made from the same are not made again.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import json
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gradio as gr
import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..devices import processors
from . import theme
from .gradio_fixes.quiet_refusals import OURS, STRANGE, check_sendable, disk_refusal
from .places import Places
from .quoted import quoted
from .refusals import sentence

AT_ONCE = 48
"""Most open requests of one visitor: six windows of a browser that sends six for each, and some that were given up.
`Places` decides which are worked on, so that nobody else waits for them."""
LATER = "later"
"""Requested in place of a selection's quick slots: its slow ones, which are sent as they become ready."""
TOGETHER = 0.3
"""Seconds after which an answer with slow slots is sent; the rest is requested again."""

_log = logging.getLogger(__name__)
# more threads than processors wait for one another; slow work has threads of its own, so that clicks find one free
QUICK = SLOW = max(processors(), 2)
DEEDS = 4
_quick = ThreadPoolExecutor(QUICK, thread_name_prefix="view")
_slow = ThreadPoolExecutor(SLOW, thread_name_prefix="slow-view")
_deeds = ThreadPoolExecutor(DEEDS, thread_name_prefix="slow-deed")  # the Hub may be slow to answer

_ON_LOAD = """const start = () => window.playground?.panel
  ? window.playground.panel(element, props, watch, trigger) : setTimeout(start, 25);
start(); /* 'select', 'change' */"""


@dataclass(frozen=True)
class Asked:
    """A request from a browser; its content may be forged."""

    visitor: str
    selection: dict[str, Any]
    clicked: dict[str, Any] | None = None
    """Where in a chart the click was: `slot`, and what `clicks.py` reads."""
    request: Request | None = None
    """The request itself, for limits; its body was read."""


@dataclass(frozen=True)
class Slot:
    """The content of one place in a panel."""

    depends_on: Any
    """Everything the content is made from, as a value whose `repr` differs if any of it differs."""
    make: Callable[[], Any]
    """Returns HTML, or the value of a chart (`chart.show`). A ValueError is shown in its place."""
    slow: bool = False
    """Whether it takes longer than a click may: then the browser requests it once the quick slots are drawn."""
    echoes: bool = False
    """Whether this slot stays empty on an error, because another slot gives the reason."""

    @property
    def digest(self) -> str:
        """A hash of `depends_on`."""
        return hashlib.blake2b(repr(self.depends_on).encode(errors="replace"), digest_size=9).hexdigest()


@dataclass(frozen=True)
class Shown:
    """What a panel shows for a selection."""

    selection: dict[str, Any]
    """The present selection, limited to values that exist."""
    slots: Mapping[str, Slot]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The facts that saved pictures and tables carry."""
    model: str = ""
    """The model to which a copied link leads, if not the chosen one."""


View = Callable[[Asked], Shown]
Act = Callable[[Asked], "Mapping[str, Any] | None"]
"""Changes something on the server. It may return `move` (a change of the selection), `shows` (slot → content), `choose`
(a model to be chosen on all tabs), `save` (the address of a file that the browser saves), `fills` (the fields of a form
that follows this panel, `Followed.filled_by`), `tab` (one to open)."""
Link = Callable[[str, Any], Mapping[str, str]]
"""(visitor, model) → the words of a link that lead to this model."""


_Work = tuple[ThreadPoolExecutor, Callable[[], dict[str, Any]]]
"""One request: the threads that work on it, and the function that answers it."""


class Panels:
    """The panels of one page, and the route that answers them."""

    def __init__(
        self,
        known: Callable[[Any], str],
        link: Link = lambda visitor, model: {},
        network: Callable[[Request], str] = lambda request: "",
    ):
        """`known` returns a visitor's id, or raises ValueError if this server has not issued it.

        `network` says from where a request comes: if threads are short, networks take turns.
        """
        self._known, self._link, self.network = known, link, network
        self._places = {_quick: Places(QUICK), _slow: Places(SLOW), _deeds: Places(DEEDS)}
        self._views: dict[str, View] = {}
        self._acts: dict[str, Act] = {}
        self._slow_acts: set[str] = set()
        self._asking: Counter[str] = Counter()

    def add(
        self,
        name: str,
        view: View,
        template: str,
        *,
        start: Mapping[str, Any],
        of_model: str = "",
        address: str = "",
        follows: bool = False,
        **component: Any,
    ) -> gr.HTML:
        """Add a panel to the layout and return its component.

        Args:
            template: fixed HTML with `data-slot` places. It must not contain anything that a visitor wrote.
            start: the selection with which the panel opens.
            of_model: names of the fields that are kept separately for each model.
            address: names of the fields that the page's address holds while this tab is open. `cell` means query and
                key.
            follows: whether the panel shows jobs or models, so that it must update when those change.
        """
        self._views[name] = view
        data = {"panel": name, "start": json.dumps(dict(start)), "of-model": of_model, "address": address}
        data |= {"follows": follows, "new": True}  # new until the request was answered in full
        # browsers restore fields on their own, and not always to what the selection says
        attributes = {"autocomplete": "off"} | {f"data-{key}": text for key, text in data.items()}
        return gr.HTML(
            {},
            html_template=f'<form class="panel"{attributes_html(attributes)}>{template}</form>',
            js_on_load=_ON_LOAD,
            apply_default_css=False,
            padding=False,
            **component,
        )

    def act(self, name: str, handler: Act, *, slow: bool = False) -> None:
        """Let buttons with `data-do="name"` call this with the selection. A ValueError is shown in the panel.

        `slow`: it takes longer than a click may, and waits for its own thread.
        """
        self._acts[name] = handler
        self._slow_acts |= {name} if slow else set()

    def routes(self) -> list[Route]:
        """The panels' HTTP routes, for gradio's `app_kwargs`."""
        reads = {"view": self._wish, "do": self._deed}
        return [
            Route(f"/{does}/{{name}}", partial(self._answer, read), methods=["POST"]) for does, read in reads.items()
        ]

    async def _answer(self, read: Callable[[str, Asked, Any], _Work], request: Request) -> Response:
        try:
            body = await request.json()
            asked = self.asked(body, request)
            visitor, (pool, work) = asked.visitor, read(request.path_params["name"], asked, body)
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            return JSONResponse({"problem": STRANGE}, 400)
        if self._asking[visitor] >= AT_ONCE:
            return JSONResponse({"problem": "Too many requests at once. Wait a moment."}, 429)
        self._asking[visitor] += 1
        try:
            async with self._places[pool].of(self.network(request), visitor):
                content = await asyncio.get_running_loop().run_in_executor(pool, lambda: _json(work()))
            return Response(content, media_type="application/json", headers={"cache-control": "no-store"})
        except ValueError as problem:
            return JSONResponse({"problem": sentence(str(problem))})
        except Exception as problem:
            _log.exception("A view of the page ended in an error")
            return JSONResponse({"problem": disk_refusal(problem) or OURS}, 500)
        finally:
            self._asking[visitor] -= 1
            if not self._asking[visitor]:
                del self._asking[visitor]

    def asked(self, body: Any, request: Request) -> Asked:
        """The request's visitor and content. Raises ValueError, KeyError or TypeError for what no page sends."""
        check_sendable(body)
        selection, clicked = body["selection"], body.get("clicked")
        if not isinstance(selection, dict) or not isinstance(clicked, (dict, type(None))):
            raise ValueError
        return Asked(self._known(body["visitor"]), selection, clicked, request)

    def _deed(self, name: str, asked: Asked, body: Any) -> _Work:
        """Do what one pressed button asks, and return the result."""
        act = self._acts[name]
        return _deeds if name in self._slow_acts else _quick, lambda: dict(act(asked) or {})

    def _wish(self, name: str, asked: Asked, body: Any) -> _Work:
        """What to show for a request."""
        view, have, late = self._views[name], body.get("have", {}), bool(body.get(LATER))
        if not isinstance(have, dict):
            raise ValueError

        def answer() -> dict[str, Any]:
            shown = view(asked)
            due = {name: slot for name, slot in shown.slots.items() if have.get(name) != slot.digest}
            made: dict[str, list[Any]] = {}
            later, began = [], time.monotonic()
            for name, slot in due.items():
                if slot.slow and (not late or (made and time.monotonic() - began > TOGETHER)):
                    later.append(name)
                else:  # a slot that has become quick meanwhile is not requested again
                    made[name] = [slot.digest, quoted(_made(slot), **shown.facts)]
            said = {"selection": shown.selection, "slots": made, LATER: later}
            link = {} if late else {"link": self._link(asked.visitor, shown.model or asked.selection.get("model"))}
            return said | link

        return _slow if late else _quick, answer


def _made(slot: Slot) -> Any:
    try:
        return slot.make()
    except ValueError as problem:
        return None if slot.echoes else {"problem": theme.notice(sentence(str(problem)), "error")}


def _json(answer: Any) -> bytes:
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


# ---- pieces of templates ---------------------------------------------------------------------------------------------


def slot(name: str, *, tag: str = "div", **attributes: str) -> str:
    """A place for HTML. Attribute names have _ in place of -."""
    return f'<{tag} data-slot="{name}"{attributes_html(attributes)}></{tag}>'


def blank(template: str, note: str, said: str) -> dict[str, Slot]:
    """All slots of a part of a template, empty except `note`, which gives the reason as HTML."""
    empty = dict.fromkeys(re.findall(r'data-slot="([\w-]+)"', template), Slot(None, lambda: None))
    return empty | {note: Slot(said, lambda: said)}


def button(text: str, *, kind: str = "ghost", **attributes: str | bool) -> str:
    """A button. Escaped, except for attribute names, which have _ in place of -."""
    return f'<button type="button" class="{kind}"{attributes_html(attributes)}>{html.escape(text)}</button>'


def move_button(text: str, move: Mapping[str, Any], *, kind: str = "ghost", **attributes: str | bool) -> str:
    """A button that changes the selection. Escaped."""
    return button(text, kind=kind, data_move=json.dumps(dict(move), ensure_ascii=False), **attributes)


def deed_button(text: str, deed: str, *, kind: str = "ghost", **attributes: str | bool) -> str:
    """A button that starts the deed of this name on the server (`Panels.act`). Escaped."""
    return button(text, kind=kind, data_do=deed, **attributes)


def chip(text: str, move: Mapping[str, Any], **attributes: str | bool) -> str:
    """A button with a text to try. It changes the selection, and looks pressed while that holds the text. Escaped."""
    return move_button(text.replace("\n", " ⏎ "), move, kind="chip", dir="auto", data_try="", **attributes)


def choice(name: str, label: str, options: Mapping[str, str], chosen: str = "", *, resets: str = "") -> str:
    """A drop-down with options value → text; `resets` names the fields that a choice resets. Escaped."""
    attributes = attributes_html({"name": name, "data_resets": resets})
    inside = options_html(options, chosen)
    return f'<label class="field-label">{html.escape(label)}<select{attributes}>{inside}</select></label>'


def options_html(options: Mapping[Any, str], chosen: Any = "") -> str:
    """The options of a drop-down: value → text. Escaped."""
    return "".join(
        f"<option{attributes_html({'value': str(value), 'selected': value == chosen})}>{html.escape(text)}</option>"
        for value, text in options.items()
    )


def switch(name: str, label: str, options: Mapping[str, str]) -> str:
    """Radio buttons side by side: value → text. Escaped."""
    inside = "".join(
        f'<label><input type="radio" name="{name}" value="{html.escape(value, quote=True)}">'
        f"<span>{html.escape(text)}</span></label>"
        for value, text in options.items()
    )
    return f'<div class="seg" role="radiogroup" aria-label="{html.escape(label, quote=True)}">{inside}</div>'


def attributes_html(given: Mapping[str, str | bool]) -> str:
    """HTML attributes, each after a space, from name (with _ for -) → text, or whether to set it. Escaped."""
    parts = []
    for name, value in given.items():
        name = name.rstrip("_").replace("_", "-")
        if isinstance(value, bool):
            parts += [f" {name}"] * value
        else:
            parts.append(f' {name}="{html.escape(value, quote=True)}"')
    return "".join(parts)
