"""A visitor finds a head that looks at the token before, checks a weight by hand, and sees what the head is worth."""

import math
import re
import threading
from pathlib import Path

from playwright.sync_api import expect

from playground.ui.app import OPENED
from playground.ui.tabs.inspect import learn

# the middle of a cell of the map in a chart, in pixels of the window
CELL = """([id, row, column]) => {
  const plot = document.querySelector(`#${id} .chart-plot`), box = plot.getBoundingClientRect(), at = plot._fullLayout;
  const x = at.xaxis, y = at.yaxis;
  return [box.left + x._offset + x.d2p(column), box.top + y._offset + y.d2p(row)];
}"""


def click_cell(page, chart: str, row: int, column: int) -> None:
    """Move to a cell, wait for plotly to notice, click."""
    page.locator(f"#{chart}").scroll_into_view_if_needed()
    x, y = page.evaluate(CELL, [chart, row, column])
    page.mouse.move(x - 2, y - 2)
    page.mouse.move(x, y, steps=3)
    page.locator(f"#{chart} .hoverlayer .hovertext").wait_for(state="attached")
    page.mouse.click(x, y)


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def test_find_a_head_check_a_weight_switch_it_off(address, chromium_page):
    page = chromium_page
    page.goto(address)
    page.get_by_role("tab", name="Inspect QKV").click()
    page.wait_for_selector("#inspect-heads-grid [data-state=drawn]")
    # on a busy machine the tab of before said so after this one, and what was typed here was not read
    assert page.evaluate(OPENED % "train") == "inspect"
    page.locator("#inspect-prompt textarea").fill("Mia sat on a hill. Tom sat by the sea.")
    words = page.locator("#inspect-heads-grid .chart-words")
    grid = "() => document.querySelector('#inspect-heads-grid .chart-plot')?._fullData?.[0].z.length"
    page.wait_for_function(f"({grid})() === 38")

    # the head with the highest score for the token before, from the map of all heads
    page.get_by_role("tab", name="What heads do").click()
    page.locator("#inspect-habit label", has_text="look at the token before").click()
    most = page.locator("#inspect-roles-chart .chart-words")
    expect(most).to_contain_text("most of all layer")
    said = most.inner_text()
    layer, head = map(int, re.search(r"most of all layer (\d+), head (\d+)", said).groups())
    click_cell(page, "inspect-roles-chart", layer, head)
    expect(page.locator("#inspect-role")).to_contain_text(f"Layer {layer}, head {head}")
    expect(page.locator("#inspect-role")).to_contain_text("looks at the token before")

    # its pattern, and the receipt of one of its cells
    page.get_by_role("tab", name="Step by step").click()
    page.locator("#inspect-steps label", has_text="softmax").click()
    expect(page.locator("#inspect-step")).to_contain_text("scores become shares")
    expect(words).to_contain_text(f"layer {layer}, head {head}")
    page.wait_for_function("document.querySelector('#inspect-step-chart .chart-plot')._fullData[0].z.length === 38")
    click_cell(page, "inspect-step-chart", 5, 4)
    paper = page.locator("#inspect-walk .block.receipt-paper")
    expect(paper).to_contain_text("“5 a” looks at “4 s”")

    # by hand: the products add up to the sum, and the sum leads to the weight that the picture shows
    header, *terms = [row.split("\t") for row in paper.locator(".receipt-terms table").inner_text().splitlines()]
    products = [number(row[header.index("q · k")]) for row in terms if len(row) == len(header)]
    sums = {row.split("\t")[0]: row.split("\t")[1] for row in paper.locator(".receipt-sums").inner_text().splitlines()}
    values = [number(v) for v in sums.values() if re.search(r"\d", v)]
    assert len(products) == 32 and abs(sum(products) - values[0]) < 1e-6
    assert abs(values[0] / math.sqrt(32) - values[1]) < 1e-6
    largest = number(re.search(r"exp\(score − (−?[\d.]+)", " ".join(sums))[1])
    total = number(re.search(r"÷ ([\d.]+), the row's sum", " ".join(sums))[1])
    weight = math.exp(values[1] - largest) / total
    drawn = page.evaluate("document.querySelector('#inspect-step-chart .chart-plot')._fullData[0].z[5][4]")
    assert abs(weight - values[3]) < 1e-6 and abs(weight - drawn) < 1e-4
    expect(paper).to_contain_text(re.compile(r"Largest difference from the model's own forward: \d\.\de-0[5-9]"))

    # the same by drop-downs, and as a table to keep
    with page.expect_download() as kept:
        paper.get_by_role("button", name="Save as CSV").click()
    assert kept.value.suggested_filename == f"receipt-tiny-stories-shipped-step2400-layer{layer}-head{head}.csv"
    with page.expect_download() as kept:
        page.locator("#inspect-step-chart [data-chart=csv]").click()
    rows = Path(kept.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert len(rows) == 40 and abs(float(rows[7].split(",")[5]) - drawn) < 1e-6

    # without it, something else is expected next, and unseen text costs more
    page.get_by_role("tab", name="Change it").click()
    page.locator("#edit-apply").click()
    expect(page.locator("#edit-list")).to_contain_text(f"head {head}")
    page.locator("#edit-measure").click()
    expect(page.locator("#edit-cost")).to_contain_text("nats")


def test_what_takes_long_is_dimmed_and_says_so_until_it_is_there(address, chromium_page, monkeypatch):
    go, take = threading.Event(), learn.optimizer_step
    monkeypatch.setattr(learn, "optimizer_step", lambda *given: go.wait(60) and take(*given))
    page = chromium_page
    page.goto(address)
    page.get_by_role("tab", name="Inspect QKV").click()
    page.wait_for_selector("#inspect-heads-grid [data-state=drawn]")
    views = page.locator("#inspect-views")
    page.locator("#inspect-prompt textarea").fill("Tom ran to the sea.")  # which nobody has asked about before
    expect(page.locator("#inspect-step-card")).to_contain_text("ids (19,)")
    expect(views).not_to_have_attribute("aria-busy", "true")
    page.get_by_role("tab", name="How it learns").click()
    expect(views).to_have_attribute("aria-busy", "true")
    expect(views.locator("> .tabitem").first).to_have_css("opacity", "0.5")
    assert "computing" in views.evaluate("box => getComputedStyle(box, '::after').content")
    # meanwhile the visitor goes elsewhere, and is not held up
    page.get_by_role("tab", name="Heads side by side").click()
    page.wait_for_selector("#inspect-head-chart [data-state=drawn]")
    expect(views).not_to_have_attribute("aria-busy", "true")
    go.set()
    page.get_by_role("tab", name="How it learns").click()
    page.wait_for_selector("#learn-norms [data-state=drawn]")
    expect(views).not_to_have_attribute("aria-busy", "true")
    # nothing of another prompt stays
    page.locator("#inspect-prompt textarea").fill("M")
    expect(page.locator("#inspect-notice")).to_contain_text("nothing after it to learn from")
    expect(page.locator("#learn-norms [data-state=drawn]")).to_have_count(0)
    expect(page.locator("#learn-cards")).to_have_text("")
