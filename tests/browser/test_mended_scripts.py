"""What is clicked or typed last counts and is answered, always, once; a page at rest rests."""

import asyncio
import threading
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


def test_a_text_that_several_read_is_read_by_each_once_for_each_change_at_most(serve, page):
    """Plain gradio asks all of them again for each that was at work, and may never rest."""
    asked = []

    def reads(name: str, seconds: float):
        def read(text: str) -> str:
            asked.append(name + text)
            time.sleep(seconds)
            return text

        return read

    with gr.Blocks() as app:
        text, readers = gr.Textbox(label="Text"), [("a", 0.1), ("b", 0.2), ("c", 0.1)]
        for name, seconds in readers:
            text.change(reads(name, seconds), text, gr.Textbox(label=name, elem_id=f"said-{name}"), queue=False)
    page.goto(serve(app, ssr_mode=False, app_kwargs={"routes": mended_scripts()}))
    for words in ("1", "12", "123", "1234"):
        page.get_by_label("Text", exact=True).fill(words)
        page.wait_for_timeout(150)
    for name, _ in readers:
        expect(page.locator(f"#said-{name} textarea")).to_have_value("1234")
    page.wait_for_timeout(1000)
    assert len(asked) <= 4 * len(readers), asked


def test_what_is_chosen_while_the_answer_before_fails_is_asked(serve, page):
    def read(text: str) -> str:
        time.sleep(0.5)
        if text == "bad":
            raise gr.Error("not this")
        return text

    with gr.Blocks() as app:
        text, said = gr.Textbox(label="Text"), gr.Textbox(elem_id="said", label="Said")
        text.change(read, text, said)  # gradio asks last what was put off: trigger_mode="always_last"
    page.goto(serve(app, ssr_mode=False, app_kwargs={"routes": mended_scripts()}))
    for words in ("bad", "good"):
        page.get_by_label("Text").fill(words)
    says(page, "good")


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
    """Plain gradio sets it back a frame later, where the page still waits for an answer about what was typed before."""
    asked = threading.Event()

    def both(first: int, second: int) -> str:
        asked.set()
        time.sleep(1)
        return f"{first} and {second}"

    with gr.Blocks() as app:
        first = gr.Number(0, label="First")
        with gr.Accordion("More", open=False):
            second = gr.Number(0, label="Second")
        said, how = gr.Textbox(elem_id="said"), {"trigger_mode": "always_last", "queue": False}
        gr.on([first.input, second.input], both, [first, second], said, **how)
    page.goto(serve(app, ssr_mode=False, app_kwargs={"routes": mended_scripts()}))
    page.evaluate(AT_ONCE)
    page.get_by_label("First").fill("1")
    assert asked.wait(15)
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
