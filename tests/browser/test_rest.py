"""A page at rest rests."""

from .measuring import calm

FRAMES = """window.frames_asked = 0;
const ask = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (act) => { window.frames_asked += 1; return ask(act); };"""


def test_a_page_at_rest_asks_for_no_frames(address, open_page):
    """Plain gradio's asks for 60 a second, for a loading sign that is gone: 6 % of a core, in every open browser."""
    page = open_page()
    page.add_init_script(FRAMES)
    page.goto(address)
    page.wait_for_selector("#curve [data-state=drawn]")
    calm(page)
    rests = "() => new Promise((tell) => { const n = frames_asked; setTimeout(() => tell(frames_asked === n), 1000); })"
    page.wait_for_function(rests)
