"""What a page looks like, in numbers: writing that lies over other writing or is cut off, and the rules of axe-core."""

from pathlib import Path
from typing import Any

import axe_playwright_python
from playwright.sync_api import expect

# Every piece of writing of every figure in view, as the four corners of its letters: those that meet another's or leave
# the figure. A box is higher than its letters by about a third.
WRITING = """() => {
  const cross = (a, b) => a.some((p, i) => {
    const q = a[(i + 1) % 4], n = [q[1] - p[1], p[0] - q[0]], at = (c) => c[0] * n[0] + c[1] * n[1];
    return Math.max(...b.map(at)) <= Math.min(...a.map(at)) || Math.min(...b.map(at)) >= Math.max(...a.map(at));
  });
  const corners = (text) => {
    const box = text.getBBox(), m = text.getScreenCTM(), up = 0.2 * Math.min(box.height, 14), side = 0.5;
    return [[0, 0], [1, 0], [1, 1], [0, 1]].map(([x, y]) => {
      const px = box.x + side + x * (box.width - 2 * side), py = box.y + up + y * (box.height - 2 * up);
      return [m.a * px + m.c * py + m.e, m.b * px + m.d * py + m.f];
    });
  };
  const found = [];
  for (const plot of document.querySelectorAll(".chart-plot")) {
    const drawn = plot.querySelector(".main-svg");
    if (!plot.clientWidth || !drawn) continue;
    const name = plot.closest(".chart-box").dataset.name, edge = drawn.getBoundingClientRect();
    const shows = { opacityProperty: true, visibilityProperty: true };
    const seen = (text) => text.textContent.trim() && text.checkVisibility(shows);
    const all = [...plot.querySelectorAll(".main-svg text")].filter(seen);
    const texts = all.map((text) => [text.textContent, corners(text)]);
    texts.forEach(([one, a], i) => {
      const [xs, ys] = [0, 1].map((k) => a.map((p) => p[k]));
      if (Math.min(...xs) < edge.left - 2 || Math.max(...xs) > edge.right + 2 || Math.min(...ys) < edge.top - 2
        || Math.max(...ys) > edge.bottom + 2) found.push(`${name}: “${one}” is cut off`);
      for (const [other, b] of texts.slice(i + 1))
        if (!cross(a, b) && !cross(b, a)) found.push(`${name}: “${one}” lies over “${other}”`);
    });
  }
  return found;
}"""
# colours fade in less than a second; what follows scrolling never ends, nor what is folded away meanwhile
FADED = """Promise.race([
  Promise.allSettled(document.getAnimations().filter((change) => change.timeline === document.timeline)
    .map((change) => change.finished)),
  new Promise((then) => setTimeout(then, 2000))])"""
# a map may ask for more width than a phone has, see `narrow` in chart.js
DRAWN = """() => [...document.querySelectorAll('.chart-plot')]
  .filter((p) => p.checkVisibility() && p.clientWidth && p._fullLayout)
  .every((p) => Math.abs(p._fullLayout.width - ((p.clientWidth < 440 && p.layout.meta?.narrow?.width)
    || p.clientWidth)) < 2)"""


def figures(page: Any) -> list[str]:
    """What is wrong with the writing of the figures in view, once each is as wide as its place."""
    page.wait_for_function(DRAWN)
    return page.evaluate(WRITING)


def calm(page: Any) -> None:
    """Until nothing is being computed or written, and nothing fades any more."""
    page.wait_for_function("() => !document.querySelector('[aria-busy=true], [data-writing]')")
    page.evaluate(FADED)


def broken_rules(page: Any, *rules: str) -> list[str]:
    """What axe-core finds against these rules (those of WCAG 2.1 A and AA) in view, a line per element and rule."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate((Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = None
    while found is None:
        calm(page)
        found = page.evaluate(RULES, rules or ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa"))
    return [f"{rule}: {target} {why}" for rule, target, why in found]


# nothing, where a part was at work meanwhile, and so was dimmed
RULES = """async (runOnly) => {
  let busy = Boolean(document.querySelector("[aria-busy=true], [data-writing]"));
  const looks = new MutationObserver(() => (busy = true));
  looks.observe(document, { subtree: true, attributes: true, attributeFilter: ["aria-busy", "data-writing"] });
  const { violations } = await axe.run(document, { resultTypes: ["violations"], runOnly });
  looks.disconnect();
  if (busy) return null;
  return violations.flatMap(({ id, nodes }) => nodes.map((node) =>
    [id, node.target.join(" "), [...node.any, ...node.all, ...node.none][0]?.message ?? ""]));
}"""


def saves(chart, kind: str) -> None:
    """Save a chart: png, svg or csv."""
    chart.locator(".chart-menu > summary").click()
    chart.locator(f"[data-chart={kind}]").click()
    expect(chart.locator(".chart-menu")).not_to_have_attribute("open", "")
