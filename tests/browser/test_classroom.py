"""A class in two browsers: a teacher makes one, a student joins with its code and trains, the board shows it."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from playground.service.classes import Classes
from playground.service.limits import CLASS
from playground.service.store import FILE, Store
from playground.ui.app import build_app, launch


@pytest.fixture
def house(tmp_path):
    """The product with a data folder of its own, and its address."""
    classes = Classes(Store(tmp_path / FILE))
    app = build_app(CLASS, classes=classes)
    _, address, _ = launch(app, port=None, prevent_thread_lock=True, quiet=True)
    yield classes, address
    app.close(verbose=False)
    classes.store.close()


def test_a_teacher_makes_a_class_and_sees_what_a_student_trains(house, open_page, tmp_path):
    classes, address = house
    board = open_page(accept_downloads=True)
    board.goto(address)
    board.wait_for_selector("#status:has-text('recorded')")
    board.click("#head-learn button")
    board.click(".class-button")
    board.fill("#class-title textarea, #class-title input", "<b>Tuesday</b>")
    board.locator("#class-source input").click()
    board.get_by_role("option", name="Twenty sentences").click()
    board.fill("#class-steps input", "20")
    board.click("#class-make")
    board.wait_for_selector(".class-head h2:has-text('<b>Tuesday</b>')")
    words = board.locator(".class-code span").all_inner_texts()
    shown = urlsplit(board.url)
    assert parse_qs(shown.query)["class"] == ["-".join(words)] and not shown.fragment  # a projector shows no secret
    board.wait_for_selector("#class-table:has-text('Nobody has joined yet')")
    assert not board.locator("#tabs").is_visible()

    student = open_page(viewport={"width": 390, "height": 844})
    student.goto(address)
    student.wait_for_selector("#status:has-text('recorded')")
    student.click("#head-learn button")
    student.click(".class-button")
    student.fill("#class-code textarea, #class-code input", " ".join(words).upper())
    student.fill("#class-name textarea, #class-name input", "Zoë & Ed")
    student.click("#class-join")
    student.wait_for_selector(".class-strip:has-text('you are Zoë & Ed')")
    student.wait_for_selector(".class-strip:has-text('Twenty sentences, Small, 20 steps, seed 1.')")
    student.wait_for_function("document.querySelector('#example input').value === 'Twenty sentences'")
    student.click("#train-button")

    row = board.locator("#class-table tbody tr")
    row.filter(has_text="20 of 20").filter(has_text="Zoë & Ed").wait_for()
    board.wait_for_selector("#class-curves .chart-words:has-text('1 run, the last of each student')")
    board.wait_for_selector("#class-spread .chart-words:has-text('one run, which says nothing of luck')")
    board.click("#class-hidden label")
    row.filter(has_text="Student 1").wait_for()
    with board.expect_download() as download:
        board.click("#class-results")
    download.value.save_as(tmp_path / "results.csv")
    assert "Zoë & Ed" in (tmp_path / "results.csv").read_text(encoding="utf-8")

    board.on("dialog", lambda dialog: dialog.accept())
    board.click("#class-delete")
    board.wait_for_selector("#class-head:has-text('The class is deleted')")
    assert not classes.store.rows("SELECT 1 FROM classes")
