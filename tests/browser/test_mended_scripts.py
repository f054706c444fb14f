"""What is clicked last is what is answered, however quickly it was clicked, and always; a page at rest rests."""

import asyncio
import time

import gradio as gr
import pytest
from playwright.sync_api import expect
from starlette.middleware import Middleware

from playground.ui.gradio_fixes.mended_scripts import mended_scripts

from .measuring import calm

FRAMES = """window.frames_asked = 0;
const ask = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (act) => { window.frames_asked += 1; return ask(act); };"""


@pytest.fixture
def page(browser):
    """In no window that may remember gradio's own scripts, of another app on the same port."""
    page = browser.new_page()
    yield page
    page.close()


def says(page, what: str) -> None:
    expect(page.locator("#said textarea, #said input").first).to_have_value(what, timeout=15_000)


def test_the_last_of_three_quick_clicks_is_asked(serve, page):
    def chosen(event: gr.SelectData) -> str:
        time.sleep(0.5)
        return str(event.value)

    with gr.Blocks() as app:
        table, said = gr.Dataframe([["a1", "b2", "c3"]], interactive=False), gr.Textbox(elem_id="said")
        table.select(chosen, None, said, trigger_mode="always_last")
    page.goto(serve(app, ssr_mode=False, app_kwargs={"routes": mended_scripts()}))
    for word in ("a1", "b2", "c3"):
        page.get_by_text(word, exact=True).locator("visible=true").first.click()
    says(page, "c3")


class SlowToClose:
    """A network that takes a second to tell the page that its stream of answers is closed."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        async def sent(message):
            await asyncio.sleep(b"close_stream" in message.get("body", b""))
            await send(message)

        await self.app(scope, receive, sent)


def test_a_click_while_the_stream_of_answers_is_being_closed_is_answered(serve, page):
    """Plain gradio answers it once something else is asked."""
    with gr.Blocks() as app:
        first, second, said = gr.Button("first"), gr.Button("second"), gr.Textbox(elem_id="said")
        first.click(lambda: "the first", None, said)
        second.click(lambda: "the second", None, said)
    page.goto(
        serve(app, ssr_mode=False, app_kwargs={"routes": mended_scripts(), "middleware": [Middleware(SlowToClose)]})
    )
    for name in ("first", "second"):
        page.get_by_role("button", name=name, exact=True).click()
        says(page, f"the {name}")


def test_a_page_at_rest_asks_for_no_frames(address, open_page):
    """Plain gradio's asks for 60 a second, for a loading sign that is gone: 6 % of a core, in every open browser."""
    page = open_page()
    page.add_init_script(FRAMES)
    page.goto(address)
    page.wait_for_selector("#curve [data-state=drawn]")
    calm(page)
    rests = "() => new Promise((tell) => { const n = frames_asked; setTimeout(() => tell(frames_asked === n), 1000); })"
    page.wait_for_function(rests)
