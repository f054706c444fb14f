"""The main journey of a new visitor: open, paste, train, reload, talk; out by a link and back in; a page at rest."""

import re

from playwright.sync_api import expect

from playground.service.runs import Source
from playground.ui.forms import run as form
from playground.ui.tabs.train.linked import card_of

from ..ui.runs import ended, known
from .conftest import DESK, type_number
from .measuring import calm

TEXT = "The keeper lit the lamp each night. The lamp was old and the night was long. " * 60
POINTS = """name => document.querySelector('#curve .chart-plot')?._fullData
  ?.find(trace => trace.name.startsWith(name))?.y?.length ?? 0"""

FAR = """() => {
  const fetched = window.fetch;
  window.fetch = async (...asked) => {
    await new Promise((done) => setTimeout(done, 700));
    return fetched(...asked);
  };
}"""
"""Every answer takes so many milliseconds more."""


def wait_for_points(page, trace: str, at_least: int) -> None:
    """Wait until the loss chart has that many."""
    page.wait_for_function(f"([name, least]) => ({POINTS})(name) >= least", arg=[trace, at_least])


def opened(page, address: str) -> None:
    """Until something real is there, before anything was done."""
    page.goto(address)
    page.wait_for_selector("#status:has-text('recorded')")
    page.wait_for_function("localStorage.getItem('transformer-playground-visitor')")


def set_number(page, label: str, value: int) -> None:
    """Type into one of the numbers under Advanced."""
    type_number(page, page.get_by_label(label, exact=True).first, value)


def learning(page) -> None:
    """Open what sets how it learns."""
    page.click("#advanced > button")
    page.click("#advanced .settings:has-text('Learning') > button")


def fold(page, name: str):
    """Open a fold of the run."""
    page.click(f"details[data-fold={name}] > summary")
    return page.locator(f"details[data-fold={name}]")


def test_from_a_pasted_text_to_a_text_in_its_style(address, open_page):
    page = open_page()
    opened(page, address)
    wait_for_points(page, "validation", 5)
    box = page.locator("#train-button").bounding_box()
    assert box["y"] + box["height"] < 800 and page.locator("#stop-button").count() == 0

    page.click("#learn label:has-text('own text')")
    page.click("#advanced > button")
    page.fill("#text textarea", TEXT)
    page.fill("#prompt textarea", "The keeper ")  # at once
    expect(page.locator("#size label.selected")).to_have_text("Tiny")  # it was pasted, not typed, and sets the size
    assert page.input_value("#prompt textarea") == "The keeper "
    page.click("#advanced .settings:has-text('Learning') > button")
    for label, value in {
        "Steps": 3000,
        "Steps between evaluations": 20,
        "Patience": 0,
        "Steps between samples": 40,
    }.items():
        set_number(page, label, value)
    expect(page.locator("#advanced")).to_contain_text("281 → 3,000")
    expect(page.locator("#reset")).to_contain_text("change")
    top = "place => Math.round(document.querySelector(place).getBoundingClientRect().top + scrollY)"
    before, place = page.evaluate(top, "#curve"), page.evaluate(top, "#train-button")
    page.click("#train-button")
    page.wait_for_selector("#status:has-text('live')")
    assert page.evaluate(top, "#stop-button") == place, "Stop takes Train's place"
    wait_for_points(page, "validation", 3)
    expect(page.locator("#train-bar")).to_contain_text("of 3,000")  # the points may be those of what was shown before
    assert page.locator("#train-button").is_hidden()
    fold(page, "samples").locator(".sample-row >> nth=1").wait_for()
    page.wait_for_selector("#status:has-text('of the validation text also occurs in the training text')")
    assert page.evaluate(top, "#curve") == before, "what comes pushes nothing down"
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("#stop-button")).to_be_in_viewport()
    page.set_viewport_size(DESK)

    # the run belongs to the server: a reloaded page finds it again
    page.reload()
    page.wait_for_selector("#status:has-text('live')")
    wait_for_points(page, "validation", page.evaluate(POINTS, "validation") + 1)
    # and so are its settings, which may come after its points
    expect(page.locator("#text textarea")).to_have_value(TEXT)
    expect(page.locator("#size label.selected")).to_have_text("Tiny")

    page.click("#stop-button")
    page.wait_for_function("document.querySelector('#model input')?.value === 'Run 1 · The keeper lit the'")
    page.wait_for_selector("#resume-button")
    expect(page.locator("#status")).to_contain_text(re.compile(r"by heart.*stopped at step \d+ of 3,000", re.DOTALL))
    assert page.locator("#train-button").is_visible() and page.locator("#stop-button").count() == 0

    page.click("#talk")
    page.fill("#generate-panel textarea[name=prompt]", "The keeper ")
    page.click("#generate-panel .generate-start")
    page.wait_for_function("document.querySelector('#generate-panel .written')?.innerText.startsWith('The keeper ')")
    page.wait_for_selector("#generate-panel .generate-continue")
    words = set(re.findall(r"[a-z]+", page.inner_text("#generate-panel .written").lower()))
    assert words & {"lamp", "lit", "night", "keeper", "old", "long", "each"}, words


def test_two_visitors_do_not_see_each_others_runs(address, open_page):
    anna, bert = open_page(), open_page()
    opened(anna, address)
    anna.click("#example input")
    anna.click("[role=option]:has-text('Twenty sentences')")
    anna.click("#size label:has-text('Tiny')")
    expect(anna.locator("#outlook")).to_contain_text("205,696")
    learning(anna)
    set_number(anna, "Steps", 3000)  # longer than the second page takes to open, however busy the machine is
    expect(anna.locator("#reset")).to_contain_text("change")
    anna.click("#train-button")
    anna.wait_for_selector("#status:has-text('live')")
    opened(bert, address)
    assert bert.locator("#stop-button").count() == 0 and bert.locator("#train-button").is_visible()
    # whoever looks at something else keeps it when the run ends, until Train is opened
    elsewhere = anna.context.new_page()
    elsewhere.goto(address)
    elsewhere.wait_for_selector("#status:has-text('live')")
    elsewhere.get_by_role("tab", name="Generate").click()
    anna.click("#stop-button")
    anna.wait_for_function("document.querySelector('#model input')?.value.startsWith('Run 1')")
    elsewhere.locator(".complaint[role=status]", has_text="“Run 1 · Twenty sentences” has finished").wait_for()
    assert elsewhere.input_value("#model input").startswith("Tiny stories") and not anna.locator(".complaint").count()
    elsewhere.get_by_role("tab", name="Train tiny model").click()
    elsewhere.wait_for_function("document.querySelector('#model input')?.value.startsWith('Run 1')")
    elsewhere.close()
    bert.click("#model input")
    assert "Run 1" not in bert.inner_text("body")


def test_what_is_typed_or_chosen_while_an_answer_is_under_way_stays(address, open_page):
    """At 400 ms of latency, numbers that were typed within a second of a paste were lost."""
    page = open_page()
    opened(page, address)
    page.click("#learn label:has-text('own text')")
    learning(page)

    page.evaluate(FAR)
    page.fill("#text textarea", TEXT)
    page.get_by_label("Steps", exact=True).first.fill("77")
    page.fill("#prompt textarea", "Mine")
    expect(page.locator("#size label.selected")).to_have_text("Tiny")
    page.wait_for_timeout(1500)
    assert page.get_by_label("Steps", exact=True).first.input_value() == "77"
    assert page.input_value("#prompt textarea") == "Mine"
    page.evaluate("playground.news.choose('shipped-prose')")
    page.wait_for_timeout(100)
    page.evaluate("playground.news.choose('shipped-sentences')")  # as when a run's model is there before it is over
    page.wait_for_function("document.querySelector('#model input')?.value.startsWith('Twenty sentences')")


def test_bad_input_is_answered_under_its_field_until_a_file_is_dropped_there(address, open_page):
    page = open_page(viewport={"width": 390, "height": 844})
    opened(page, address)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = page.locator("#train-button").bounding_box()
    assert box["y"] + box["height"] < 844, "Train is seen without scrolling"
    page.click("#learn label:has-text('own text')")
    page.click("#train-button")
    problem = page.locator("#train-problem .notice-error")
    expect(problem).to_contain_text("no text")
    page.fill("#text textarea", "much too short")
    expect(problem).to_contain_text("only 14")
    page.click("#train-button")
    expect(problem).to_contain_text("only 14")
    page.evaluate(
        """text => {
      const carrier = new DataTransfer();
      carrier.items.add(new File([text], "keeper.txt", { type: "text/plain" }));
      const event = new DragEvent("drop", { dataTransfer: carrier, bubbles: true, cancelable: true });
      document.querySelector("#text textarea").dispatchEvent(event);
    }""",
        TEXT,
    )
    expect(page.locator("#contents")).to_contain_text(f"{len(TEXT):,} characters")
    expect(problem).to_have_count(0)
    # what was there before still is
    assert "recorded" in page.inner_text("#status") and page.locator(".run-card .notice-error:visible").count() == 0
    page.wait_for_function("document.querySelector('#curve .chart-plot')?._fullData?.some(t => t.y?.length > 5)")


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
