"""A class in two browsers: a teacher makes one, a student joins with its code and trains, the board shows it."""

from urllib.parse import parse_qs, urlsplit

import pytest

from playground.service.classes import Classes
from playground.service.limits import CLASS
from playground.service.store import FILE, Store
from playground.ui.app import build_app
from tests.ui.raw import serving


@pytest.fixture
def house(tmp_path):
    """The product with a data folder of its own, and its address."""
    classes = Classes(Store(tmp_path / FILE))
    with serving(build_app(CLASS, classes=classes)) as (_, address):
        yield classes, address
    classes.store.close()


def test_a_teacher_makes_a_class_and_sees_what_a_student_trains(house, open_page):
    classes, address = house
    board = open_page()
    board.goto(address)
    board.wait_for_selector("#status:has-text('recorded')")
    board.click("#head-learn button")
    board.click(".class-button")
    board.fill("[data-field=title]", "<b>Tuesday</b>")
    board.select_option("[name=source]", "sentences")
    board.fill("[data-field=steps]", "20")
    board.click("#class-make")
    board.wait_for_selector(".class-head h2:has-text('<b>Tuesday</b>')")
    words = board.locator(".class-code span").all_inner_texts()
    shown = urlsplit(board.url)
    assert parse_qs(shown.query)["class"] == ["-".join(words)] and not shown.fragment  # a projector shows no secret
    board.wait_for_selector("#class-table:has-text('joined yet')")
    assert not board.locator("#train-button").is_visible()

    student = open_page(viewport={"width": 390, "height": 844})
    student.goto(address)
    student.wait_for_selector("#status:has-text('recorded')")
    student.click("#head-learn button")
    student.click(".class-button")
    student.fill("[data-field=code]", " ".join(words).upper())
    student.goto(f"{address}?class={'-'.join(words)}")  # or by the link that invites
    student.wait_for_selector("#class-panel .notice:has-text('Tuesday')")
    assert not student.locator("#class-making, [data-field=code]").filter(visible=True).count()
    student.fill("[data-field=name]", "Zoë & Ed")
    student.press("[data-field=name]", "Enter")
    student.wait_for_selector(".class-strip:has-text('Zoë & Ed')")
    student.wait_for_selector(".class-strip:has-text('20 steps, seed 1')")
    student.wait_for_function("document.querySelector('#example input')?.value === 'Twenty sentences'")
    student.click("#train-button")

    row = board.locator("#class-table tbody tr")
    row.filter(has_text="20 of 20").filter(has_text="Zoë & Ed").wait_for()
    board.wait_for_selector("#class-curves .chart-words:has-text('Validation loss')")
    board.wait_for_selector("#class-spread .chart-words:has-text('one run')")
    board.reload()
    row.filter(has_text="Zoë & Ed").wait_for()

    board.on("dialog", lambda dialog: dialog.accept())
    board.click("#class-end")
    board.wait_for_selector(".class-head:has-text('no one can join')")
    assert not board.locator(".class-code, #class-end, #copy-class").count()
    student.wait_for_selector(".class-strip:has-text('has ended')")
    board.click("#class-delete")
    board.wait_for_selector("#class-panel .notice:has-text('is deleted')")
    board.wait_for_selector("#train-button")
    assert "class" not in parse_qs(urlsplit(board.url).query) and "Zoë" not in board.content()
    assert not classes.store.rows("SELECT 1 FROM classes")
