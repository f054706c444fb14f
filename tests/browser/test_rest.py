"""A page at rest rests, and says so where its server is gone or was restarted."""

from .measuring import calm

FRAMES = """window.frames_asked = 0;
const ask = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (act) => { window.frames_asked += 1; return ask(act); };"""
DOWN = """const fetched = window.fetch;
window.fetch = (...asked) => window.down ? Promise.reject(new TypeError("nobody answers")) : fetched(...asked);"""


def test_an_open_page_asks_for_no_frames_and_waits_for_a_server_that_is_restarted(address, open_page):
    """Plain gradio's asks for 60 frames a second, for a loading sign that is gone: 6 % of a core."""
    page = open_page()
    page.add_init_script(FRAMES + DOWN)
    page.goto(address)
    page.wait_for_selector("#curve [data-state=drawn]")
    calm(page)
    rests = "() => new Promise((tell) => { const n = frames_asked; setTimeout(() => tell(frames_asked === n), 1000); })"
    page.wait_for_function(rests)
    page.evaluate("window.down = true; fetch('gradio_api/run/predict', {method: 'POST'}).catch(() => 0)")
    page.wait_for_selector(".complaint:has-text('come back')")
    page.route("**/status", lambda route: route.fulfill(headers={"x-playground-server": "another start"}))
    page.evaluate("window.down = false")
    page.wait_for_selector(".complaint:has-text('was restarted')")
    assert page.locator(".complaint").count() == 1
    page.wait_for_selector("#curve [data-state=drawn]")
