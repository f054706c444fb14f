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
def chromium() -> Iterator:
    """Chromium as playwright knows it, and how to start it here."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium on the PATH: install one (Debian: apt-get install chromium) to run the browser tests")
    with playwright.sync_playwright() as driver:
        playwright.expect.set_options(timeout=PATIENCE)
        yield driver.chromium, {"executable_path": path, "args": _ARGUMENTS}


@pytest.fixture(scope="package")
def browser(chromium) -> Iterator:
    """A headless Chromium for whoever needs a window with settings of its own."""
    kind, how = chromium
    browser = kind.launch(**how)
    yield browser
    browser.close()


@pytest.fixture(scope="package")
def window(chromium, tmp_path_factory) -> Iterator:
    """One window for all plain pages of the folder, whose Chromium keeps the scripts that it has translated."""
    kind, how = chromium
    window = kind.launch_persistent_context(tmp_path_factory.mktemp("profile"), viewport=DESK, **how)
    yield window
    window.close()


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
def open_page(request) -> Iterator[Callable]:
    """`open_page(**context_arguments)` → a new visitor's page whose console errors and foreign requests fail the test.

    A test that expects the server to refuse something sets the page's `refusals` to True: Chromium logs that as well.
    """
    with opened_pages(request.getfixturevalue) as create:
        yield create


_visited: set[str] = set()
WELCOME = "transformer-playground-welcome"
"""What a browser keeps once the welcome was shown."""


def forgotten(page) -> None:
    """Whoever opens this page of the window is somebody else than those before, whose pages are closed by now."""
    session = page.context.new_cdp_session(page)
    for origin in _visited:
        session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "local_storage"})
    session.detach()


@contextlib.contextmanager
def opened_pages(fixture: Callable) -> Iterator[Callable]:
    """What `open_page` yields; `fixture` gives the browser or the window when it is first needed."""
    pages, complaints, leaving = [], [], []

    def create(color_scheme: str = "light", viewport: dict = DESK, **arguments):
        if arguments or pages:  # or a second visitor
            page = fixture("browser").new_context(viewport=viewport, **arguments).new_page()
        else:
            page = fixture("window").new_page()
            forgotten(page)
            page.set_viewport_size(viewport)
        pages.append((page, not (arguments or pages)))
        page.emulate_media(color_scheme=color_scheme)
        page.add_init_script(f"try {{ localStorage.setItem('{WELCOME}', 'yes') }} catch {{}}")  # this is no first visit
        page.context.set_default_timeout(PATIENCE)  # and that of whatever it opens

        def heard(message) -> None:
            refused = message.location.get("url", "").endswith("/run/predict") and "status of 500" in message.text
            cut = any(text in message.text for text in ("AbortError: signal is aborted", "Connection errored out"))
            expected = (refused and getattr(page, "refusals", False)) or (cut and leaving)
            if message.type == "error" and not expected:
                complaints.append(f"console: {message.text} ({message.location.get('url', '')})")

        def asked(request) -> None:
            address = urlparse(request.url)
            if address.scheme in ("http", "https", "ws", "wss") and address.hostname not in ("127.0.0.1", "localhost"):
                complaints.append(f"a request left for {request.url}")

        def left_by(go: Callable) -> Callable:
            """To another page; what this one was still asking for is cut off then, which gradio logs."""

            def goes(*where, **how):
                leaving.extend([page.url] if page.url.startswith("http") else [])
                try:
                    return go(*where, **how)
                finally:
                    leaving.clear()

            return goes

        page.goto, page.reload = left_by(page.goto), left_by(page.reload)
        page.on("console", heard)
        page.on("pageerror", lambda error: complaints.append(f"uncaught: {error}"))
        page.on("request", asked)
        return page

    try:
        yield create
    finally:
        for page, in_window in pages:
            if in_window and page.url.startswith("http"):
                _visited.add("{0.scheme}://{0.netloc}".format(urlparse(page.url)))
            (page if in_window else page.context).close()
    assert not complaints, "\n".join(complaints)


@pytest.fixture
def chromium_page(open_page):
    """A light page on a desk."""
    return open_page()


@pytest.fixture
def phone_page(open_page):
    """A phone, 390 pixels wide, with touch."""
    return open_page(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True, color_scheme="light")
