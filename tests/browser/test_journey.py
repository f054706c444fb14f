"""The main journey, as a new visitor takes it: open, paste a text, train, reload in the middle, talk to the model."""

from __future__ import annotations

import re

from playwright.sync_api import expect

TEXT = "The keeper lit the lamp each night. The lamp was old and the night was long. " * 60


POINTS = """name => document.querySelector('#curve .chart-plot')?._fullData
  ?.find(trace => trace.name.startsWith(name))?.y?.length ?? 0"""


def points(page, trace: str) -> int:
    """How many points of a curve the loss chart shows."""
    return page.evaluate(POINTS, trace)


def wait_for_points(page, trace: str, at_least: int) -> None:
    """Wait until the loss chart has that many."""
    page.wait_for_function(f"([name, least]) => ({POINTS})(name) >= least", arg=[trace, at_least])


def set_number(page, label: str, value: int) -> None:
    """Type into one of the numbers under Advanced."""
    box = page.get_by_label(label, exact=True).first
    box.fill(str(value))
    box.press("Tab")


LOOKED_AT = """() => document.querySelector('#inspect-step-card')?.innerText.includes(
  `ids (${document.querySelector('#inspect-prompt textarea')?.value.length},)`)"""


def test_from_a_pasted_text_to_a_text_in_its_style(address, open_page):
    page = open_page()
    page.goto(address)
    # something real is there before anything was done
    page.wait_for_selector("#status .badge:has-text('recorded')")
    wait_for_points(page, "validation", 5)
    assert page.locator("#stop-button").is_disabled() and "wakes up" in page.inner_text("#why")

    page.click("#source label:has-text('My own text')")
    page.fill("#text textarea", "too short")
    page.wait_for_function("document.querySelector('#prompt textarea').value === 'too short'")  # its beginning
    page.fill("#text textarea", TEXT)
    page.wait_for_function("document.querySelector('#prompt textarea').value === 'The keeper lit the'")
    page.fill("#prompt textarea", "The keeper ")  # at once
    # it was pasted, not typed, and sets the size: a click on one meanwhile would ask again, and set the steps once more
    page.wait_for_selector("#outlook:has-text(' 36 steps'):has-text('chosen for about')")
    assert page.locator("#size label:has-text('Tiny') input").is_checked()
    assert page.input_value("#prompt textarea") == "The keeper "
    page.click("#advanced > button")
    page.click("#advanced .settings:has-text('Learning') > button")
    set_number(page, "Steps", 3000)
    set_number(page, "Steps between evaluations", 20)
    set_number(page, "Patience", 0)
    set_number(page, "Steps between samples", 40)
    page.wait_for_function("document.querySelector('#outlook').innerText.includes('3,000 steps')")
    assert "36 → 3,000" in page.inner_text("#advanced")
    page.click("#train-button")
    page.wait_for_selector("#status .badge:has-text('live')")
    wait_for_points(page, "validation", 3)
    page.wait_for_selector("#samples .sample-row >> nth=1")
    page.wait_for_selector("#status .notice-warning:has-text('one that repeats itself less')")
    assert page.locator("#train-button").is_disabled()

    # the run belongs to the server: a reloaded page finds it again, a second tab shows it too
    page.reload()
    page.wait_for_selector("#status .badge:has-text('live')")
    seen = points(page, "validation")
    wait_for_points(page, "validation", seen + 1)
    # and so are its settings, which may come after its points
    expect(page.locator("#prompt textarea")).to_have_value("The keeper ")
    expect(page.locator("#text textarea")).to_have_value(TEXT)
    expect(page.locator("#size label.selected")).to_have_text("Tiny")
    expect(page.locator("#outlook")).to_contain_text("3,000 steps")
    second = page.context.new_page()
    second.goto(address)
    second.wait_for_selector("#status .badge:has-text('live')")
    second.close()

    page.get_by_role("tab", name="Inspect QKV").click()
    page.wait_for_function(LOOKED_AT)
    page.get_by_role("tab", name="Train tiny model").click()
    page.click("#stop-button")
    page.wait_for_selector("#status .notice:has-text('Stopped after')")
    page.wait_for_function("document.querySelector('#curve .chart-plot').layout.shapes?.length >= 3")  # the ladder
    assert re.search(r"Passed the \S*gram", page.inner_text("#status"))
    page.wait_for_function("document.querySelector('#model input').value.startsWith('Run 1')")
    assert page.locator("#resume-button").is_enabled()

    page.click("#talk")
    page.fill("#generate-panel textarea[name=prompt]", "The keeper ")
    page.click("#generate-panel .generate-start")
    page.wait_for_function("document.querySelector('#generate-panel .written').innerText.startsWith('The keeper ')")
    page.wait_for_selector("#generate-panel .generate-continue")
    words = set(re.findall(r"[a-z]+", page.inner_text("#generate-panel .written").lower()))
    assert words & {"lamp", "lit", "night", "keeper", "old", "long", "each"}, words

    # what another model made of another prompt has left the tab that showed it
    page.get_by_role("tab", name="Inspect QKV").click()
    page.wait_for_function(f"({LOOKED_AT})() && document.querySelector('#inspect-prompt textarea').value.length != 37")
    assert page.input_value("#model input").startswith("Run 1")


def test_two_visitors_do_not_see_each_others_runs(address, open_page):
    anna, bert = open_page(), open_page()
    anna.goto(address)
    anna.wait_for_selector("#status .badge:has-text('recorded')")
    anna.wait_for_function("localStorage.getItem('transformer-playground-visitor')")  # the server has answered once
    anna.wait_for_timeout(1000)
    anna.click("#source label:has-text('Twenty sentences')")
    anna.click("#size label:has-text('Tiny')")
    anna.wait_for_function("document.querySelector('#outlook').innerText.includes('205,696')")
    anna.click("#advanced > button")
    anna.click("#advanced .settings:has-text('Learning') > button")
    set_number(anna, "Steps", 3000)  # longer than the second page takes to open, however busy the machine is
    anna.wait_for_function("document.querySelector('#outlook').innerText.includes('3,000 steps')")
    anna.click("#train-button")
    anna.wait_for_selector("#status .badge:has-text('live')")
    bert.goto(address)
    bert.wait_for_selector("#status .badge:has-text('recorded')")
    assert bert.locator("#stop-button").is_disabled() and bert.locator("#train-button").is_enabled()
    # whoever looks at something else keeps it when the run ends, and is asked
    elsewhere = anna.context.new_page()
    elsewhere.goto(address)
    elsewhere.wait_for_selector("#status .badge:has-text('live')")
    elsewhere.get_by_role("tab", name="Generate").click()
    anna.click("#stop-button")
    anna.wait_for_selector("#status .notice:has-text('Stopped after')")
    asked = elsewhere.locator(".complaint[role=status]", has_text="Run 1 · Twenty sentences is trained.")
    asked.wait_for()
    assert elsewhere.input_value("#model input").startswith("Tiny stories")
    asked.get_by_role("button", name="Choose it on all tabs").click()
    elsewhere.wait_for_function("document.querySelector('#model input').value.startsWith('Run 1')")
    assert asked.count() == 0 and anna.locator(".complaint").count() == 0
    elsewhere.close()
    bert.click("#model input")
    assert "Run 1" not in bert.inner_text("body")


def test_bad_input_is_answered_with_a_sentence_and_the_page_goes_on(address, open_page):
    page = open_page(viewport={"width": 390, "height": 844})
    page.goto(address)
    page.wait_for_selector("#status .badge:has-text('recorded')")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.click("#source label:has-text('My own text')")
    page.refusals = True
    page.click("#train-button")
    words = page.locator(".complaint[role=alert]")
    words.wait_for()
    assert words.inner_text().startswith("There is no text yet: paste a page or more")
    words.get_by_role("button", name="Close").click()
    assert words.count() == 0
    page.fill("#text textarea", "much too short")
    page.click("#train-button")
    page.wait_for_selector("#status .notice-error:has-text('has only 14 tokens')")
    assert page.locator("#train-button").is_enabled()
    # what was there before still is, under the complaint; what was typed outlives a reload
    page.wait_for_selector("#status .badge:has-text('recorded')")
    page.wait_for_function("document.querySelector('#curve .chart-plot')?._fullData?.some(t => t.y?.length > 5)")
    page.reload()
    page.wait_for_function("document.querySelector('#text textarea')?.value === 'much too short'")
