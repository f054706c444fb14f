"""Few words: each tab keeps to its budget when the page opens."""

import pytest

from .measuring import calm
from .test_look import DRAWN, tab

BUDGET = {
    "Train tiny model": (120, 220),
    "Generate": (80, 120),
    "Inspect QKV": (120, 220),
    "Dense vs MoE": (120, 260),
}
"""Words above the fold of 1280 × 800, and on the whole tab with its accordions closed."""
FOLD = {"width": 1280, "height": 800}
COUNT = """() => {
  const left = "svg, canvas, table, pre, code, samp, textarea, select, script, style, .visually-hidden, .chart-plot, "
    + ".written, .sample, .chip, .alternative, .token";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  const seen = [[], []];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const words = node.data.match(/[\\p{L}\\p{N}’'.‑-]*\\p{L}[\\p{L}\\p{N}’'.‑-]*/gu), box = node.parentElement;
    if (!words || box.closest(left)) continue;
    if (!box.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    range.selectNodeContents(node);
    const { width, height, top } = range.getBoundingClientRect();
    if (width < 2 || height < 2) continue;
    seen[1].push(...words);
    if (top < innerHeight) seen[0].push(...words);
  }
  return seen.map((words) => words.join(" "));
}"""


@pytest.mark.timeout(600)
def test_every_tab_keeps_to_its_budget_of_words(address, chromium_page):
    page, counts = chromium_page, {}
    page.set_viewport_size(FOLD)
    page.goto(address)
    page.wait_for_selector("#curve [data-state=drawn]")
    for name in BUDGET:
        tab(page, name)
        if name == "Generate":  # where no chart is open
            page.wait_for_selector("#generate-panel .alternative")
        else:
            page.wait_for_function(DRAWN)
        calm(page)
        page.evaluate("scrollTo(0, 0)")
        above, whole = (words.split() for words in page.evaluate(COUNT))
        assert "Learn" in above, "the head of the page is seen"
        counts[name] = len(above), len(whole)
    print(counts)
    over = {name: count for name, count in counts.items() if any(n > most for n, most in zip(count, BUDGET[name]))}
    assert not over, f"cut words: {over}, allowed {BUDGET}"
