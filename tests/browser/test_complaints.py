"""What a page says of the server: what handlers outside the queue complain of, and that it was restarted."""

import gradio as gr

DOWN = """const fetched = window.fetch;
window.fetch = (...asked) => window.down ? Promise.reject(new TypeError("nobody answers")) : fetched(...asked);"""


def test_gradio_still_shows_it_to_nobody(serve, open_page):
    def refuse():
        raise gr.Error("Refused.", print_exception=False)

    with gr.Blocks() as app:
        box, button = gr.Textbox(), gr.Button("Refuse", elem_id="refuse")
        button.click(refuse, None, box, queue=False)
    page = open_page()
    page.refusals = True
    page.goto(serve(app, ssr_mode=False))
    with page.expect_response(lambda answer: "/run/" in answer.url) as refused:
        page.click("#refuse")
    assert refused.value.status == 500 and "Refused" in refused.value.text()
    page.wait_for_timeout(1500)
    assert "Refused" not in page.inner_text("body"), "gradio says it now: drop complaints.js"


def test_an_open_page_waits_for_a_server_that_is_restarted_and_says_so_in_a_sentence(address, open_page):
    page = open_page()
    page.add_init_script(DOWN)
    page.goto(address)
    page.wait_for_selector("#curve [data-state=drawn]")
    page.evaluate("window.down = true; fetch('gradio_api/run/predict', {method: 'POST'}).catch(() => 0)")
    page.wait_for_selector(".complaint:has-text('come back')")
    page.route("**/status", lambda route: route.fulfill(headers={"x-playground-server": "another start"}))
    page.evaluate("window.down = false")
    page.wait_for_selector(".complaint:has-text('was restarted')")
    assert page.locator(".complaint").count() == 1
    page.wait_for_selector("#curve [data-state=drawn]")
