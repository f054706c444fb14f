"""Step by step on a desk and on a phone: all of a step on one screen, a bar that stays, arrows, nothing that jumps."""

import json
from urllib.parse import parse_qsl, urlencode, urlsplit

from playwright.sync_api import expect

from playground.inspection.edits import SwitchOff, to_dict
from playground.links import View
from playground.ui.tabs.inspect.pictures import HEIGHT

from .measuring import figures

BOX = """id => {
  const { top, bottom, left, right } = document.getElementById(id).getBoundingClientRect();
  return { top, bottom, left, right };
}"""
IN_SIGHT = """() => {
  const chosen = document.querySelector("#inspect-steps input:checked").closest("label");
  const { left, right } = chosen.getBoundingClientRect();
  return left >= 0 && right <= 390;
}"""


def opened(page, address: str, query: str = "tab=inspect"):
    page.goto(f"{address}?{query}")
    page.wait_for_selector("#inspect-step-chart [data-state=drawn]")
    page.wait_for_selector("#inspect-heads-grid [data-state=drawn]")


def step_number(page) -> int:
    return int(page.locator(".step-number").inner_text().split()[1])


def test_a_step_fits_one_screen_and_next_stays_where_it_was(address, open_page):
    page = open_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
    opened(page, address)
    page.locator("#inspect-step-card").evaluate("card => card.scrollIntoView()")
    count = int(page.locator(".step-number").inner_text().split()[-1])
    where = page.evaluate(BOX, "inspect-next")
    titles = []
    for number in range(1, count + 1):
        expect(page.locator(".step-number")).to_have_text(f"Step {number} of {count}")
        page.wait_for_function(
            "height => document.querySelector('#inspect-step-chart .chart-plot').clientHeight === height", arg=HEIGHT
        )
        card = page.evaluate(BOX, "inspect-step-card")
        assert card["top"] >= -1 and card["bottom"] <= 800, (number, card)
        assert page.evaluate(BOX, "inspect-next") == where, number
        words = page.locator("#inspect-how").inner_text()
        assert words.startswith("Why") and "\nLook" in words and "# drawn: " in words
        titles.append(page.locator("#inspect-step h3").inner_text())
        if number < count:
            page.locator("#inspect-next").click() if number % 2 else page.keyboard.press("ArrowRight")
    assert len(set(titles)) == count
    expect(page.locator("#inspect-next")).to_be_disabled()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".step-number")).to_have_text(f"Step {count - 1} of {count}")
    # a field keeps its arrows
    page.locator("#inspect-prompt textarea").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(500)
    assert step_number(page) == count - 1


def test_on_a_phone_the_bar_stays_and_the_chosen_step_is_in_sight(address, phone_page):
    page = phone_page
    opened(page, address)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator("#inspect-how").evaluate("box => box.scrollIntoView()")
    count = int(page.locator(".step-number").inner_text().split()[-1])
    found = figures(page)
    for before in range(1, count):
        where = page.evaluate(BOX, "inspect-next")
        assert 0 <= where["top"] < 60 and where["right"] <= 390
        page.locator("#inspect-next").tap()
        page.wait_for_function(
            "n => document.querySelector('.step-number').textContent.startsWith(`Step ${n} `)", arg=before + 1
        )
        page.wait_for_selector("#inspect-step-chart [data-state=drawn]")
        found += [f"step {before + 1}, {problem}" for problem in figures(page)]
    assert not found, "\n".join(found)
    assert 0 <= page.evaluate(BOX, "inspect-next")["top"] < 60
    page.wait_for_function(IN_SIGHT)


def test_a_link_carries_place_step_and_changes_and_an_empty_prompt_leaves_nothing_to_press(address, open_page):
    page = open_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
    edit = json.dumps(to_dict(SwitchOff(3, "head", 2)), sort_keys=True)
    asked = {"tab": "inspect", "model": "stories", "prompt": "Mia had a red kite. Then Tom has the "}
    place = {"layer": 1, "head": 2, "cell": "36,15"}  # not the head that the view would open on
    opened(page, address, urlencode({**asked, **place, "step": "softmax", "edits": f"[{edit}]"}))
    expect(page.locator("#inspect-step h3")).to_have_text("Softmax: scores become shares")
    page.get_by_role("tab", name="Change it").click()
    expect(page.locator("#edit-list")).to_contain_text("head 2 of layer 3 switched off")
    expect(page.locator("#edit-bars .chart-words")).to_contain_text("“k” goes from 100.0 % to 15.0 %")
    # and what is copied now says the same
    page.evaluate("() => { navigator.clipboard.writeText = async (text) => { window.copied = text; } }")
    page.locator("#copy-inspect").click()
    copied = dict(parse_qsl(urlsplit(page.evaluate("window.copied")).query, keep_blank_values=True))
    assert (copied["step"], copied["view"]) == ("softmax", "edit")
    assert (copied["layer"], copied["head"], copied["cell"]) == ("1", "2", "36,15")
    assert View.from_query(copied, ("inspect",)).edits == (edit,)
    page.locator("#inspect-prompt textarea").fill("")
    expect(page.locator("#inspect-notice")).to_contain_text("The prompt is empty")
    for name in ("edit-apply", "edit-bars", "inspect-query"):
        expect(page.locator(f"#{name}")).to_be_hidden()
    page.locator("#inspect-prompt textarea").fill("Mia had")
    expect(page.locator("#edit-apply")).to_be_visible()
