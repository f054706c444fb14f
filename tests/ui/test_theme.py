"""The style sheet does not make the browser style the whole page for every letter that a figure draws."""

import re

from playground.ui import theme

HAS = re.compile(r":has\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")


def with_something_inside(css: str) -> list[str]:
    """Selectors in which `:has(…)` decides about what lies within, or after, the element that it asks about."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.S)
    rules = [" ".join(rule.split()) for rule in re.findall(r"([^{};]+)\{", css)]
    return [rule for rule in rules for one in HAS.sub("§", rule).split(",") if re.search(r"§\S* .", one.strip())]


def test_has_never_decides_about_an_elements_inside():
    assert with_something_inside("#tab:has(.unread) #views > * { x: y; }\n.a:has(b) { x: y; }") == [
        "#tab:has(.unread) #views > *"
    ]
    assert not with_something_inside(theme.css())
