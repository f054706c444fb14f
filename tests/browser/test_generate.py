"""A visitor generates, opens a choice, goes on with another token, compares temperatures and measures the cache."""

import re

from playwright.sync_api import expect

from playground.ui.app import build_app


def test_from_a_prompt_to_another_story(serve, chromium_page):
    page = chromium_page
    page.goto(serve(build_app()))
    page.get_by_role("tab", name="Generate").click()
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

    page.get_by_text("What temperature does").click()
    page.locator("#compare-temperatures").click()
    expect(page.locator(".by-temperature > div")).to_have_count(4)

    page.get_by_text("What the KV cache saves").click()
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
