"""What is clicked last is what is answered, however quickly it was clicked."""

import time

import gradio as gr
from playwright.sync_api import expect

from playground.ui.gradio_fixes.mended_scripts import mended_scripts


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
