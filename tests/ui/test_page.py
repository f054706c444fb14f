"""What the page's shared parts promise the tabs: no markup, clicks that fit what is drawn, places for all."""

import asyncio
import random
from collections import Counter

import gradio as gr
import pytest

from playground.links import LinkError
from playground.ui import theme
from playground.ui.chart import head_html
from playground.ui.clicks import cell_of, index_of, number_of, trace_of
from playground.ui.links import broken
from playground.ui.places import Places
from playground.ui.refusals import in_words, sentence


def test_what_a_visitor_typed_is_no_html_in_a_notice_and_as_it_is_for_a_program():
    typed = "there is no model called <img src=x onerror=alert(1)>"
    assert "<img" not in theme.notice(sentence(typed), "error") and "&lt;img src=x" in theme.notice(sentence(typed))
    with pytest.raises(gr.Error) as told, in_words():
        raise ValueError(typed)
    assert "<img src=x" in told.value.message
    pieces = [
        theme.stat_cards([(typed,) * 3]),
        theme.heading(typed, typed),
        theme.badge(typed),
        theme.progress(0.5, typed),
    ]
    assert not [piece for piece in [*pieces, broken(LinkError(typed))] if "<img" in piece]
    assert "://" not in head_html() and not theme.theme()._stylesheets


HUGE = 10**400
NONSENSE = [None, True, "1", "x", [], [1], [1, 2, 3], {}, {"0": 1}, [None, None], [[0], [0]], [{}, 0], ["0", "0"],
            [True, False], [0.5, 0], [float("nan"), 0], [float("inf"), 0], [-1, 0], [0, -1], [3, 0], [0, 4],
            [HUGE, 0], [0, -HUGE]]  # fmt: skip


@pytest.mark.parametrize("said", [{}, *({"index": place} for place in NONSENSE)], ids=repr)
def test_what_is_no_cell_is_a_sentence(said):
    with pytest.raises(ValueError, match="Click again"):
        cell_of(said, rows=3, columns=4)


@pytest.mark.parametrize("place", [None, True, "0", {}, [], [0], float("nan"), 2.5, -1, 4, HUGE, [0, 4], [0, None]])
def test_what_is_no_place_in_a_row_is_a_sentence(place):
    with pytest.raises(ValueError, match="Click again"):
        index_of({"index": place}, 4)
    with pytest.raises(ValueError, match="Click again"):
        trace_of({"trace": place}, 4)
    if not isinstance(place, (int, float)) or isinstance(place, bool) or place != place or place == HUGE:
        with pytest.raises(ValueError, match="Click again"):
            number_of({"x": place}, "x")


def test_a_cell_that_is_drawn_is_that_cell():
    assert cell_of({"index": [2, 3]}, rows=3, columns=4) == (2, 3)
    assert cell_of({"index": (2.0, 0), "value": 1}, rows=3, columns=4) == (2, 0)
    assert index_of({"index": 3}, 4) == index_of({"index": [0, 3]}, 4) == 3
    assert trace_of({"trace": 1.0}, 4) == 1 and number_of({"x": -2.5}, "x") == -2.5


def test_places_are_never_exceeded_and_none_is_lost_whoever_leaves_when():
    places, draws = Places(3), random.Random(0)
    now: Counter[str] = Counter()

    async def comes(n: int) -> None:
        async with places.of(f"network {n % 4}", f"visitor {n % 7}"):
            now["all"] += 1
            assert now["all"] <= 3
            try:
                for _ in range(draws.randrange(4)):
                    await asyncio.sleep(0)
                if draws.random() < 0.2:
                    raise ValueError
            finally:
                now["all"] -= 1

    async def crowd() -> None:
        tasks = []
        for n in range(400):
            tasks.append(asyncio.create_task(comes(n)))
            if draws.random() < 0.3:
                draws.choice(tasks).cancel()
            if draws.random() < 0.5:
                await asyncio.sleep(0)
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)

    asyncio.run(crowd())
    assert places._free == 3 and not places._line and not places._at_work.total()
