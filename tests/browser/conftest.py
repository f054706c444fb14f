"""A headless Chromium for the tests of this folder, and a way to serve an app to it; skipped where there is none.

Every page that these fixtures open fails its test if the page wrote an error to its console, or if any request left for
another host.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from urllib.parse import urlparse

import gradio as gr
import pytest

from playground.ui import theme
from playground.ui.app import build_app, launch
from playground.ui.chart import head_html

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


PATIENCE = 90_000
"""Milliseconds that anything may take: these tests ask what happens, not how soon, and machines may be busy."""


@pytest.fixture(scope="package")
def browser() -> Iterator:
    """One headless Chromium for all tests of the folder."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium on the PATH: install one (Debian: apt-get install chromium) to run the browser tests")
    with playwright.sync_playwright() as driver:
        playwright.expect.set_options(timeout=PATIENCE)
        chromium = driver.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., str]]:
    """`serve(app, **launch_arguments)` → the address of the app on a free port, dressed as the product's page."""
    apps = []

    def launch(app: gr.Blocks, **arguments) -> str:
        arguments = {"theme": theme.theme(), "css": theme.css(), "head": head_html(), **arguments}
        _, address, _ = app.launch(
            server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, run_history=False, **arguments
        )
        apps.append(app)
        return address

    yield launch
    for app in apps:
        app.close(verbose=False)


@pytest.fixture(scope="module")
def served() -> Iterator[tuple]:
    """The product as `python app.py` serves it: its `Page`, and its address."""
    app = build_app()
    _, address, _ = launch(app, port=None, prevent_thread_lock=True, quiet=True)
    yield app.page, address
    app.close(verbose=False)


@pytest.fixture(scope="module")
def address(served) -> str:
    """Where the product is served."""
    return served[1]


@pytest.fixture
def open_page(browser) -> Iterator[Callable]:
    """`open_page(**context_arguments)` → a new page whose console errors and foreign requests fail the test.

    A test that expects the server to refuse something sets the page's `refusals` to True: Chromium logs that as well.
    """
    contexts, complaints = [], []

    def create(**arguments):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **arguments})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)

        def heard(message) -> None:
            refused = message.location.get("url", "").endswith("/run/predict") and "status of 500" in message.text
            if message.type == "error" and not (refused and getattr(page, "refusals", False)):
                complaints.append(f"console: {message.text} ({message.location.get('url', '')})")

        def asked(request) -> None:
            address = urlparse(request.url)
            if address.scheme in ("http", "https", "ws", "wss") and address.hostname not in ("127.0.0.1", "localhost"):
                complaints.append(f"a request left for {request.url}")

        page.on("console", heard)
        page.on("pageerror", lambda error: complaints.append(f"uncaught: {error}"))
        page.on("request", asked)
        return page

    yield create
    for context in contexts:
        context.close()
    assert not complaints, "\n".join(complaints)


@pytest.fixture
def chromium_page(open_page):
    """A light page on a desk."""
    return open_page(color_scheme="light")


@pytest.fixture
def dark_page(open_page):
    """The same in the dark."""
    return open_page(color_scheme="dark")


@pytest.fixture
def phone_page(open_page):
    """A phone, 390 pixels wide, with touch."""
    return open_page(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True, color_scheme="light")
