"""build_app(): the page's frame, its tabs in order, and how it is launched."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import gradio as gr
from starlette.responses import Response
from starlette.routing import Route

from ..devices import on_zerogpu
from ..service.board import Board
from ..service.classes import Classes
from ..service.data_folder import DataFolder
from ..service.limits import THREADS, Limits, limits_here
from ..service.models import Registry
from ..service.runs import run_training, warm_up
from ..service.zerogpu import run_in_slices
from . import api, chart, classroom, glossary, links, own_files, theme
from .bodies import MALFORMED, bodies, malformed
from .gradio_fixes.blocks import Blocks
from .gradio_fixes.checks import out_of_place
from .gradio_fixes.first_script import scripts_first
from .gradio_fixes.lenient import LenientDropdown
from .lessons import welcome as first_visit
from .lessons.strip import Strip
from .made_files import made_route
from .news import news_route
from .page import QUIETLY, UNSEEN, Page
from .status import status_route
from .tabs.train.settings import FIRST_SOURCE
from .where import Reach, trust_no_address, without_proxy

# if matplotlib is installed, gradio checks its backend around every handler; if unset, that imports pyplot
os.environ.setdefault("MPLBACKEND", "agg")
TABS = ("train", "generate", "inspect", "moe")  # in this order
# The tab in the address is built first: this runs once gradio's configuration is there.
FIRST_TAB = """<script>(() => {
  const tabs = window.gradio_config?.components?.find((each) => each.type === "tabs" && each.props.elem_id === "tabs");
  const wanted = new URLSearchParams(location.search).get("tab");
  if (tabs && window.gradio_config.components.some((each) => each.type === "tabitem" && each.props.id === wanted)) {
    tabs.props.selected = wanted;
  }
})();</script>"""
LEARN = '<button type="button" class="ghost" popovertarget="learn-menu">Learn ▾</button>'
STORAGE_KEY = "transformer-playground-visitor"
# Only keeps the id unreadable at a glance in the visitor's own browser; fixed, so that it outlives a restart.
STORAGE_SECRET = "transformer-playground"


def build_app(
    limits: Limits | None = None,
    registry: Registry | None = None,
    jobs: Board | None = None,
    classes: Classes | None = None,
    reach: Reach | None = None,
    data: DataFolder | None = None,
) -> gr.Blocks:
    """The whole page as gradio Blocks, ready for `launch(app)`. Its attribute `page` is the `Page`.

    `data` keeps visitors' work; without it, nothing outlives the process.
    """
    limits = limits or limits_here()
    registry = registry or Registry(limits, data=data)
    jobs = jobs or Board(registry, limits, run_in_slices if on_zerogpu() else run_training)
    modules = [(name, importlib.import_module(f"{__package__}.tabs.{name}")) for name in TABS]
    # delete_cache: (check every, delete files older than) seconds
    with Blocks(title="Transformer Playground", analytics_enabled=False, delete_cache=(3600, 3600)) as app:
        visitor = gr.BrowserState("", storage_key=STORAGE_KEY, secret=STORAGE_SECRET)
        with gr.Row(elem_id="page-head", equal_height=False):
            gr.HTML("<h1><span>Transformer </span>Playground</h1>", padding=False, elem_id="head-title")
            # the list is per visitor, and a session's own may have been forgotten: the registry checks every id itself
            model = LenientDropdown(
                registry.choices(None), value=registry.default, label="Model", elem_id="model", container=False,
                filterable=False, min_width=120, scale=0,
            )  # fmt: skip
            gr.HTML(LEARN, padding=False, elem_id="head-learn")
        first_visit.build()
        strip = Strip()
        link_note = gr.HTML(padding=False, elem_id="link-note")
        above_tabs = gr.Column(elem_id="class")
        tabs = gr.Tabs(selected=TABS[0], elem_id="tabs")
        page = Page(limits, registry, jobs, visitor, model, tabs, TABS, reach or Reach.here())
        api.build(page)
        strip.build(page)
        with tabs:
            links.build(page, link_note)
            for name, module in modules:
                with gr.Tab(module.TITLE, id=name, elem_id=f"tab-{name}"):
                    module.build(page)
        with above_tabs:
            classroom.build(page, classes or Classes(registry.data.store))

        def welcome(visitor: Any) -> tuple[str, gr.Dropdown]:
            """The visitor's id that this browser remembers, or a new one; and the visitor's models."""
            if not registry.data.knows(visitor):
                visitor = registry.data.new_visitor()
            page.opened[visitor] = None
            own = [entry.id for entry in registry.models(visitor) if not entry.shipped]  # the newest first
            return visitor, page.model_list(visitor, own[0] if own else None)

        def renewed(visitor: Any, model_id: Any, wanted: Any) -> gr.Dropdown:
            """The present list of models, with another one chosen if requested, or else the old one."""
            chosen = wanted if registry.has(wanted, visitor) else model_id
            if chosen == model_id and registry.has(model_id, visitor):
                return gr.Dropdown(choices=page.models_of(visitor, model_id))
            return page.model_list(visitor, chosen)

        page.finish()
        tell = "(visitor, model) => { window.playground.tell({ visitor, model }); }"
        model.change(None, [visitor, model], None, js=tell, **UNSEEN)
        renew = gr.Button(visible="hidden", elem_id="renew-models")
        # the browser's wish replaces the third input; if triggered while at work, it runs again
        wanted = "(visitor, model) => [visitor, model, playground.news.wanted()]"
        renew.click(renewed, [visitor, model, renew], model, js=wanted, trigger_mode="always_last", **QUIETLY)
        loaded = app.load(welcome, visitor, [visitor, model], **QUIETLY)
        loaded.then(None, [visitor, model], None, js=tell, **UNSEEN)
        opening = [(loaded.then(*attach, **QUIETLY), after) for *attach, after in page.on_load_handlers]
        for event, after in opening:
            after(event)
        strip.goes_on([event for event, _ in opening])
    app.page = page
    return app


def launch(app: gr.Blocks, host: str = "127.0.0.1", port: int | None = None, share: bool = False, **options: Any):
    """Serve the page. `options` go to gradio's `launch`, over the settings given here."""
    limits, uploads = app.page.limits, app.page.uploads
    settings: dict[str, Any] = {
        "server_name": host,
        "server_port": port,
        "share": share,
        "theme": theme.theme(),
        "css": theme.css(),
        "head": FIRST_TAB + chart.head_html() + glossary.head_html(),
        "app_kwargs": {
            "middleware": [
                bodies(limits, uploads, app.page.sender_of),
                scripts_first(lasting=app.page.registry.data.lasting),
            ],
            "exception_handlers": {MALFORMED: malformed},
            "routes": [
                status_route(app),
                *app.page.panels.routes(),
                Route("/write", app.page.shared("generate.writing").answer, methods=["POST"]),
                news_route(app.page),
                made_route(),
                own_files.files_route(),
                Route("/gradio_api/deep_link", lambda request: Response(status_code=404)),  # each writes a file
            ],
        },
        "footer_links": [],
        "max_threads": THREADS,
        "state_session_capacity": 100,  # open pages; a forgotten one loses nothing
        "run_history": False,  # it would keep every text in the visitor's browser
        "enable_monitoring": False,
        "show_error": False,
        "max_file_size": limits.file_bytes,
        "ssr_mode": False,
        "_frontend": False,  # gradio gives up if the page does not answer at once; a busy machine may take longer
    }
    for line in out_of_place(app):
        print(line, file=sys.stderr)
    block = not options.pop("prevent_thread_lock", False)
    without_proxy(host)
    trust_no_address()
    served = app.launch(**{**settings, **options}, prevent_thread_lock=True)
    app.page.board.keep_house()
    if block:
        warm_up(FIRST_SOURCE, "char")  # the server answers by now; the first visitor finds it ready
        app.block_thread()
    return served
