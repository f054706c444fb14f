"""Inspect in Chromium: find a head, open a weight, switch the head off; the address; a phone; right-to-left text."""

from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from playwright.sync_api import expect

from .measuring import saves

PROMPT = "Mia had a red kite. Then Tom has the "
# the middle of a cell of the map in a chart, in pixels of the window
CELL = """([slot, row, column]) => {
  const plot = document.querySelector(`[data-slot=${slot}] .chart-plot`), box = plot.getBoundingClientRect();
  const at = plot._fullLayout, x = at.xaxis, y = at.yaxis;
  return [box.left + x._offset + x.d2p(column), box.top + y._offset + y.d2p(row)];
}"""
TAB = "document.querySelector('#tabs [role=tab][aria-selected=true][id^=tab-]').id"


def opened(page, address: str, **query: str):
    page.goto(f"{address}?{urlencode({'tab': 'inspect', **query})}")
    page.wait_for_selector("#inspect-panel [data-slot=tokens] button")
    return page


def drawn(page, slot: str) -> None:
    page.wait_for_selector(f"[data-slot={slot}] [data-state=drawn]")


def click_cell(page, slot: str, row: int, column: int) -> None:
    """Move to a cell, wait for plotly to notice, click."""
    page.locator(f"[data-slot={slot}]").scroll_into_view_if_needed()
    x, y = page.evaluate(CELL, [slot, row, column])
    page.mouse.move(x - 2, y - 2)
    page.mouse.move(x, y, steps=3)
    page.locator(f"[data-slot={slot}] .hoverlayer .hovertext").wait_for(state="attached")
    page.mouse.click(x, y)


def asked(page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query, keep_blank_values=True)


def test_find_a_head_open_a_weight_switch_it_off(address, chromium_page):
    page = opened(chromium_page, address)
    drawn(page, "grid")
    headline = page.locator("[data-slot=headline] h2")
    expect(headline).to_contain_text("“kite”")
    expect(page.locator("[data-slot=next]")).to_contain_text("k 99.98 %")

    # the arithmetic behind one weight; the colour bar ends where the map does
    drawn(page, "pattern")
    ends = [page.locator(f"[data-slot=pattern] {part}").bounding_box() for part in (".cbbg", ".heatmaplayer image")]
    bar, cells = (box["y"] + box["height"] for box in ends)
    assert abs(bar - cells) < 4
    click_cell(page, "pattern", 5, 4)
    paper = page.locator("[data-slot=receipt]")
    expect(paper).to_contain_text("“4 h”")
    paper.locator("summary").last.click()

    # as tables to keep
    with page.expect_download() as kept:
        paper.get_by_role("button", name="Save as CSV").click()
    assert kept.value.suggested_filename == "receipt-tiny-stories-step2400-layer3-head2.csv"
    with page.expect_download() as kept:
        saves(page.locator("[data-slot=grid]"), "csv")
    rows = Path(kept.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert len(rows) > 16 * 37 and rows[0].startswith("# Tiny stories")

    # without it something else is expected next; the edit stands beside the prompt and in the address
    page.get_by_role("button", name="Switch it off").click()
    expect(page.locator("[data-slot=next]")).to_contain_text("k 15 %, was 99.98 %")
    page.wait_for_url("**edits=**")
    page.reload()
    expect(page.locator("[data-slot=edits-in-force]")).to_contain_text("switched off")
    page.get_by_role("button", name="Restore", exact=True).last.click()
    expect(page.locator("[data-slot=next]")).to_have_text("Next: k 99.98 %")


# the smallest contrast between a letter of the lens and its cell, whose colour the scale gives
CONTRAST = """() => {
  const plot = document.querySelector('[data-slot=lens-map] .chart-plot'), stops = plot._fullData[0].colorscale;
  const behind = (z) => {
    const i = Math.max(stops.findIndex(([at]) => at >= z), 1), [[low, a], [high, b]] = [stops[i - 1], stops[i]];
    const [from, to] = [a, b].map((hex) => [1, 3, 5].map((n) => parseInt(hex.slice(n, n + 2), 16)));
    return from.map((start, n) => start + (z - low) / (high - low) * (to[n] - start));
  };
  const light = (color) => {
    const [r, g, b] = color.map((n) => (n /= 255) <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return Math.min(...[...plot.querySelectorAll('.heatmap-label')].map((each) => {
    const ink = light(getComputedStyle(each.querySelector('tspan')).fill.match(/[0-9]+/g).map(Number));
    const cell = light(behind(each.__data__.z));
    return (Math.max(ink, cell) + 0.05) / (Math.min(ink, cell) + 0.05);
  }));
}"""


def test_code_stays_in_its_card_and_the_letters_of_a_map_are_read_in_both_schemes(address, chromium_page):
    page = opened(chromium_page, address, model="stories", prompt=PROMPT, view="steps", step="predict")
    page.locator(".how summary", has_text="Formula and code").click()
    assert page.locator(".how .code").evaluate("code => code.scrollWidth <= code.clientWidth")
    page.click("details[data-fold=lens] > summary")
    drawn(page, "lens-map")
    plot = "document.querySelector('[data-slot=lens-map] .chart-plot')"
    for scheme, strongest in (("light", "#07505c"), ("dark", "#c5f3fa")):
        page.evaluate("scheme => document.body.classList.toggle('dark', scheme === 'dark')", scheme)
        page.wait_for_function(f"{plot}._fullData[0].colorscale[4][1] === '{strongest}'")
        assert page.evaluate(CONTRAST) > 4.5, scheme


def test_the_address_leads_back_to_what_is_shown(address, chromium_page):
    page = opened(chromium_page, address, model="stories", prompt=PROMPT, layer="1", head="2", cell="3,1", view="steps")
    page.wait_for_url("**view=steps**")
    assert asked(page)["layer"] == ["1"] and asked(page)["cell"] == ["3,1"]
    page.locator("#inspect-panel .views label", has_text="Heads").click()
    page.wait_for_url("**view=heads**")
    page.locator("[data-slot=tokens] button").nth(8).click()
    page.wait_for_url("**cell=8%2C**")
    page.click("#tab-generate-button")
    page.wait_for_url("**tab=generate**")
    page.go_back()
    page.wait_for_url("**tab=inspect**cell=8%2C**")
    page.wait_for_function(f"({TAB}) === 'tab-inspect-button'")
    page.go_back()
    page.wait_for_url("**view=steps**")
    expect(page.locator("#inspect-panel input[value=steps]")).to_be_checked()
    page.reload()
    page.wait_for_selector("[data-slot=tokens] button")
    assert page.evaluate(TAB) == "tab-inspect-button" and asked(page)["cell"] == ["3,1"]


def test_edits_belong_to_their_model_and_a_typed_prompt_goes_along_where_it_can_be_read(address, chromium_page):
    page = opened(chromium_page, address)
    page.get_by_role("button", name="Switch it off").click()
    expect(page.locator("[data-slot=edits-in-force]")).to_contain_text("switched off")
    field = page.locator("#inspect-panel textarea[name=prompt]")

    def choose(name: str) -> None:
        page.click("#model input")
        page.get_by_role("option", name=name).click()

    page.reload()  # the address does not make the model's own prompt one that was typed
    expect(page.locator("[data-slot=edits-in-force]")).to_contain_text("switched off")
    choose("Copying")
    expect(field).to_have_value("cage ca")
    expect(page.locator("[data-slot=edits-in-force]")).to_have_text("")
    field.fill("cage c")
    expect(page.locator("[data-slot=tokens] button")).to_have_count(6)
    choose("Tiny stories")
    expect(page.locator("[data-slot=edits-in-force]")).to_contain_text("switched off")
    expect(field).to_have_value("cage c")
    choose("Twenty sentences")  # which has no such words
    expect(field).not_to_have_value("cage c")
    choose("Tiny stories")
    expect(field).to_have_value("cage c")
    field.fill("")
    expect(page.locator("#inspect-panel [data-slot=problem]")).to_contain_text("is empty")
    expect(page.locator("#inspect-panel .views-body")).to_be_hidden()
    field.fill("Mia had")
    expect(page.locator("#inspect-panel .views-body")).to_be_visible()


def test_what_a_button_opens_comes_into_view_and_right_to_left_text_stays_in_order(address, chromium_page):
    page = opened(chromium_page, address)
    page.get_by_role("button", name="Why this weight?").click()
    expect(page.locator("[data-slot=receipt]")).to_contain_text("attends to")
    expect(page.locator("[data-slot=receipt]")).to_be_in_viewport(ratio=0.5)
    page.locator("[data-fold=compare] > summary").click()
    expect(page.locator("select[name=with_model]")).to_have_value("shipped-stories")
    field = page.locator("#inspect-panel textarea[name=prompt]")
    chips = page.locator("#inspect-panel [data-slot=ideas] .chip")
    expect(chips.first).to_have_attribute("aria-pressed", "true")
    field.fill("القطة نامت")
    expect(page.locator("[data-slot=notes]")).to_contain_text("never saw")
    expect(chips.first).to_have_attribute("aria-pressed", "false")
    assert field.evaluate("field => getComputedStyle(field).direction") == "rtl"
    assert page.locator("[data-slot=headline] h2 bdi").count() == 1
    chips.evaluate_all("chips => chips.forEach(chip => chip.textContent = 'كانت القطة نائمة قرب الباب')")
    places = chips.nth(1), chips.nth(0), page.locator("select[name=subject]")
    second, first, subject = (place.bounding_box()["x"] for place in places)
    assert second < first < subject, "the fields stay where they are"
    page.set_viewport_size({"width": 390, "height": 844})
    expect(chips.first).to_be_in_viewport(ratio=0.9)


def test_patch_from_another_prompt_read_the_changed_text_and_find_it_again_by_its_address(address, chromium_page):
    page = opened(chromium_page, address, model="induction", view="heads", part="head")
    page.click("details[data-fold=patch] > summary")
    drawn(page, "patch-map")
    other = page.locator("[data-fold=patch] textarea[name=other]")
    expect(other).not_to_have_value("")
    assert asked(page)["patch"] == ["true"] and asked(page)["other"] == [other.input_value()]
    texts = page.locator("[data-slot=patch-kept] samp")
    expect(texts).to_have_count(2)  # head 1.0, which copies, is patched before any click
    click_cell(page, "patch-map", 2, len(other.input_value()) - 1)
    page.wait_for_url("**kept=**")
    plain, patched = texts.all_text_contents()
    assert plain != patched
    page.reload()
    expect(texts).to_have_text([plain, patched])
    page.locator("#inspect-panel textarea[name=prompt]").fill("hedb hd")
    page.wait_for_url(lambda url: "kept=" not in url)
    expect(texts.first).not_to_have_text(plain)
    expect(other).not_to_have_value("")
