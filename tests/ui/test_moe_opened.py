"""The parts of Dense vs MoE are worked out when somebody sees them, and once for all who do."""

from __future__ import annotations

import gradio as gr
import pytest

from playground.service import views
from playground.service.models import new_id
from playground.ui.app import build_app
from playground.ui.tabs.moe import measured, table
from tests.ui.test_moe_experts import Tab, mixture

PAIR = "no-dense the-mixture"


@pytest.fixture
def tab() -> Tab:
    return Tab(dialects=mixture({"prompt": "the wind", "language": "dialects"}))


def accordion(tab: Tab, name: str):
    return next(b for b in tab.blocks.blocks.values() if isinstance(b, gr.Accordion) and b.elem_id == f"moe-{name}")


def looked_at(tab: Tab) -> dict:
    return {"moe_looked_at": f"none {tab.ids['dialects']}"}


def parts_of(answers: list[dict]) -> set[str]:
    return {c.elem_id.split("-")[0] for answer in answers for c in answer if c.elem_id} - {"turns"}


def test_nothing_is_worked_out_before_the_tab_is_opened_nor_for_a_folded_part(tab):
    assert not tab.page.on_load_handlers or tab.frame.handlers[0] not in [h for h, *_ in tab.page.on_load_handlers]
    assert tab.happens(tab.frame.looked_at, "change", opened="train", **looked_at(tab)) == []
    assert parts_of(tab.happens(tab.frame.looked_at, "change", opened="moe", **looked_at(tab))) == {"routing"}
    assert parts_of(tab.happens(tab.page.tab, "select", opened="train", **looked_at(tab))) == {"routing"}
    assert parts_of(tab.happens(accordion(tab, "experts"), "expand", opened="moe", **looked_at(tab))) == {"experts"}
    assert parts_of(tab.happens(accordion(tab, "breaking"), "expand", opened="moe", **looked_at(tab))) == {"breaking"}


def test_the_page_is_made_before_anything_is_judged_or_timed_and_a_new_visitor_is_sent_nothing_else(monkeypatch):
    def not_yet(*_):
        raise AssertionError("nobody sees it yet")

    monkeypatch.setattr(views, "_judged", not_yet)
    monkeypatch.setattr(table, "_once", not_yet)
    page = build_app().page
    assert not any(page.board.news(new_id()))


def test_what_is_worked_out_for_one_visitor_is_there_for_all(tab, monkeypatch):
    counted = []
    monkeypatch.setattr(
        measured, "judge_against_nulls", lambda *a, real=measured.judge_against_nulls: counted.append(1) or real(*a)
    )
    first, second = (
        tab.happens(accordion(tab, "experts"), "expand", session=session, opened="moe", **looked_at(tab))
        for session in ("one", "two")
    )
    assert len(counted) == 1 and parts_of(first) == parts_of(second) == {"experts"}


def test_speeds_are_timed_once_and_never_two_at_a_time(monkeypatch):
    import threading
    import time
    from concurrent.futures import ThreadPoolExecutor

    at_once, most, timed = [], [], []

    def timing(models):
        at_once.append(1)
        most.append(len(at_once))
        time.sleep(0.02)
        timed.append(models)
        at_once.pop()
        return {"dense": 1.0, "moe": 2.0}

    pairs, begin = [(mixture(n_experts=0).model, mixture().model) for _ in range(3)], threading.Barrier(12)

    def ask(number):
        begin.wait()
        return table._once(timing, *pairs[number % 3])

    with ThreadPoolExecutor(12) as threads:
        assert list(threads.map(ask, range(12))) == [{"dense": 1.0, "moe": 2.0}] * 12
    assert len(timed) == 3 and max(most) == 1


def test_what_one_pair_said_leaves_when_another_is_looked_at():
    two = build_app().page.shared("moe.pair")[0].__self__.two
    another = next(handler for handler in two.handlers if handler.__name__ == "another_pair")
    assert another(None, "shipped-dialects-dense")[2:] == ("", None, "")
