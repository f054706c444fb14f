"""A visitor bets on the next letters by keys and by chips, asks what a word means, and is led to where it is seen."""

import re

from playwright.sync_api import expect


def test_ten_bets_and_a_word_explained(address, chromium_page):
    page = chromium_page
    page.goto(address)
    page.wait_for_selector("#train-button:not([disabled])")
    page.get_by_role("tab", name="Generate").click()
    page.locator("#game > button").click()
    text, state = page.locator(".bet-text"), page.locator(".bet-state")
    expect(state).to_contain_text("Bet 1 of 40")

    for bet in range(10):
        before = text.inner_text()
        if bet == 5:
            page.get_by_label("100 chips").check()
        if bet < 5:  # a key and Enter are a whole bet
            page.get_by_label("Or type it").press("e")
            expect(page.locator(".bet-token[aria-pressed=true]")).to_have_text("e")
            page.keyboard.press("Enter")
        else:
            page.locator(".bet-token", has_text=re.compile("^a$")).click()
            page.get_by_label("Or type it").fill("␣")
            page.keyboard.press("Enter")
            expect(state).to_contain_text("20 of 99 chips placed")
            page.locator(".bet-button").click()
        expect(text).not_to_have_text(before, use_inner_text=True)
    expect(page.locator("#game-summary")).to_contain_text(re.compile(r"after 10 bets: you [\d.]+, the model [\d.]+"))
    expect(page.locator("#game-result")).to_contain_text("came")
    page.locator("#game-chart .main-svg").first.wait_for()

    page.wait_for_function("CSS.highlights.get('glossary')?.size > 3")
    page.get_by_label("Or type it").press("?")  # typed, it is a character of the text
    expect(page.locator("#glossary")).to_have_count(0)
    page.locator(".bet-button").press("?")
    page.get_by_label("Find a term").fill("logit lens")
    page.locator(".glossary-terms").last.get_by_role("button", name="logit lens").press("Enter")
    expect(page.locator("#glossary")).to_contain_text("as if it were the last one")
    page.locator("#glossary a").click()
    expect(page.locator("#inspect-minds-button")).to_have_attribute("aria-selected", "true")

    page.wait_for_function("[...CSS.highlights.get('glossary')].some((term) => term.toString() === 'residual stream')")
    place = page.evaluate("""() => {
      const term = [...CSS.highlights.get("glossary")].find((each) => each.toString() === "residual stream");
      term.startContainer.parentElement.scrollIntoView({ block: "center", behavior: "instant" });
      const { x, y, width, height } = term.getClientRects()[0];
      return [x + width / 2, y + height / 2];
    }""")
    page.mouse.click(*place)
    expect(page.locator("#glossary h3")).to_contain_text("residual stream")
    page.keyboard.press("Escape")
    expect(page.locator("#glossary")).to_be_hidden()
