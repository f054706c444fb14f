"""Many at Inspect at once: nobody waits for another, and what one visitor asked last is what that visitor sees."""

from __future__ import annotations

import asyncio
import logging
import threading

import gradio as gr
import pytest

from playground.data.tokenizers import CharTokenizer
from playground.inspection import look as look_itself
from playground.model import Transformer
from playground.service.limits import PUBLIC
from playground.storage import Checkpoint
from playground.training import History
from playground.ui.tabs.inspect import looks, walk
from playground.ui.widgets import turns
from tests.model.configs import TINY
from tests.ui.inspecting import Inspecting
from tests.ui.test_clicks import NONSENSE

LETTERS = CharTokenizer("ab<>&cde\n ")
PATIENCE = 20


@pytest.fixture(scope="module")
def tab() -> Inspecting:
    config = TINY.replace(vocab_size=LETTERS.vocab_size, context_length=80, init_std=0.5)
    return Inspecting(Checkpoint(Transformer(config), LETTERS, History(), "tried"), PUBLIC)


class Browser:
    """One open page: it sends what it was told so far, and takes in what it is answered, as a real one does."""

    def __init__(self, tab: Inspecting, session: str, prompt: str, **more):
        self.tab, self.session, self.clock, self.pending = tab, session, 0.0, 0
        self.values = tab.at(prompt, **more)
        self.answers: list[dict] = []

    async def does(self, component, event: str, said=None, **changes) -> dict:
        """The visitor changes these, then this happens."""
        turns_of = self.tab.frame.turns
        self.clock += 1
        for name, value in changes.items():
            self.values[getattr(self.tab.frame, name, None) or self.tab.component(name)] = value
        sent = {**self.values, turns_of.asked: str(self.clock)}  # before anything is awaited: as it stands now
        component = self.tab.component(component) if isinstance(component, str) else component
        handler = self.tab.handler(component, event)
        request = gr.Request(session_hash=self.session)
        answer = await asyncio.create_task(handler(sent, gr.EventData(None, said), request))
        if answer == gr.skip():
            return {}
        self.answers.append(answer)
        for output, value in answer.items():
            if output in self.values:
                value = value.constructor_args.get("value", self.values[output]) if hasattr(
                    value, "constructor_args") else value  # fmt: skip
                if isinstance(value, dict):
                    value = value.get("value", self.values[output])
                self.values[output] = value
        return answer

    def place(self) -> tuple:
        return tuple(self.values[picker] for picker in self.tab.frame.pickers)


def held_back(monkeypatch, module, name, when):
    """Have a function wait for `go` where `when(*arguments)`; `begun` says that it does."""
    begun, go, plain = threading.Event(), threading.Event(), getattr(module, name)

    def waits(*arguments):
        if when(*arguments):
            begun.set()
            assert go.wait(PATIENCE)
        return plain(*arguments)

    monkeypatch.setattr(module, name, waits)
    return begun, go


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, PATIENCE)


def test_a_slow_look_of_one_visitor_does_not_delay_another(tab, monkeypatch):
    slow = LETTERS.encode("dddd")
    begun, go = held_back(monkeypatch, looks, "look", lambda checkpoint, ids: list(ids) == slow)

    async def both():
        anna, ben = Browser(tab, "anna", "dddd"), Browser(tab, "ben", "abc")
        waiting = asyncio.create_task(anna.does(tab.frame.prompt, "change"))
        await until(begun)
        for layer in (1, 0, 1):
            answer = await asyncio.wait_for(ben.does(tab.frame.layer, "input", layer=layer), PATIENCE)
            assert answer[tab.frame.layer] == layer
        assert not waiting.done()
        go.set()
        assert tab.component("inspect_step_chart") in await waiting

    asyncio.run(both())


def test_an_older_answer_that_comes_late_is_dropped_and_the_newer_one_has_what_it_changed(tab, monkeypatch):
    begun, go = held_back(
        monkeypatch, walk, "step", lambda look, name, layer, head, query, key: (layer, head) == (0, 0)
    )
    chart, grid = tab.component("inspect_step_chart"), tab.component("inspect_heads_grid")

    async def two_clicks():
        anna = Browser(tab, "anna-2", "abcabc", inspect_steps="softmax", place=(1, 3, 5, 1))
        first = asyncio.create_task(anna.does(chart, "select", {"index": [4, 2]}, layer=0, head=0))
        await until(begun)
        # the page does not know yet where the first one led
        second = await anna.does(tab.frame.layer, "input", layer=1)
        assert anna.place() == (1, 0, 4, 2) and chart in second and grid in second
        go.set()
        assert await first == {}
        assert anna.place() == (1, 0, 4, 2)
        third = await anna.does("inspect_next", "click")
        assert anna.place() == (1, 0, 4, 2) and third[tab.component("inspect_steps")].value == "mix"

    asyncio.run(two_clicks())


def test_an_older_answer_does_not_put_back_what_was_chosen_while_it_was_drawn(tab, monkeypatch):
    def owner(look, name, layer, head, *cell):
        return layer, head

    first_begun, first_go = held_back(monkeypatch, walk, "step", lambda *given: owner(*given) == (1, 0))
    second_begun, second_go = held_back(monkeypatch, walk, "step", lambda *given: owner(*given) == (1, 1))

    async def three_clicks():
        anna = Browser(tab, "anna-4", "abcabc")
        first = asyncio.create_task(anna.does(tab.frame.layer, "input", layer=1))
        await until(first_begun)
        second = asyncio.create_task(anna.does(tab.frame.head, "input", head=1))
        await until(second_begun)
        first_go.set()
        assert tab.frame.head in await first and anna.place()[:2] == (1, 0)  # the page shows the older head again
        await anna.does(tab.frame.layer, "input", layer=0)
        assert anna.place()[:2] == (0, 1)
        second_go.set()
        assert await second == {} and anna.place()[:2] == (0, 1)

    asyncio.run(three_clicks())


def test_a_click_whose_answer_was_never_drawn_is_drawn_by_the_next(tab, monkeypatch):
    begun, go = held_back(monkeypatch, looks, "look", lambda checkpoint, ids: list(ids) == LETTERS.encode("ee"))
    grid = tab.component("inspect_heads_grid")

    async def three_clicks():
        anna = Browser(tab, "anna-3", "ee", place=(0, 0, 1, 0))
        asked = [asyncio.create_task(anna.does(tab.frame.prompt, "change"))]
        await until(begun)
        asked.append(asyncio.create_task(anna.does("edit_apply", "click")))  # in another view by now
        asked.append(asyncio.create_task(anna.does(tab.component("inspect_next"), "click")))
        asked.append(asyncio.create_task(anna.does(grid, "select", {"index": [0, 0], "trace": 1})))
        await asyncio.sleep(0.05)
        go.set()
        *older, last = await asyncio.gather(*asked)
        assert older == [{}, {}, {}] and grid in last and last[tab.frame.view] == "walk"
        assert isinstance(last[tab.frame.layer], gr.Dropdown), "the lists of the new prompt"
        changed = await anna.does("edit_apply", "click")  # and the first change is still in force, with the second
        assert len(changed[tab.component("edit_list")]["value"]) == (1 if anna.place()[:2] == (0, 0) else 2)

    asyncio.run(three_clicks())


@pytest.mark.parametrize("which_waits", ["the click that came first", "the click that came last"])
def test_the_page_is_told_that_nothing_is_computed_although_its_clicks_overtook_each_other(
    tab, monkeypatch, which_waits
):
    layer = 1 if which_waits == "the click that came first" else 0
    begun, go = held_back(monkeypatch, walk, "step", lambda look, name, *place: place[0] == layer)

    async def two_clicks():
        anna = Browser(tab, f"overtaken-{layer}", "abcabc", place=(0, 1, 0, 0))
        anna.clock = 10
        asked = [asyncio.create_task(anna.does(tab.frame.layer, "input", layer=1))]
        await until(begun) if layer else await asyncio.sleep(0)
        anna.clock = 8  # asked before, and two milliseconds later here
        asked.append(asyncio.create_task(anna.does(tab.frame.layer, "input", layer=0)))
        await asyncio.sleep(0.1)
        go.set()
        await asyncio.gather(*asked)
        assert float(anna.answers[-1][tab.frame.turns.answered]) >= 11

    asyncio.run(two_clicks())


def test_many_visitors_clicking_at_once_each_end_where_they_clicked_last(tab, monkeypatch):
    monkeypatch.setattr(turns, "QUICK", turns.ThreadPoolExecutor(8))

    async def wander(number: int) -> None:
        import random

        draw = random.Random(number)
        browser, under_way = Browser(tab, f"visitor-{number}", "abcde" * (1 + number % 3)), []
        layer = head = 0
        for _ in range(8):
            if draw.random() < 0.5:
                layer = draw.randrange(2)
                under_way.append(asyncio.create_task(browser.does(tab.frame.layer, "input", layer=layer)))
            else:
                head = draw.randrange(4)
                under_way.append(asyncio.create_task(browser.does(tab.frame.head, "input", head=head)))
            await asyncio.sleep(draw.random() * 0.01)
        await asyncio.gather(*under_way)
        assert browser.place()[:2] == (layer, head), number
        said = next(v for v in reversed(browser.answers) if tab.component("inspect_heads_grid") in v)
        assert f"layer {layer}, head {head}" in said[tab.component("inspect_heads_grid")]["summary"]

    async def crowd():
        await asyncio.gather(*(wander(number) for number in range(12)))

    asyncio.run(crowd())


def test_answers_leave_one_after_another_although_gradio_goes_on_working_on_them():
    page, left = turns._Page(), []

    async def answer(turn: int, work: float) -> None:
        if await turns._next_to_leave(page, turn, draws=True):
            await asyncio.sleep(work)  # gradio, until the answer is on its way
            left.append(turn)

    async def all_at_once():
        await asyncio.gather(
            *(asyncio.create_task(answer(t, w)) for t, w in ((1, 0.05), (2, 0.02), (4, 0.0), (3, 0.0)))
        )

    asyncio.run(all_at_once())
    assert left == [1, 2, 4]


def test_pages_are_forgotten_and_begin_anew(tab, monkeypatch):
    monkeypatch.setattr(tab.frame.turns._pages, "entries", 3)
    for number in range(9):
        tab.click("inspect_next", "click", tab.at("abc"), session=f"page-{number}")
    assert len(tab.frame.turns._pages) == 3
    updates = tab.click("inspect_next", "click", tab.at("abc", place=(1, 2, 1, 0)), session="page-0")
    assert updates[tab.frame.layer] == 1


CLICKED = {
    "inspect_step_chart": "walk", "inspect_heads_grid": "walk", "inspect_head_chart": "heads", "edit_map": "edit",
    "inspect_roles_chart": "roles", "minds_lens": "minds", "learn_before": "learn",
    "replay_pattern": "replay",
}  # fmt: skip


@pytest.mark.parametrize("name", CLICKED)
def test_whatever_a_click_says_is_an_answer_in_words(tab, name, caplog, capfd):
    with caplog.at_level(logging.WARNING):
        nowhere = [place for place in NONSENSE if place not in ([3, 0], [0, 4])]  # which some maps have
        for said in (None, [], "x", 7, *({"index": place, "trace": place, "x": place} for place in nowhere)):
            updates = tab.click(name, "select", tab.at("abc", view=CLICKED[name], inspect_steps="softmax"), said)
            assert "click again" in updates[tab.frame.notice], said
    assert "Traceback" not in caplog.text + capfd.readouterr().err


def test_a_survey_is_made_once_and_belongs_to_its_model(tab):
    worth, values = tab.component("edit_map"), tab.at("abcabc", view="edit")
    assert tab.frame.update(values)[worth] is None
    first = tab.click("edit_survey", "click", values)[worth]
    assert first["figure"] and tab.frame.update(values)[worth]["summary"] == first["summary"]
    other = Checkpoint(Transformer(TINY.replace(vocab_size=LETTERS.vocab_size), seed=4), LETTERS, History(), "other")
    there = {**values, tab.page.model: tab.page.registry.add("a-visitor-of-these-tests", other)}
    assert tab.frame.update(there)[worth] is None


def test_looks_of_one_prompt_are_taken_once_for_all_who_ask(tab, monkeypatch):
    taken = []

    def counted(*arguments):
        taken.append(1)
        return look_itself(*arguments)

    monkeypatch.setattr(looks, "look", counted)

    async def all_open_it():
        await asyncio.gather(*(Browser(tab, f"s{n}", "edcba").does(tab.frame.prompt, "change") for n in range(10)))

    asyncio.run(all_open_it())
    assert len(taken) == 1


def test_a_model_that_leaves_takes_along_what_was_worked_out_from_it(tab):
    import gc
    import weakref

    other = Checkpoint(Transformer(TINY.replace(vocab_size=LETTERS.vocab_size), seed=6), LETTERS, History(), "other")
    model_id, gone = tab.page.registry.add("a-visitor-of-these-tests", other), weakref.ref(other.model)
    for view in ("walk", "learn"):
        assert tab.frame.update({**tab.at("abcab", view=view), tab.page.model: model_id})[tab.frame.notice] == ""
    del other
    tab.page.registry.remove(model_id, "a-visitor-of-these-tests")
    gc.collect()
    assert gone() is None


def test_an_answer_is_read_as_gradio_reads_it():
    with gr.Blocks():
        a, b = gr.HTML(), gr.HTML()
    drawn = {"figure": {}, "summary": "one"}
    assert turns.by_component(drawn, [a]) == {a: drawn} and turns.by_component("text", [a]) == {a: "text"}
    assert turns.by_component((1, 2), [a, b]) == {a: 1, b: 2} and turns.by_component({b: 2}, [a, b]) == {b: 2}
    assert turns.by_component(gr.skip(), [a]) == turns.by_component(gr.skip(), [a, b]) == {}
    assert turns.by_component(None, [a]) == {a: None}
