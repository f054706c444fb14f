"""A headless Chromium for the tests of this folder, and a way to serve an app to it; skipped where there is none.

Every page that these fixtures open fails its test if the page wrote an error to its console, or if any request left for
another host.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from urllib.parse import urlparse

import gradio as gr
import pytest

from playground.ui import theme
from playground.ui.app import build_app
from playground.ui.chart import head_html
from playground.ui.own_files import files_route
from tests.ui.raw import serving

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # each window would have two pages of its own behind the address bar
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup",
]


DESK = {"width": 1280, "height": 900}
PATIENCE = 90_000
"""Milliseconds that anything may take: these tests ask what happens, not how soon, and machines may be busy."""


def type_number(page, box, value: int) -> None:
    """Type into the number of a form. Gradio writes all fields of an accordion anew, a frame after it opens."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    box.fill(str(value))
    box.press("Tab")


@pytest.fixture(scope="package")
def browser() -> Iterator:
    """A headless Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium on the PATH: install one (Debian: apt-get install chromium) to run the browser tests")
    with playwright.sync_playwright() as driver:
        playwright.expect.set_options(timeout=PATIENCE)
        browser = driver.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., str]]:
    """`serve(app, **launch_arguments)` → the address of the app on a free port, dressed as the product's page."""
    apps = []

    def launch(app: gr.Blocks, **arguments) -> str:
        kwargs = arguments.pop("app_kwargs", {})
        kwargs = kwargs | {"routes": [files_route(), *kwargs.get("routes", [])]}
        arguments = {"theme": theme.theme(), "css": theme.css(), "head": head_html(), **arguments, "app_kwargs": kwargs}
        _, address, _ = app.launch(
            server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, run_history=False, **arguments
        )
        apps.append(app)
        return address

    yield launch
    for app in apps:
        app.close(verbose=False)


@pytest.fixture(scope="package")
def served() -> Iterator[tuple]:
    """The product as `python app.py` serves it: its `Page`, and its address."""
    with serving(build_app()) as page_and_address:
        yield page_and_address


@pytest.fixture(scope="package")
def address(served) -> str:
    """Where the product is served."""
    return served[1]


@pytest.fixture
def open_page(browser) -> Iterator[Callable]:
    """`open_page(**context_arguments)` → a new visitor's page, whose console errors and foreign requests fail the test.

    What was still being asked for when a page was left is cut off, which gradio logs; that is no error.
    """
    with opened_pages(browser) as create:
        yield create


WELCOME = "transformer-playground-welcome"
"""What a browser keeps once the welcome was shown."""


@contextlib.contextmanager
def opened_pages(browser) -> Iterator[Callable]:
    """What `open_page` yields."""
    pages, complaints = [], []

    def create(**arguments):
        page = browser.new_context(**{"viewport": DESK, "color_scheme": "light", **arguments}).new_page()
        pages.append(page)
        page.add_init_script(f"try {{ localStorage.setItem('{WELCOME}', 'yes') }} catch {{}}")  # this is no first visit
        page.context.set_default_timeout(PATIENCE)  # and that of whatever it opens

        def heard(message) -> None:
            cut = any(text in message.text for text in ("AbortError: signal is aborted", "Connection errored out"))
            if message.type == "error" and not cut:
                complaints.append(f"console: {message.text} ({message.location.get('url', '')})")

        def asked(request) -> None:
            address = urlparse(request.url)
            if address.scheme in ("http", "https", "ws", "wss") and address.hostname not in ("127.0.0.1", "localhost"):
                complaints.append(f"a request left for {request.url}")

        page.on("console", heard)
        page.on("pageerror", lambda error: complaints.append(f"uncaught: {error}"))
        page.on("request", asked)
        return page

    try:
        yield create
    finally:
        for page in pages:
            page.context.close()
    assert not complaints, "\n".join(complaints)


@pytest.fixture
def chromium_page(open_page):
    """A light page on a desk."""
    return open_page()


@pytest.fixture
def phone_page(open_page):
    """A phone, 390 pixels wide, with touch."""
    return open_page(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
