"""Out of the page and back in: a run's link is opened and repeated; a model is downloaded and brought again."""

from playground.service.runs import Source
from playground.ui.forms import run as form
from playground.ui.tabs.train.linked import card_of

from ..ui.runs import ended, known


def test_a_link_is_repeated_and_a_model_goes_out_and_comes_back(served, open_page, tmp_path):
    house, address = served
    page = open_page(permissions=["clipboard-read", "clipboard-write"], accept_downloads=True)
    values = form.size_values("tiny", "sentences") | {"steps": 20, "eval_every": 5, "sample_every": 0, "seed": 11}
    spec = form.run_spec(values | {"source": "sentences", "prompt": "the cat"}, Source("sentences"), house.limits)
    job = ended(house.board.start(known("somebody"), spec))  # a quick run that somebody else has made here
    letters = card_of(job.view(), job.spec).to_letters()
    page.goto(f"{address}?run={letters}")
    page.wait_for_selector("#linked .notice:has-text('20 steps, seed 11')")
    page.click("#train-button")
    page.wait_for_selector(".run-card .notice-good:has-text('4 decimals')")
    page.wait_for_function("document.querySelector('#model input')?.value.startsWith('Run 1')")
    page.click(".run-card .menu summary")
    assert "the recipe" in page.inner_text(".run-card .menu")
    page.click("#copy-run")
    page.wait_for_selector("#copy-run:has-text('Link copied')")
    assert f"run={letters}" in page.evaluate("navigator.clipboard.readText()")

    page.click("#take > summary")
    with page.expect_download() as download:
        page.click("#take-model")
    download.value.save_as(tmp_path / "mine.zip")
    with page.expect_request("**/gradio_api/upload*") as sent:
        page.set_input_files("#take-upload", tmp_path / "mine.zip")
    whose = page.evaluate("playground.known.visitor")
    assert whose and sent.value.headers["x-playground-visitor"] == whose, "it is counted as this visitor's"
    page.wait_for_selector("[data-slot=brought] .notice-good:has-text('205,696 parameters')")
    page.wait_for_function("document.querySelector('#model input')?.value.endsWith('(uploaded)')")
    page.wait_for_selector("#status:has-text('20 steps · recorded')")
