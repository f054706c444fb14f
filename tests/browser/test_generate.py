"""A visitor generates, opens a choice, goes on with another token, compares temperatures and measures the cache."""

import re

from playwright.sync_api import expect


def open_tab(page) -> None:
    """The Generate tab, once the page knows its visitor."""
    page.wait_for_selector("#train-button:not([disabled])")
    page.get_by_role("tab", name="Generate").click()
    page.wait_for_selector("#generate-start")


def written(page) -> str:
    """The finished text on the screen."""
    page.wait_for_selector("#generate-start:not([disabled])")
    page.locator("#generate-text [data-place]").first.wait_for()
    return page.locator("#generate-text .written").inner_text()


def test_from_a_prompt_to_another_story(address, chromium_page):
    page = chromium_page
    page.goto(address)
    open_tab(page)
    page.locator("#generate-prompt textarea").fill("Tom lived on a hill.")
    page.locator("#generate-start").click()
    token = page.locator("#generate-text [data-place='0:40']")
    token.wait_for()
    text = page.locator("#generate-text .written").inner_text()
    assert text.startswith("Tom lived on a hill.") and len(text) > 100
    expect(page.locator("#generate-status")).to_contain_text("tokens/s")

    token.click()
    expect(page.locator("#choice-heading")).to_contain_text("Token 41")
    page.locator("#choice-chart .main-svg").first.wait_for()
    before = page.locator("#choice-table").inner_text()
    assert "▸" in before

    choice = page.get_by_label("Go on with another token")
    choice.click()
    options = page.get_by_role("option")
    current = choice.input_value()
    other = next(o for o in options.all() if o.inner_text().strip().lstrip("✓ ") != current)
    other.click()
    page.locator("#rewrite").click()
    expect(page.locator("#generate-text .written")).not_to_have_text(text)
    page.locator("#generate-text [data-place='0:60']").wait_for()
    again = page.locator("#generate-text .written").inner_text()
    assert again[:55] == text[:55] and again != text

    page.get_by_role("button", name="What precision costs").click()
    page.locator("#measure-precision").click()
    expect(page.locator("#precision-table tbody tr")).to_have_count(3)
    expect(page.locator("#precision-said")).to_contain_text("int8: 3.9 times smaller")

    page.get_by_role("button", name="What the KV cache saves").click()
    page.locator("#measure-cache").click()
    expect(page.locator("#cache-proof")).to_contain_text(re.compile("All \\d+ tokens are identical"))

    # an empty prompt is a sentence, and nothing is lost; what the model never saw is said
    page.locator("#generate-prompt textarea").fill("")
    page.locator("#generate-start").click()
    expect(page.get_by_text("The prompt is empty")).to_be_visible()
    assert page.locator("#generate-text .written").inner_text() == again
    page.locator("#generate-prompt textarea").fill("Zoe lived in a village. €")
    page.locator("#generate-start").click()
    expect(page.locator("#generate-status")).to_contain_text("never saw “€”")


def test_a_text_stands_under_its_writer_and_the_next_is_another(address, chromium_page):
    page = chromium_page
    page.goto(address)
    open_tab(page)
    page.get_by_role("spinbutton", name=re.compile("New tokens")).fill("40")
    page.keyboard.press("Tab")
    by = page.locator("#generate-text .written-by")
    texts = []
    for seed in (0, 1, 1):
        page.locator("#generate-start").click()
        expect(by).to_have_text(f"Written by Tiny stories: seed {seed}, temperature 0.8, top-p 0.95.")
        page.wait_for_selector("#generate-stop[disabled]")
        texts.append(written(page))
        page.locator("#same-again input").set_checked(seed == 1)
    assert texts[0] != texts[1] == texts[2]

    # arrows go from token to token, and the tab key meets the text once
    assert page.locator("#generate-text [data-place][tabindex='0']").count() == 1
    page.locator("#generate-text [data-place='0:0']").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#choice-heading")).to_contain_text("Token 11")

    page.get_by_role("button", name="What temperature does").click()
    page.locator("#compare-temperatures").click()
    expect(page.locator(".by-temperature > div")).to_have_count(4)

    # another model: whose text it is, is said, and what is offered is that model's own
    page.locator("#model input").click()
    page.get_by_role("option", name="The lighthouse").click()
    expect(by).to_contain_text("Written by Tiny stories")
    expect(by).to_contain_text("Another model is chosen by now")
    expect(page.locator("#generate-prompt textarea")).to_have_value("Mara ")
    expect(page.locator(".by-temperature > div")).to_have_count(0)
    expect(page.locator("#precision-table tbody tr")).to_have_count(0)
    page.locator("#generate-start").click()
    expect(by).to_have_text(re.compile("Written by The lighthouse: seed 1, temperature 0.8, top-p 0.95.$"))


def test_stop_is_there_from_the_first_moment(address, chromium_page):
    page = chromium_page
    page.goto(address)
    open_tab(page)
    page.get_by_role("spinbutton", name=re.compile("New tokens")).fill("4096")
    page.keyboard.press("Tab")
    said = page.locator("#generate-status")
    for wait in (0, 3000):
        page.locator("#generate-start").click()
        expect(page.locator("#generate-start")).to_be_disabled()
        page.wait_for_timeout(wait)
        page.locator("#generate-stop").click()
        expect(said).to_contain_text("Stopped")
        expect(page.locator("#generate-start")).to_be_enabled()
        expect(page.locator("#generate-stop")).to_be_disabled()
