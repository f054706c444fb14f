"""What is clicked last is what is answered, however quickly it was clicked; a page at rest rests."""

import time

import gradio as gr
from playwright.sync_api import expect

from playground.ui.gradio_fixes.mended_scripts import mended_scripts

from .measuring import calm

FRAMES = """window.frames_asked = 0;
const ask = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (act) => { window.frames_asked += 1; return ask(act); };"""


def test_the_last_of_three_quick_clicks_is_asked(serve, browser):
    def chosen(event: gr.SelectData) -> str:
        time.sleep(0.5)
        return str(event.value)

    with gr.Blocks() as app:
        table, said = gr.Dataframe([["a1", "b2", "c3"]], interactive=False), gr.Textbox(elem_id="said")
        table.select(chosen, None, said, trigger_mode="always_last")
    page = browser.new_page()  # the window may remember gradio's own scripts, of another app on the same port
    page.goto(serve(app, ssr_mode=False, app_kwargs={"routes": mended_scripts()}))
    for word in ("a1", "b2", "c3"):
        page.get_by_text(word, exact=True).locator("visible=true").first.click()
    expect(page.locator("#said textarea, #said input").first).to_have_value("c3", timeout=15_000)
    page.close()


def test_a_page_at_rest_asks_for_no_frames(address, open_page):
    """Plain gradio's asks for 60 a second, for a loading sign that is gone: 6 % of a core, in every open browser."""
    page = open_page()
    page.add_init_script(FRAMES)
    page.goto(address)
    page.wait_for_selector("#curve [data-state=drawn]")
    calm(page)
    rests = "() => new Promise((tell) => { const n = frames_asked; setTimeout(() => tell(frames_asked === n), 1000); })"
    page.wait_for_function(rests)
