"""One look, measured: nothing lies over anything, words can be read, keys reach everything, what is saved is quoted."""

import pytest
from playwright.sync_api import expect

from .measuring import FADED, broken_rules, calm, figures

pytestmark = pytest.mark.timeout(600)  # minutes where eight others are at work on two processors

VIEWS = ("Step by step", "Training")
DRAWN = "() => [...document.querySelectorAll('.chart-box')].some((b) => b.clientWidth && b.dataset.state === 'drawn')"


def settle(page) -> None:
    """Until something is drawn and nothing is being computed."""
    page.wait_for_function(DRAWN)
    calm(page)


# what of the page moved without anybody's doing, as browsers measure it (cumulative layout shift)
SHIFTS = """new PerformanceObserver((list) => {
  const own = list.getEntries().filter((shift) => !shift.hadRecentInput);
  window.moved = own.reduce((sum, { value }) => sum + value, window.moved ?? 0);
}).observe({ type: "layout-shift", buffered: true })"""


def unfold(page) -> None:
    """Open every folded part in view."""
    while (
        folded := page.locator("button.label-wrap:not(.open):visible, details.fold:not([open]) > summary:visible")
    ).count():
        folded.first.click()


def tab(page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()


class Look:
    """What is wrong with what is in view: numbers printed over others at these widths, and the rules of axe-core."""

    def __init__(self, page):
        self.page, self.found = page, []

    def __call__(self, widths=(390, 1280), *, rules: bool = True, dark: bool = False) -> None:
        settle(self.page)
        for width in widths:
            self.page.set_viewport_size({"width": width, "height": 900})
            self.found += [f"{width} px, {problem}" for problem in figures(self.page)]
        self.page.set_viewport_size({"width": 1280, "height": 900})
        self.found += broken_rules(self.page) if rules else []
        if dark:  # whether words can be read there, too
            self.page.evaluate("document.body.classList.add('dark')")
            self.page.evaluate(FADED)
            problems = figures(self.page) + broken_rules(self.page, "color-contrast")
            self.found += [f"in the dark, {problem}" for problem in problems]
            self.page.evaluate("document.body.classList.remove('dark')")


def test_no_number_is_printed_over_another_words_can_be_read_and_things_have_names(address, chromium_page):
    page = chromium_page
    look = Look(page)
    page.goto(address)
    page.wait_for_selector("#curve [data-state=drawn]")
    unfold(page)
    look(dark=True)
    tab(page, "Generate")
    page.locator(".generate-start").click()
    expect(page.locator("#generate-panel [data-place]").first).to_be_visible()
    unfold(page)
    look.found += broken_rules(page)
    tab(page, "Inspect QKV")
    page.wait_for_selector("[data-slot=grid] [data-state=drawn]")
    unfold(page)
    page.wait_for_selector("[data-slot=worth] [data-state=drawn]")
    look(dark=True)
    for view in VIEWS:  # a phone is where things meet first
        page.locator("#inspect-panel .views .seg label", has_text=view).click()
        look((390,), rules=view == "Training")
    tab(page, "Dense vs MoE")
    page.wait_for_selector("#moe-curve [data-state=drawn]")
    for name in ("routing", "loads", "experts", "breaking", "figures", "texts"):
        page.locator(f"#moe-{name} > summary").click()
    page.wait_for_selector("#moe-panel [data-slot=favourites] table")
    page.wait_for_selector("#both-texts .sample")
    look(dark=True)
    assert not look.found, "\n".join(dict.fromkeys(look.found))


@pytest.mark.parametrize("name", ["inspect", "moe"])
def test_nothing_moves_while_a_tab_opens(address, chromium_page, name):
    chromium_page.add_init_script(SHIFTS)
    chromium_page.goto(f"{address}?tab={name}")
    settle(chromium_page)
    assert chromium_page.evaluate("window.moved ?? 0") < 0.1


def test_the_measure_sees_what_lies_over_something(address, chromium_page):
    """The test above could not fail if nothing were measured."""
    page = chromium_page
    page.goto(address)
    page.wait_for_selector("#curve [data-state=drawn]")
    settle(page)
    page.add_style_tag(content="#train-results p { color: #bbb !important; }")  # which a look at the run does not undo
    page.evaluate("""() => {
      const [a, b] = document.querySelectorAll("#curve .ytick text");
      b.setAttribute("transform", a.getAttribute("transform"));
    }""")
    assert any("lies over" in problem for problem in figures(page))
    assert any(problem.startswith("color-contrast") for problem in broken_rules(page))


def test_a_group_is_one_stop_of_the_tab_key_with_arrows_inside(address, chromium_page):
    page = chromium_page
    page.goto(address)
    page.wait_for_selector("#curve [data-state=drawn]")
    page.locator("#model input").focus()
    expect(page.locator("[role=option]:visible")).not_to_have_count(0)
    stops = []
    for _ in range(12):
        page.keyboard.press("Tab")
        stops.append(page.evaluate("document.activeElement.closest('fieldset')?.id ?? document.activeElement.id"))
    assert stops.count("learn") == 1 and stops.count("size") == 1, stops
    expect(page.locator("[role=option]:visible")).to_have_count(0)  # the list that was left

    page.locator("#size input:checked").focus()
    chosen = "document.querySelector('#size input:checked').value"
    before = page.evaluate(chosen)
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"{chosen} !== '{before}'")
    outline = "getComputedStyle(document.activeElement.closest('label')).outlineWidth"
    page.wait_for_function(f"{outline} === '2px'")  # where the keys are is seen, once the label's colours have changed

    tab(page, "Dense vs MoE")
    page.locator("#moe-routing > summary").click()
    tokens = page.locator("#routing-text [data-token]")
    expect(tokens.first).to_be_visible()
    assert page.locator("#routing-text [data-token][tabindex='0']").count() == 1 < tokens.count()
    page.locator("#routing-text [data-token][tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#routing-text .followed")).to_have_attribute("data-token", "1")

    tab(page, "Train tiny model")
    page.locator("#learn label", has_text="My own text").click()
    page.locator("#own-kind label", has_text="Hub").click()
    chosen = page.get_by_role("radio", name="dataset")
    look = """(radio) => { const { backgroundColor, backgroundImage } = getComputedStyle(radio);
      return [backgroundColor, backgroundImage]; }"""
    expect(chosen).to_be_checked()
    before = chosen.evaluate(look)
    chosen.hover()
    page.wait_for_function("document.querySelector('input[value=dataset]').matches(':hover')")
    assert chosen.evaluate(look) == before, "a white dot is seen on a colour only"
