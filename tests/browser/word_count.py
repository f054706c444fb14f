"""The words that a visitor sees on a tab, without figures, tables, code, and what a model or a visitor wrote."""

from typing import Any

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
    const words = node.data.match(/[\\p{L}\\p{N}’'.-]*\\p{L}[\\p{L}\\p{N}’'.-]*/gu), box = node.parentElement;
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


def visible_words(page: Any) -> tuple[list[str], list[str]]:
    """Those above the fold, and those of the whole tab."""
    page.evaluate("scrollTo(0, 0)")
    above, whole = page.evaluate(COUNT)
    return above.split(), whole.split()
