"""What handlers outside the queue complain of: gradio's own page tells nobody, which is why ours does."""

import gradio as gr


def test_gradio_still_shows_it_to_nobody(serve, open_page):
    def refuse():
        raise gr.Error("Not like this.", print_exception=False)

    with gr.Blocks() as app:
        box, button = gr.Textbox(), gr.Button("Refuse", elem_id="refuse")
        button.click(refuse, None, box, queue=False)
    page = open_page()
    page.refusals = True
    page.goto(serve(app, ssr_mode=False))
    with page.expect_response(lambda answer: "/run/" in answer.url) as refused:
        page.click("#refuse")
    assert refused.value.status == 500 and "Not like this" in refused.value.text()
    page.wait_for_timeout(1500)
    assert "Not like this" not in page.inner_text("body"), "gradio says it now: drop complaints.js"
