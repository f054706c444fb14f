"""What is clicked or typed last is heard, always; a page at rest rests."""

import gradio as gr
import pytest
from playwright.sync_api import expect

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


LATE = "() => new Promise((done) => setTimeout(() => done([5, 6]), %d))"
CLICK_BOTH = """() => {
  const buttons = [...document.querySelectorAll("button")];
  for (const name of ["Ask", "More"]) buttons.find((each) => each.innerText.includes(name)).click();
}"""


@pytest.mark.parametrize("after", [0, 15, 30])
def test_what_an_answer_writes_into_an_accordion_that_is_opening_stays(serve, page, after):
    """Gradio writes all its fields anew a frame after it opens: with the answer's values, so forms need no mending."""
    with gr.Blocks() as app:
        ask = gr.Button("Ask")
        with gr.Accordion("More", open=False):
            fields = [gr.Number(0, label="First"), gr.Number(0, label="Second")]
        ask.click(None, None, fields, js=LATE % after)
    address, seen = serve(app, ssr_mode=False), []
    for _ in range(3):  # a machine so busy that a frame takes longer than the answer may lose one
        page.goto(address)
        page.get_by_text("Ask", exact=True).wait_for()
        page.evaluate(CLICK_BOTH)
        page.wait_for_timeout(after + 200)
        seen.append([page.get_by_label(label).input_value() for label in ("First", "Second")])
    assert ["5", "6"] in seen


def test_a_page_at_rest_asks_for_no_frames(address, open_page):
    """Plain gradio's asks for 60 a second, for a loading sign that is gone: 6 % of a core, in every open browser."""
    page = open_page()
    page.add_init_script(FRAMES)
    page.goto(address)
    page.wait_for_selector("#curve [data-state=drawn]")
    calm(page)
    rests = "() => new Promise((tell) => { const n = frames_asked; setTimeout(() => tell(frames_asked === n), 1000); })"
    page.wait_for_function(rests)
