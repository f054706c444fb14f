"""The ladder's rungs answer a key with their sentence and their text, and the chips stay where they were."""

from __future__ import annotations

PLACES = "[...document.querySelectorAll('#rungs summary')].map(chip => [chip.offsetLeft, chip.offsetTop])"


def test_a_rung_opens_by_key_and_shows_what_its_guesser_writes(address, open_page):
    page = open_page()
    page.goto(address)
    chips = page.locator("#rungs summary")
    page.wait_for_selector("#rungs summary")
    before = page.evaluate(PLACES)
    chips.nth(0).focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    opened = page.locator("#rungs details[open]")
    assert opened.get_attribute("data-rung") == "unigram"
    assert "whatever stands before it" in opened.inner_text() and "0 of" in opened.inner_text()
    assert opened.locator(".sample").is_visible() and opened.locator("mark.fault").count() == 1
    assert page.evaluate(PLACES) == before
    chips.nth(3).click()
    assert opened.count() == 1 and opened.get_attribute("data-rung") == "5-gram"
    assert "consistent" in page.inner_text("#status") and page.locator("#skill").is_visible()
