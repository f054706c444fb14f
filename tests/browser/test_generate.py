"""A visitor has a text written, opens a choice in it, goes on otherwise, stops, changes the model, and plays."""

import re

import pytest
from playwright.sync_api import expect

from playground.engine import writers_with


@pytest.fixture
def page(address, chromium_page):
    chromium_page.emulate_media(reduced_motion="reduce")
    chromium_page.goto(f"{address}?tab=generate")
    expect(chromium_page.locator("[data-slot=choice] h2")).to_be_visible()
    return chromium_page


def written(page) -> str:
    return page.locator(".written").inner_text()


def generate(page) -> str:
    """Press Generate and wait until the text is there."""
    page.locator(".generate-start").click()
    expect(page.locator(".generate-start")).to_have_text("Generate")
    expect(page.locator(".written .caret")).to_have_count(0)
    return written(page)


def length(page, tokens: int) -> None:
    page.locator("input[name=new_tokens]").fill(str(tokens))
    page.keyboard.press("Tab")


def test_write_open_a_choice_and_go_on_with_another_token(page):
    expect(page.locator(".written-state")).to_contain_text("recorded")
    assert page.locator(".written .given").evaluate("given => getComputedStyle(given).display") == "inline"
    recorded = written(page)
    page.locator("textarea[name=prompt]").fill("Tom lived on a hill.")
    text = generate(page)
    assert text.startswith("Tom lived on a hill.") and text != recorded
    expect(page.locator(".written-state")).to_contain_text("200 letters · Continue")
    expect(page.locator(".written-by")).to_contain_text("temperature 0.8, top‑p")

    page.locator(".written [data-place='0:40']").click()
    letter = page.locator(".written [data-place='0:40']").inner_text()
    heading = page.locator("[data-slot=choice] h2")
    expect(heading).to_contain_text(f"“{letter.strip() or '␣'}” was sampled" if letter != "⏎" else "was sampled")
    page.locator(".scores summary").click()
    assert page.locator(".scores tbody tr").count() >= 12

    # another token there: what stood before it stays
    page.locator(".alternative:not(.chosen)").first.click()
    expect(heading).to_contain_text("You chose")
    expect(page.locator(".written-state")).to_contain_text("241 letters")
    again = written(page)
    assert again[:55] == text[:55] and again != text
    page.locator(".generate-continue").click()
    expect(page.locator(".written-state")).to_contain_text("441 letters")
    assert written(page).startswith(again)

    # a reload still has it
    page.reload()
    expect(page.locator(".written-state")).to_contain_text("441 letters")

    # an empty prompt is a sentence, and nothing is lost; what the model never saw is said
    page.locator("textarea[name=prompt]").fill("")
    before = generate(page)
    expect(page.locator(".written-state")).to_contain_text("is empty")
    assert before.startswith(again)
    page.locator("textarea[name=prompt]").fill("Zoe lived in a village. €")
    generate(page)
    expect(page.locator(".written-said")).to_contain_text("never saw “€”")


def test_the_next_text_is_another_unless_the_seed_is_kept_and_a_seed_being_typed_stays(page):
    length(page, 40)
    page.locator("[data-fold=advanced] > summary").click()
    seed = page.locator("input[name=seed]")
    texts = [generate(page)]
    expect(seed).to_have_value("1")
    texts.append(generate(page))
    page.locator("input[name=same_again]").check()
    texts.append(generate(page))
    assert texts[0] != texts[1] == texts[2]
    expect(seed).to_have_value("2")
    page.locator("input[name=same_again]").uncheck()
    length(page, 4000)
    page.locator(".generate-start").click()
    seed.press_sequentially("77", delay=150)
    page.wait_for_timeout(300)
    assert seed.input_value().endswith("77") and page.locator(".generate-start").inner_text() == "Stop"
    page.locator(".generate-start").click()


def test_stop_is_deaf_to_a_double_click_and_keeps_what_is_written(page, served):
    shared, _ = served
    length(page, 4000)
    page.locator(".generate-start").dblclick()
    expect(page.locator(".written-state")).to_contain_text("of 4,000")
    expect(page.locator(".generate-start")).to_have_text("Stop")
    page.wait_for_timeout(700)
    page.locator(".generate-start").click()
    expect(page.locator(".generate-start")).to_have_text("Generate")
    expect(page.locator(".written-state")).to_contain_text("letters · Continue")
    expect(page.locator(".written [data-place='0:5']")).to_be_visible()
    page.wait_for_timeout(500)
    writers = len(shared.shared("generate.writing")), writers_with(shared.registry.get("shipped-stories", None).model)
    assert writers == (0, 0), "the server writes on for nobody"


def test_another_model_brings_its_text_and_its_prompts_but_a_typed_prompt_stays(page):
    first = generate(page)
    page.locator("#model input").click()
    page.get_by_role("option", name="The lighthouse").click()
    expect(page.locator("textarea[name=prompt]")).to_have_value("Mara ")
    expect(page.locator(".written-by")).to_contain_text("seed 0")
    expect(page.locator(".written-state")).to_contain_text("recorded")
    page.locator("textarea[name=prompt]").fill("The sea ")
    generate(page)
    expect(page.locator(".written-by")).to_contain_text("seed 1")
    page.locator("#model input").click()
    page.get_by_role("option", name="Tiny stories").click()
    expect(page.locator(".written-by")).to_contain_text("Tiny stories")
    assert written(page) == first and page.locator("textarea[name=prompt]").input_value() == "The sea "


def test_arrows_go_from_token_to_token_and_experiments_are_measured_where_they_stand(page):
    assert page.locator(".written [data-place][tabindex='0']").count() == 1
    page.locator(".written [data-place='0:0']").focus()
    page.keyboard.press("Shift+ArrowRight")
    expect(page.locator(".written .framed")).to_have_text(["t", "o", "y"])  # a selection cuts no word
    page.locator(".written [data-place='0:0']").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    expect(page.locator(".written [data-place='0:10']")).to_have_class("open")
    page.locator("[data-fold=experiments] > summary").click()
    page.locator(".compare-temperatures").click()
    expect(page.locator(".by-temperature > div")).to_have_count(4)
    page.locator(".measure-precision").click()
    expect(page.locator("[data-slot=bits-table] tbody tr")).to_have_count(3)
    expect(page.locator("[data-slot=bits-said]")).to_contain_text("int8: 3.9")


def test_ten_bets_and_a_word_explained(page):
    page.locator("[data-fold=game] > summary").click()
    text, state = page.locator(".bet-text"), page.locator(".bet-state")
    for bet in range(10):
        expect(state).to_contain_text(f"Round {bet + 1} of 10")
        before = text.inner_text()
        if bet % 2:
            page.locator(".bet-tokens button[tabindex='0']").press("Enter")
        else:
            page.get_by_label("I'm sure").check(force=True)
            page.locator(".bet-token", has_text=re.compile("^a$")).click()
        expect(text).not_to_have_text(before, use_inner_text=True)
    expect(page.locator("[data-slot=game-summary] .game-words")).to_contain_text("bigram")
    expect(page.locator("[data-slot=game-result]")).to_contain_text("came")
    expect(page.locator(".bet-desk")).to_be_hidden()
    page.locator("[data-fold=game] details > summary").first.click()
    page.locator("[data-slot=game-chart] .main-svg").first.wait_for()
    over = text.inner_text()
    page.get_by_role("button", name="Another text").click()
    expect(state).to_contain_text("Round 1 of 10")
    expect(text).not_to_have_text(over, use_inner_text=True)

    page.wait_for_function("CSS.highlights.get('glossary')?.size > 3")
    page.click("#head-learn button")
    page.click(".glossary-button")
    page.locator(".glossary-terms").get_by_role("button", name="logit lens").press("Enter")
    expect(page.locator("#glossary")).to_contain_text("last one")
    page.locator("#glossary a").click()
    expect(page.locator("#inspect-panel input[name=view][value=steps]")).to_be_checked()
    expect(page.locator("#inspect-panel .views")).to_be_visible()


def test_a_phone_shows_the_button_and_the_text_without_scrolling_and_scrolls_to_what_comes(address, phone_page):
    page = phone_page
    page.goto(f"{address}?tab=generate")
    expect(page.locator("[data-slot=choice] h2")).to_be_visible()
    assert page.locator(".generate-start").bounding_box()["y"] < 300
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("#model input").click()
    page.get_by_role("option", name="Dialects, dense").click(trial=True)  # the tabs are below the list
    page.locator(".written [data-place='0:3']").click()
    expect(page.locator(".alternatives")).to_be_in_viewport(ratio=0.9)
    page.route("**/view/generate", lambda route: '"later":true' in route.request.post_data or route.continue_())
    page.locator(".why-button.link").click()
    expect(page.locator("[data-slot=why-title]")).to_be_in_viewport()  # before its answer
    page.locator("#tab-train-button").click()
    page.locator("#train-button").click()
    expect(page.locator("#stop-button")).to_be_in_viewport()
    expect(page.locator("#train-button")).to_be_hidden()
    page.wait_for_function("() => scrollY > 0 && window.was === (window.was = scrollY)", polling=500)  # at rest
    assert page.evaluate("document.querySelector('#curve .chart-plot').layout.dragmode") is False, "a finger scrolls"
    assert 0 <= page.locator("#train-panel h2").first.bounding_box()["y"] < 40
    page.locator("#stop-button").click()


def test_ask_why_it_wrote_some_words_by_keys_a_tap_or_dragging(address, chromium_page):
    page = chromium_page
    page.goto(f"{address}?tab=generate&model=sentences")
    expect(page.locator(".written-by")).to_contain_text("Twenty sentences")
    page.locator(".written [data-place='0:0']").focus()
    page.keyboard.press("Shift+ArrowRight")
    expect(page.locator(".written .framed")).to_have_count(2)
    page.locator(".why-button:visible").click()
    expect(page.locator("[data-slot=why-answer] h3")).to_be_visible()
    expect(page.locator(".written .framed")).to_have_count(2)
    expect(page.locator(".written .open:not(:focus-visible)")).to_have_css("outline-style", "none")
    expect(page.get_by_text("Tinted: less likely")).to_be_hidden()
    expect(page.locator(".why-card")).to_have_css("position", "sticky")  # beside a long text
    expect(page.locator("label.why-passage input:checked")).to_have_count(1)
    expect(page.locator("label.why-passage mark").first).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_text("Tinted: less likely")).to_be_visible()
    expect(page.locator(".written[data-asked], .written .copied, .written .framed")).to_have_count(0)
    page.locator(".written [data-place='0:1']").dblclick()
    expect(page.locator(".selected-words")).to_contain_text(re.compile(r"“with”\s*The model gave it [\d.]+ %"))
    page.locator(".written [data-place='0:1']").click()  # a tap stands for the word around it
    page.locator(".why-button.link").click()
    expect(page.locator("[data-slot=why-title]")).to_have_text("Why “with”?")
    expect(page.locator("label.why-passage").first).to_be_visible()  # nothing moves any more
    first, last = (page.locator(f".written [data-place='0:{at}']").bounding_box() for at in (1, 3))
    page.mouse.move(first["x"] + 2, first["y"] + first["height"] / 2)
    page.mouse.down()
    page.mouse.move(last["x"] + last["width"] / 2, last["y"] + last["height"] / 2, steps=8)
    page.mouse.up()
    expect(page.locator(".written .framed")).to_have_count(3)
    expect(page.locator(".selected-words h2")).to_be_visible()  # what is beside it is of these words
    expect(page.locator(".why-card")).to_be_hidden()
    page.locator(".selected-words .why-button").click()
    expect(page.locator(".written .framed")).to_have_count(3)
