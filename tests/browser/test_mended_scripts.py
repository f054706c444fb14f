"""What is clicked or typed last is heard, always; a page at rest rests."""

import asyncio

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


SLOW = """async (...now) => {
  await new Promise((done) => setTimeout(done, 500));
  return now.join(" and ");
}"""


def test_a_script_hears_of_each_change_while_it_works_on_the_one_before(serve, page):
    """Gradio puts off or drops events of handlers on its server alone: so forms need no mending."""
    with gr.Blocks() as app:
        text, said = gr.Textbox(label="Text"), gr.Textbox(elem_id="said", label="Said")
        text.change(None, text, said, js=SLOW)
    page.goto(serve(app, ssr_mode=False))
    for words in ("1", "12", "123"):
        page.get_by_label("Text").fill(words)
    says(page, "123")


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


AT_ONCE = """() => {
  const looks = new MutationObserver(() => {
    const box = document.querySelector('input[aria-label=Second]');
    if (!box) return;
    looks.disconnect();
    box.value = '2';
    box.dispatchEvent(new Event('input', {bubbles: true}));
  });
  looks.observe(document.body, {subtree: true, childList: true});
}"""


def test_what_is_typed_into_an_accordion_that_has_just_opened_stays(serve, page):
    with gr.Blocks() as app:
        first = gr.Number(0, label="First")
        with gr.Accordion("More", open=False):
            second = gr.Number(0, label="Second")
        said = gr.Textbox(elem_id="said")
        gr.on([first.input, second.input], None, [first, second], said, js=SLOW)
    page.goto(serve(app, ssr_mode=False, app_kwargs={"routes": mended_scripts()}))
    page.evaluate(AT_ONCE)
    page.get_by_label("First").fill("1")
    page.get_by_text("More", exact=True).click()
    says(page, "1 and 2")
    expect(page.get_by_label("Second")).to_have_value("2")


def test_a_page_at_rest_asks_for_no_frames(address, open_page):
    """Plain gradio's asks for 60 a second, for a loading sign that is gone: 6 % of a core, in every open browser."""
    page = open_page()
    page.add_init_script(FRAMES)
    page.goto(address)
    page.wait_for_selector("#curve [data-state=drawn]")
    calm(page)
    rests = "() => new Promise((tell) => { const n = frames_asked; setTimeout(() => tell(frames_asked === n), 1000); })"
    page.wait_for_function(rests)
