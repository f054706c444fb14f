"""Few words: each tab keeps to its budget when the page opens."""

import pytest

from .measuring import calm
from .test_look import DRAWN, tab
from .word_count import BUDGET, FOLD, visible_words


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
        above, whole = visible_words(page)
        assert {"Model", "Learn"} <= set(above), "the head of the page is seen"
        counts[name] = len(above), len(whole)
    print(counts)
    over = {name: count for name, count in counts.items() if any(n > most for n, most in zip(count, BUDGET[name]))}
    assert not over, f"cut words: {over}, allowed {BUDGET}"
