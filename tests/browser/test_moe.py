"""A visitor trains both, follows a word through the experts, asks what they learned, and takes balance away."""

import re

from playwright.sync_api import expect

# which curves the comparison draws, and how many points the shortest of them has
CURVES = """() => {
  const drawn = document.querySelector('#moe-curve .chart-plot')?._fullData ?? [];
  return [[...new Set(drawn.map((trace) => trace.name))].sort().join(), Math.min(...drawn.map((t) => t.x.length))];
}"""
ALONG = "() => document.querySelector('#moe-curve .chart-plot')._fullLayout.xaxis.title.text"
LAST_X = "() => Math.max(...document.querySelector('#moe-curve .chart-plot')._fullData.map((t) => t.x.at(-1)))"


def set_number(page, label: str, value: int) -> None:
    """Type into one of the settings."""
    box = page.locator("#moe-controls").get_by_label(re.compile(re.escape(label))).first
    box.fill(str(value))
    box.press("Tab")


def choose(page, picker: str, name: str) -> None:
    """Choose a model from one of the two lists."""
    page.locator(f"#{picker} input").click()
    page.get_by_role("option", name=name).click()


def test_train_both_follow_a_word_ask_the_experts_and_take_balance_away(address, open_page):
    page = open_page()
    page.goto(address)
    page.get_by_role("tab", name="Dense vs MoE").click()

    # the shipped pair is there before anything is trained
    expect(page.locator("#moe-status .badge")).to_have_text("recorded")
    expect(page.locator("#moe-verdict")).to_contain_text("nats")
    page.wait_for_function(f"({CURVES})()[1] > 5")
    expect(page.locator("#moe-table tr", has_text="decoding, tokens/s")).to_contain_text(re.compile(r"\d×"))

    # what cannot be is answered at once, where the sum stands
    set_number(page, "number input for Experts per token (top-k)", 8)
    set_number(page, "number input for Experts", 4)
    expect(page.locator("#moe-sum .notice-error")).to_contain_text("experts")
    set_number(page, "number input for Experts per token (top-k)", 2)
    expect(page.locator("#moe-sum")).to_contain_text("exactly equal")

    # one button: both curves and a verdict
    set_number(page, "number input for Seeds", 2)
    page.locator("#moe-advanced > button").click()
    page.locator("#moe-advanced .settings", has_text="Both models and their training").locator("> button").click()
    for label, value in {"Context": 32, "Steps": 20, "Batch": 8, "Steps between evaluations": 5}.items():
        set_number(page, label, value)
    page.locator("#moe-train").click()
    expect(page.locator("#moe-status .badge")).to_have_text("live")
    verdict = page.locator("#moe-verdict")
    expect(verdict).to_contain_text("over 2 seeds")
    expect(verdict).to_contain_text(re.compile(r"\d\.\d{4} ± \d\.\d{4} nats (lower|higher)"))
    assert page.evaluate(CURVES) == ["Dense,Dense, seed no. 2,MoE,MoE, seed no. 2", 5]
    page.locator("#moe-x label", has_text="tokens").click()
    page.wait_for_function(f"({ALONG})().startsWith('tokens')")
    assert page.evaluate(LAST_X) % (20 * 32) == 0 and page.evaluate(LAST_X) > 20

    # the two models are its own now: follow a word through the experts of all layers
    expect(page.locator("#moe-table")).to_contain_text("mean of 2 seeds")
    page.wait_for_function("document.querySelector('#moe-mixture input').value.startsWith('Comparison 1')")
    expect(page.locator("#routing-text .expert-layers i")).to_have_count(2)  # layers

    # somebody else is led to the same comparison, its maker to the two models themselves
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.locator("#copy-moe").click()
    link = page.wait_for_function("window.copied").json_value()
    other = open_page()
    other.goto(link)
    said = other.locator("#moe-linked")
    expect(said).to_contain_text(
        "seeds 1 to 2. It differs from what the form opens with in Experts 8 → 4; Context 64 → 32; Steps 80 → 20"
    )
    means = [row.inner_text() for row in page.locator("#moe-table tr", has_text="validation loss").locator("td").all()]
    for mean in means[-3:-1]:
        expect(said).to_contain_text(mean)
    expect(other.locator("#moe-sum")).to_contain_text("exactly equal")
    own = page.context.new_page()
    own.goto(link)
    own.wait_for_function("document.querySelector('#moe-mixture input')?.value.startsWith('Comparison 1')")
    own.close()
    word = page.locator("#routing-text [data-token='4']")
    name = word.locator("b").inner_text()
    word.click()
    expect(page.locator("#routing-followed")).to_contain_text(f"Token 4 “{name}” through all layers")
    visits = page.locator("#routing-table tbody tr")
    expect(visits).to_have_count(2)
    assert all(len(re.findall(r"\d\.\d\d", row.locator("td").nth(1).inner_text())) == 2 for row in visits.all())

    # the experts of the shipped mixture tell about the speaker, and no more than random routers would
    choose(page, "moe-dense", "Dialects, dense")
    choose(page, "moe-mixture", "Dialects, 8 experts")
    page.locator("#moe-experts > button").click()
    said = page.locator("#experts-bits .chart-words")
    expect(page.locator("#moe-status .badge")).to_have_text("recorded")
    beyond = r"beyond the token itself: ([\d.]+) bits in layer \d, and ([\d.]+) for [a-z]"
    expect(said).to_contain_text(re.compile(beyond))
    expect(said).to_contain_text(re.compile("unclear|Nothing shows"))
    bits, untaught = map(float, re.search(beyond, said.inner_text()).groups())
    assert 0 < bits < 2 * untaught

    # balance: the constant's gradient is rounding, and what happens without any
    page.locator("#moe-breaking > button").click()
    rows = page.locator("#breaking-pulls tbody tr")
    expect(rows).to_have_count(3)
    norms = {row.split("\t")[0]: [float(x) for x in row.split("\t")[2:]] for row in rows.all_inner_texts()}
    assert max(norms["the constant"]) < 1e-6 < min(norms["Switch loss"])
    page.locator("#moe-breaking").get_by_label(re.compile("number input for Steps")).fill("20")
    page.locator("#moe-breaking").get_by_label(re.compile("number input for Steps")).press("Tab")
    # by keyboard: what stands above may still be drawn anew, and the button moves away from under the mouse
    page.locator("#unbalanced-start").press("Enter")
    expect(page.locator("#unbalanced-entropy .chart-words")).to_contain_text(
        re.compile(r"After 20 steps.*no loss \(weight 0\): \d\.\d\d of 3\.00 bits.*the constant: \d")
    )
