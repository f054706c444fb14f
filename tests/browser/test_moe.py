"""A visitor trains both, follows a word through the experts, and takes balance away."""

import re

from playwright.sync_api import expect

from .conftest import type_number

# which curves are drawn, and how many points the shortest of them has
CURVES = """() => {
  const drawn = document.querySelector('#moe-curve .chart-plot')?._fullData ?? [];
  return [[...new Set(drawn.map((trace) => trace.name))].sort().join(), Math.min(...drawn.map((t) => t.x.length))];
}"""
TEXT = "the cat sat on the mat and the dog sat on the cat. " * 60


def set_number(page, label: str, value: int) -> None:
    """Type into one of the settings."""
    type_number(page, page.locator("#moe-controls").get_by_label(re.compile(re.escape(label))).first, value)


def fold(page, name: str) -> None:
    page.locator(f"#moe-{name} > summary").click()


def test_train_both_follow_a_word_and_switch_an_expert_off(address, open_page):
    page = open_page()
    page.goto(f"{address}?tab=moe")
    said = page.locator("#moe-verdict")
    expect(said).to_contain_text(re.compile("recorded.*on fresh text", re.DOTALL))  # the shipped pair is there at first
    expect(said).to_contain_text(re.compile(r"\d\.\d{4} (lower|higher), ± \d\.\d{4}"))
    expect(page.locator(".facts .stat")).to_have_count(2)
    assert page.locator("#moe-train").bounding_box()["y"] < 800
    assert page.locator("#moe-panel .js-plotly-plot").count() == 2, "what is folded is not drawn"

    # the text of one tab is there on the other
    page.click("#tab-train-button")
    page.locator("#learn label").nth(1).click()
    page.locator("#text textarea").fill(TEXT)
    page.click("#tab-moe-button")
    page.locator("#moe-learn label").nth(1).click()
    expect(page.locator("#moe-text textarea")).to_have_value(TEXT)
    page.locator("#moe-learn label").first.click()

    # what cannot be is answered at once; then one button: both curves and a verdict
    page.locator("#moe-advanced > button").click()
    set_number(page, "number input for Experts per token (top-k)", 8)
    set_number(page, "number input for Experts", 4)
    expect(page.locator("#moe-outlook .notice-error")).to_contain_text("experts")
    set_number(page, "number input for Experts per token (top-k)", 2)
    expect(page.locator("#moe-sum")).to_contain_text("exactly equal")
    set_number(page, "number input for Seeds", 2)
    expect(page.locator("#moe-outlook")).to_contain_text("2 seeds")
    page.locator("#moe-advanced .settings", has_text="Both models and their training").locator("> button").click()
    for label, value in {"Context": 32, "Steps": 20, "Batch": 8, "Steps between evaluations": 5}.items():
        set_number(page, label, value)
    page.locator("#moe-train").click()
    expect(page.locator("#moe-stop")).to_be_visible()
    expect(page.locator("#moe-train")).to_be_hidden()
    expect(page.locator("#moe-stop")).to_have_count(0)
    expect(said).to_contain_text("2 seeds")
    expect(said).to_contain_text(re.compile(r"± \d\.\d{4}"))
    page.wait_for_function(f"({CURVES})().join() === 'Dense,Dense, seed no. 2,MoE,MoE, seed no. 2,5'")
    page.locator("#moe-panel .seg label", has_text="Difference").click()
    page.wait_for_function(f"({CURVES})()[0] === '95 % interval,each seed,mean'")

    # the model of the other tabs stays; follow a word through the mixture's experts
    assert page.locator("#model input").input_value() == "Tiny stories"
    fold(page, "routing")
    word = page.locator("#routing-text [data-token='4']")
    name = word.locator("b").inner_text()
    word.click()
    expect(page.locator("#routing-followed")).to_contain_text(f"Token 4 “{name}” through all layers")
    fold(page, "routing")
    page.wait_for_function("!location.search.includes('routing')")

    # a reload shows the same; "Pair" chooses another, and the other tabs' model is not seen beside it
    shown = said.inner_text()
    page.reload()
    expect(said).to_contain_text("2 seeds")
    assert said.inner_text() == shown
    expect(page.locator("#model input")).to_be_hidden()
    page.locator("#moe-panel select[name=pair]").select_option(label="Dialects: dense + MoE")
    expect(said).to_contain_text("recorded")

    # an expert is one button away from being off
    fold(page, "breaking")
    before = page.locator("#breaking-result").inner_text()
    page.locator(".expert-toggle[aria-pressed=false]").first.click()
    page.wait_for_function("was => document.querySelector('#breaking-result').innerText !== was", arg=before)
