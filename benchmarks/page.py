"""The page: start to first answer, press to first point, training and comparing beside an open page.

Needs a Chromium. Everything is measured from outside, on `python app.py` in a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from .serving import CHROMIUM, ROOT, served

VERDICT = """over => {
  const said = document.querySelector("#moe-verdict")?.innerText ?? "";
  return said.includes("±") && !said.includes("recorded") && !(over && document.querySelector("#moe-stop"));
}"""
"""Whether the pairs that are trained here have a verdict; or, if `over`, their last one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--steps", type=int, default=300, help="of the run that page and shell both make")
    parser.add_argument("--rounds", type=int, default=3)


def run(options: argparse.Namespace) -> None:
    """Measure and print the table."""
    print("| what | figure |\n|---|---|")
    with served() as (address, seconds, _):
        print(f"| start of app.py → first answer | {seconds:.1f} s |")
        firsts, ratios = [], []
        for _ in range(options.rounds):
            shell = shell_rate(options.steps)
            first, rate = page_rate(address, options.steps)
            firsts.append(first)
            ratios.append(rate / shell)
        if firsts:
            print(f"| press Train → first point drawn | {statistics.median(firsts):.2f} s |")
            spread = ", ".join(f"{r:.2f}" for r in ratios)
            print(f"| tokens/s with the page open against the shell | {statistics.median(ratios):.2f}× ({spread}) |")
        pairs = [comparison_seconds(address) for _ in range(options.rounds)]
        if pairs:
            first, last = (statistics.median(seconds) for seconds in zip(*pairs))
            spread = ", ".join(f"{seconds:.0f}" for _, seconds in pairs)
            print(f"| Train both → first verdict; on three pairs | {first:.0f} s; {last:.0f} s ({spread}) |")


@contextlib.contextmanager
def opened(address: str) -> Iterator:
    """The page in a browser of its own, which may be slow."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(CHROMIUM))
        page = browser.new_page()
        page.set_default_timeout(180_000)
        page.goto(address)
        yield page
        browser.close()


def shell_rate(steps: int) -> float:
    """Tokens per second of the default run in the shell, evaluations not counted."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "playground", "train", "--language", "stories", "--preset", "small", "--json"]
        command += ["--out", f"{folder}/m", "--steps", str(steps)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return _rate(json.loads(line) for line in done.stdout.splitlines())


def _rate(events: Iterator[dict]) -> float:
    rates = [e["tokens_per_second"] for e in events if e["event"] == "stepped"]
    return statistics.median(rates[20:])


def page_rate(address: str, steps: int) -> tuple[float, float]:
    """(seconds from Train to the first drawn point, tokens per second) of the same run with the page open."""
    with opened(address) as page:
        page.wait_for_selector("#train-button")
        page.wait_for_function("document.querySelector('#curve .chart-plot')?._fullData?.length")
        page.wait_for_timeout(5000)  # the page is open, and no longer opening
        page.click("#advanced > button")
        page.click("#advanced .settings:has-text('Learning') > button")
        box = page.get_by_label("Steps", exact=True).first
        box.fill(str(steps))
        box.press("Tab")
        page.wait_for_timeout(1000)
        began = time.perf_counter()
        page.click("#train-button")
        page.wait_for_selector("#status:has-text('live')")
        page.click("#status summary:has-text('Details')")
        page.wait_for_function(
            "document.querySelector('#curve .chart-plot')?._fullData?.some(t => t.y?.length && t.x[0] <= 5)"
        )
        first, rates = time.perf_counter() - began, []
        while page.locator("#status:has-text('live')").count():
            found = re.search(r"([\d,]+)\s*tokens per second", page.inner_text("#status"))
            if found:
                rates.append(float(found.group(1).replace(",", "")))
            page.wait_for_timeout(2000)  # asking more often would slow down what is measured
    return first, statistics.median(rates[2:] or rates or [0.0])


def comparison_seconds(address: str) -> tuple[float, float]:
    """(seconds from "Train both" to a verdict, to the one on all seeds), with the settings the tab opens with."""
    with opened(address) as page:
        page.get_by_role("tab", name="Dense vs MoE").click()
        page.wait_for_selector("#moe-verdict:has-text('recorded')")
        page.wait_for_timeout(3000)
        began = time.perf_counter()
        page.click("#moe-train")
        page.wait_for_function(VERDICT, arg=False)
        first = time.perf_counter() - began
        page.wait_for_function(VERDICT, arg=True)
        last = time.perf_counter() - began
    return first, last
