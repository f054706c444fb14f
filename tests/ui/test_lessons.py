"""The lessons on the page: what their files name is there, and every word of theirs holds for what a visitor has."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from playground import training
from playground.data import corpus_from_language
from playground.inspection.balance import evenness
from playground.lessons import vocabulary
from playground.lessons.judging import judge
from playground.lessons.progress import Progress
from playground.lessons.reading import Lesson, all_lessons, find_lesson
from playground.lessons.scene import NotYet
from playground.lessons.vocabulary import PLACES, SETS
from playground.model import Transformer
from playground.processes import threads_for
from playground.service.limits import CLASS
from playground.service.runs import Source
from playground.training.events import LoadMeasured
from playground.ui.app import build_app
from playground.ui.forms import pair as pair_form
from playground.ui.forms import run as form
from playground.ui.forms import texts
from playground.ui.lessons.scenes import Here
from playground.ui.lessons.strip import covered, under
from playground.ui.tabs import generate
from playground.ui.tabs.inspect.selection import Selection
from playground.ui.tabs.moe import selection as moe

from .runs import ANNA, BERT, ended, known, until

SELECTIONS = {"inspect": Selection, "generate": generate.Selection, "moe": moe.Selection}
"""What the panels select."""
WALKED_IN_A_BROWSER = ("first-model", "next-letter", "memorising", "why-a-cache", "do-experts-help")
"""Lessons that hold every kind of step between them: see tests/browser/test_lessons.py."""


@pytest.fixture(scope="module")
def app():
    return build_app()


@pytest.fixture(scope="module")
def page(app):
    return app.page


class Visitor:
    """Somebody who presses things in the strip; what a handler answers is what the page then holds."""

    def __init__(self, page, name: str = ANNA):
        self.page, self.strip = page, page.shared("lessons.strip")
        strip = self.strip
        self.values: dict[Any, Any] = {component: getattr(component, "value", None) for component in strip.inputs}
        self.values[page.visitor] = name
        self.shown: dict = {}

    def does(self, do: str, query: dict | None = None, **more: Any) -> dict:
        """One press; returns what the strip shows."""
        request = SimpleNamespace(query_params=query or {}, session_hash="s")
        answer = self.strip.act(dict(self.values), gr.EventData(None, {"do": do, **more}), request)
        for component, update in answer.items():
            value = update.get("value") if isinstance(update, dict) and "__type__" in update else update
            value = getattr(update, "value", value)
            if component in self.values and value is not None:
                self.values[component] = value
        self.shown = answer[self.strip.strip]
        return self.shown

    @property
    def progress(self) -> Progress:
        return Progress.from_dict(self.values[self.strip.progress])


def guess_of(step) -> Any:
    return step.ask.number.least if step.ask.number else next(iter(step.ask.choices))


def test_every_place_and_control_is_on_the_page(app, page):
    assert page.tab_ids == vocabulary.TABS
    ids = {block.elem_id for block in app.blocks.values()}
    templates = {block.elem_id: block.html_template for block in app.blocks.values() if isinstance(block, gr.HTML)}
    ids |= set(re.findall(r' id="([\w-]+)"', "".join(templates.values()))) | {"talk", "use-best"}  # drawn with a model
    for name, place in PLACES.items():
        found = re.match(r"#([\w-]+)", place.selector)
        assert found and found[1] in ids, name
        for slot in re.findall(r"\[data-slot=([\w-]+)\]", place.selector):
            assert f'data-slot="{slot}"' in templates[found[1]], name
    for name in {*SETS} - {"tab", "view", "model"}:
        tab, _, field = name.partition(".")
        assert (
            tab == "train"
            or (tab == "pair" and (field in pair_form.BY_NAME or field in ("source", "equal")))
            or hasattr(SELECTIONS[tab](), field)
        ), name


@pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.id)
def test_every_lesson_sets_what_there_is_and_can_be_walked(page, lesson: Lesson):
    """Without training: what needs the visitor's own run says so, and everything else is said with numbers."""
    visitor = Visitor(page)
    visitor.does("open", lesson=lesson.id)
    waits = 0
    for i, step in enumerate(lesson.steps):
        shown = visitor.does("go", step=i)
        assert shown["step"] == step.id and step.title.split()[0] in shown["html"]
        assert not [case.says for group in step.show for case in group if case.says in shown["html"]]
        for button in re.findall("<button[^>]* disabled[^>]*>", shown["html"]):
            assert re.search('title="[^"]{8,}"', button), button
        if step.ask is not None:
            visitor.does("guess", guess=guess_of(step))
        if step.done:
            visitor.does("did", step=step.id)
        assert "{" not in visitor.shown["html"] and not re.search("✓ Done.*Not this time", visitor.shown["html"])
        waits += "lesson-still" in visitor.shown["html"] or bool(step.done and not step.done.place)
    assert sum(visitor.progress.ticked(lesson)) + waits >= len(lesson.steps)


def train(visitor: Visitor, lesson: Lesson, step) -> None:
    """The run that a step asks for, from the form as the step sets it."""
    wanted = {name.partition(".")[2]: value for name, value in step.sets.items() if name.startswith("train.")}
    values = visitor.strip.form_of(wanted, lesson) | {"precision": "fp32"}
    source = Source(values["source"], text=values["text"])
    spec = form.run_spec(values, source, visitor.page.limits)
    ended(visitor.page.board.start(visitor.values[visitor.page.visitor], spec))


@pytest.mark.parametrize(
    "lesson",
    [one for one in all_lessons() if {*one.runs} - {"own"} and one.id not in WALKED_IN_A_BROWSER],
    ids=lambda lesson: lesson.id,
)
def test_a_lesson_with_runs_of_ones_own_is_walked_to_its_end(page, monkeypatch, lesson):
    lesson = find_lesson(lesson.id)  # another test may have had the files read again
    for step in lesson.steps:
        if "train.steps" in step.sets:
            monkeypatch.setitem(step.sets, "train.steps", 4)
    visitor = Visitor(page, known(lesson.id))
    visitor.does("open", lesson=lesson.id)
    for i, step in enumerate(lesson.steps):
        visitor.does("go", step=i)
        if step.ask is not None:
            visitor.does("guess", guess=guess_of(step))
        if step.doing == "run":
            assert not visitor.progress.ticked(lesson)[i]
            train(visitor, lesson, step)
            visitor.does("look")
        elif step.doing == "when":  # a cell of the pattern, below the diagonal and then above it
            inspect, model = visitor.strip.panels["inspect"], visitor.values[page.model]
            for query, key in ((9, 3), (3, 9)):
                assert not visitor.progress.ticked(lesson)[i]
                visitor.values[inspect] = {"model": model, "prompt": "Mia lived by", "query": query, "key": key}
                visitor.does("look")
        elif step.done:
            visitor.does("did", step=step.id)
        assert visitor.progress.ticked(lesson)[i], (step.id, visitor.shown["html"])
        assert visitor.shown["awaits"] is None and "{" not in visitor.shown["html"]


def test_a_run_ticks_its_step_and_answers_with_its_own_numbers(page, monkeypatch):
    """On the processor in fp32, so that the losses are the same everywhere."""
    lesson, visitor = find_lesson("memorising"), Visitor(page, BERT)
    values = form.size_values("tiny", "sentences") | {"steps": 20, "eval_every": 5, "sample_every": 0, "seed": 11}
    values |= {"precision": "fp32", "source": "sentences", "prompt": "the cat"}
    spec = form.run_spec(values, Source("sentences"), page.limits)
    monkeypatch.setitem(lesson.steps[0].sets, "train.steps", spec.training.steps)
    endless = replace(spec, training=spec.training.replace(steps=100_000))
    early = page.board.start(BERT, endless)
    opened = visitor.does("open", lesson=lesson.id)
    assert "Press Stop" in opened["html"]
    page.board.stop(BERT)
    ended(early)
    assert "still training" not in visitor.does("guess", guess="together")["html"]
    assert not visitor.progress.ticked(lesson)[0], "a run from before the lesson does not count"
    cut = page.board.start(BERT, endless)
    until(lambda: cut.evaluations > 0)
    page.board.stop(BERT)
    ended(cut)
    assert "100,000 steps" in visitor.does("look")["html"]
    monkeypatch.setitem(lesson.steps[0].sets, "train.steps", 100_000)
    assert re.search("[0-9]+ of 100,000", visitor.does("look")["html"])
    assert not visitor.progress.ticked(lesson)[0]
    monkeypatch.setitem(lesson.steps[0].sets, "train.steps", spec.training.steps)
    job = ended(page.board.start(BERT, spec))
    shown = visitor.does("look")
    history = job.view().history
    last = {name: values[-1] for name, values in history.evaluations.items()}
    assert visitor.progress.ticked(lesson)[0] and shown["awaits"] is None
    assert f"They ended {last['val_loss'] - last['train_loss']:.2f} apart" in shown["html"]
    answer = visitor.progress.answer(lesson, lesson.steps[0])
    assert answer.guess == "together" and answer.truth in ("together", "part", "neither", "unclear")
    visitor.does("go", step=1)
    assert f"step {history.best[0]}." in visitor.shown["html"]
    assert visitor.does("guess", guess="heart")["awaits"] is None
    again = visitor.does("go", step=0)
    assert visitor.progress.answer(lesson, lesson.steps[0]) == answer and " apart." in again["html"]
    others = Here(page, lesson, lesson.steps[0], visitor.progress, visitor.values | {page.visitor: ANNA})
    assert not others.runs("run"), "whose runs are their own"


def test_lesson_3_is_about_the_visitors_own_model_of_stories(page):
    """The newest of characters, also from before the lesson, and judged by its own positions; else the shipped one."""
    lesson, visitor = find_lesson("one-tokens-journey"), Visitor(page, known("travelling"))
    tiny = {"steps": 2, "sample_every": 0, "precision": "fp32", "positions": "learned"}
    jobs = [
        ended(page.board.start(known("travelling"), form.run_spec(values | tiny, Source(kind), page.limits)))
        for kind, values in (
            ("stories", form.size_values("tiny", "stories")),
            ("stories", form.size_values("tiny", "stories") | {"tokenizer": "word"}),
            ("sentences", form.size_values("tiny", "sentences")),
        )
    ]
    visitor.does("open", lesson=lesson.id)
    assert visitor.values[page.model] == jobs[0].id
    here = Here(page, lesson, lesson.steps[1], visitor.progress, visitor.values)
    assert judge(here, here.step.ask, "differ").right
    others = Here(page, lesson, lesson.steps[1], visitor.progress, visitor.values | {page.visitor: ANNA})
    assert others.about() == "shipped-stories"


def test_a_lesson_sets_the_form_whatever_run_the_page_opened_with(page):
    """A run on an own text is restored in a new page; the next lesson's settings stand, and Train can begin."""
    lesson = find_lesson("only-its-text")
    visitor, strip = Visitor(page, known("returning")), page.shared("lessons.strip")
    text = next(step.sets["train.text"] for step in lesson.steps if "train.text" in step.sets)
    own = strip.form_of({"text": text}, lesson)
    name, form_of = visitor.values[page.visitor], page.shared("train.running")
    page.board.start(name, form.run_spec(own, Source(own["source"], text=own["text"]), page.limits))
    opened = form_of.filled(name, SimpleNamespace(query_params={}))
    page.board.stop(name)
    answer = strip.act(
        dict(visitor.values), gr.EventData(None, {"do": "open", "lesson": "memorising"}),
        SimpleNamespace(query_params={}, session_hash="s"),
    )  # fmt: skip
    assert {*form_of.settings.held(strip.form_of({"source": "sentences"}, lesson))} <= {
        name for name, control in form_of.c.items() if control in answer
    }
    held = {name: getattr(control, "value", None) for name, control in form_of.c.items()}
    for update in (opened, answer):
        for field, control in form_of.c.items():
            value = update.get(control, held[field])
            held[field] = value.get("value", held[field]) if isinstance(value, dict) else value
    named = texts.with_source(held)
    spec = form.run_spec(named, texts.source_of(named, page.limits), page.limits)
    wanted = find_lesson("memorising").steps[0].sets
    assert (spec.source.kind, spec.tokenizer) == (wanted["train.source"], "word")
    assert spec.training.steps == wanted["train.steps"]


def test_a_pairs_form_is_as_it_opens_once_its_lesson_is_left(page):
    """It kept the lesson's 32 experts and two seeds."""
    visitor, experts = Visitor(page, known("leaving")), page.shared("moe.comparing").c["n_experts"]
    for lesson, left in (("do-experts-help", 8), ("memorising", 32)):
        visitor.values[experts] = 32
        visitor.does("open", lesson=lesson)
        visitor.does("close")
        assert visitor.values[experts] == left


def test_a_pairs_form_opens_with_the_last_comparison_that_a_form_began(page, monkeypatch):
    """Not with one that a button trained without balance, for one look: the form does not show that."""
    comparing = page.shared("moe.comparing")
    made = pair_form.comparison_spec(pair_form.first_values() | {"equal": "active"}, Source("dialects"), page.limits)
    specs = made, replace(made, seeds=1, aside=True, moe=made.moe.replace(balance="none"))
    monkeypatch.setattr(page.board, "of", lambda visitor, kind: [SimpleNamespace(spec=spec) for spec in specs])
    held = comparing.filled(known("reloading"))
    assert (held[comparing.c["balance"]], held[comparing.c["seeds"]]) == ("switch", made.seeds)


def test_a_lesson_that_continues_later_has_what_its_steps_have_set(page, monkeypatch):
    visitor, lesson = Visitor(page, known("later")), find_lesson("temperature-and-luck")
    visitor.does("open", lesson=lesson.id)
    visitor.does("did", step=lesson.steps[0].id)
    visitor.does("open", lesson="why-a-cache")
    assert visitor.does("open", lesson=lesson.id)["step"] == "luck"
    panel = visitor.strip.panels["generate"]
    move = visitor.values[panel]["move"]
    assert move["samples"] == 2 and move["prompt"] == lesson.scene["generate.prompt"]
    visitor.values[panel] = {"samples": 1}
    assert visitor.does("go", step=0)["awaits"] is None
    assert visitor.values[panel]["move"]["samples"] == 2, "back at the step that writes two texts, Generate writes two"
    visitor.values[panel] = {"samples": 1}
    visitor.does("resume")
    assert visitor.values[panel] == {"samples": 1}, "a reloaded page shows what its address says"
    lesson = find_lesson("one-tokens-journey")
    monkeypatch.setitem(lesson.steps[0].sets, "inspect.head", 1)
    visitor.does("open", lesson=lesson.id)
    for at, head, query in ((0, 1, None), (2, None, 8)):
        visitor.does("go", step=at)
        move = visitor.values[visitor.strip.panels["inspect"]]["move"]
        assert (move.get("head"), move["query"], move["key"]) == (head, query, None), "each frames a cell of its own"


def test_a_step_waits_for_its_numbers_and_for_a_run_that_still_trains(page):
    visitor, lesson = Visitor(page, known("waiting")), find_lesson("first-model")
    visitor.does("open", lesson=lesson.id)
    shown = visitor.does("go", step=4)
    assert "lesson-ask" not in shown["html"] and "earlier step" in shown["html"] and shown["live"]
    assert "…" not in visitor.shown["html"] and "lesson-told" not in visitor.does("guess", guess="stays")["html"]
    assert not visitor.progress.ticked(lesson)[4]
    values = visitor.strip.form_of({"source": "stories", "size": "tiny", "steps": 100_000}, lesson)
    name, values = visitor.values[page.visitor], values | {"precision": "fp32"}
    job = page.board.start(name, form.run_spec(values, Source("stories"), page.limits))
    assert 'disabled title="Training.">Continue' in visitor.does("go", step=0)["html"]
    for step in (1, len(lesson.steps) - 1):
        assert "Your model is still training" in visitor.does("go", step=step)["html"], "nothing is final"
    page.board.stop(name)
    ended(job)


def test_each_step_on_experts_is_about_the_pair_that_it_speaks_of(page, monkeypatch):
    """After the pair without balance was trained, all steps still show and quote the first one."""
    lesson = find_lesson("do-experts-help")

    def job(name: str, balance: str) -> SimpleNamespace:
        spec = SimpleNamespace(moe=SimpleNamespace(balance=balance))
        ids = {"dense": f"{name}-dense", "moe": f"{name}-moe"}
        return SimpleNamespace(id=name, spec=spec, model_ids=ids, view=name.title, active=False)

    jobs, values = [], Visitor(page).values
    monkeypatch.setattr(page.board, "of", lambda *_, **__: jobs)
    monkeypatch.setattr(page.registry, "has", lambda model, _: bool(model))

    def shown() -> list[str]:
        return [Here(page, lesson, step, Progress(lesson.id), values).pair_ids() for step in lesson.steps]

    assert shown() == [""] * 5
    jobs.append(job("even", "switch"))
    jobs.append(job("odd", "none"))
    assert shown() == ["even-dense even-moe"] * 5
    here = Here(page, lesson, lesson.steps[1], Progress(lesson.id), values)
    assert here.pair() == "Even"
    jobs[0].active = True
    with pytest.raises(NotYet, match="still training"):
        here.pair()


def test_without_balance_most_experts_of_lesson_10_get_little_to_do():
    """With the lesson's own settings, which a class allows, in smaller batches and fewer steps."""
    sets, used = under("pair", find_lesson("do-experts-help").steps[0].sets), {}
    values = pair_form.first_values() | {"equal": "active"} | sets | {"steps": 60, "batch_size": 8, "eval_every": 60}
    spec, corpus = pair_form.comparison_spec(values, Source("phonebook"), CLASS), corpus_from_language("phonebook")
    for balance in ("switch", "none"):
        config = spec.matched(corpus.vocab_size).moe.replace(balance=balance)
        model = Transformer(config, seed=spec.training.seed)
        with threads_for(config.numbers_in_step(spec.training.batch_size)):
            events = training.train(model, corpus, spec.training)
            load = next(event.load for event in events if isinstance(event, LoadMeasured))
        used[balance] = 2 ** evenness(load[1]).entropy
    assert used["none"] < 0.75 * used["switch"], used


def test_a_lesson_that_starts_again_starts_another_game(page):
    lesson, games, visitor = find_lesson("next-letter"), page.shared("generate.games"), Visitor(page, known("player"))
    seat = (visitor.values[page.visitor], "shipped-stories")
    visitor.does("open", lesson=lesson.id)
    games.open(*seat, page.registry.get(*reversed(seat)), None)
    assert visitor.does("go", step=0) and games.seen(*seat) is not None
    assert visitor.does("again") and games.seen(*seat) is None


def test_an_answer_that_a_later_step_asks_for_is_covered_until_then():
    """The price stays hidden while the first step is answered and done."""
    lesson, progress = find_lesson("do-experts-help"), Progress("do-experts-help")
    price = PLACES["pair facts"].selector
    at_first = covered(lesson, progress, lesson.steps[0], begun=False)
    assert price in at_first["later"] and PLACES["verdict"].selector in at_first["guess"]
    answer = progress.answer(lesson, lesson.steps[0])
    answer.guess, answer.done, answer.told = "moe", True, ("Right.",)
    assert price in covered(lesson, progress, lesson.steps[0], begun=True)["later"]
    assert price in covered(lesson, progress, lesson.steps[1], begun=True)["guess"]
    progress.answer(lesson, lesson.steps[1]).guess = "all"
    assert not any(price in places for places in covered(lesson, progress, lesson.steps[1], begun=True).values())
    for name in ("memorising", "no-peeking"):  # the headline of the run names what the next steps ask
        lesson = find_lesson(name)
        assert PLACES["run"].selector in covered(lesson, Progress(name), lesson.steps[0], begun=False)["later"]


@pytest.mark.parametrize(
    ("name", "step", "place", "waits"),
    [
        ("do-experts-help", "verdict", "verdict", "done"),
        ("do-experts-help", "break", "loads", "done"),
        ("who-looks-at-whom", "earlier", "other pattern", ""),
        ("who-looks-at-whom", "off", "headline", "done"),
        ("no-peeking", "off", "curve", ""),
    ],
)
def test_what_stands_there_before_a_step_is_done_does_not_pass_for_its_answer(page, name, step, place, waits):
    """There are a recorded pair's numbers before the visitor's own, another run's curve, a head before it is off."""
    lesson, progress = find_lesson(name), Progress(name)
    at = next(each for each in lesson.steps if each.id == step)
    here = Here(page, lesson, at, progress, Visitor(page, known("begins nothing")).values)
    answer, selector = progress.answer(lesson, at), PLACES[place].selector
    assert here.begun() is (name == "who-looks-at-whom")
    for guess, begun, done, first in (
        *((None, begun, done, "guess") for begun in (False, True) for done in (False, True)),
        (20.0, False, False, waits or "begun"), (20.0, True, False, waits),
        (20.0, True, True, ""), (20.0, False, True, ""),
    ):  # fmt: skip
        answer.guess, answer.done = guess, done
        places = covered(lesson, progress, at, begun=begun)
        assert [first for first, all in places.items() if selector in all] == [first] * bool(first)


def test_what_no_page_sends_is_a_sentence_or_nothing(page):
    visitor = Visitor(page)
    shown = visitor.does("resume", {"lesson": "99"}, linked=True)
    assert "lesson “99”" in shown["html"]
    for sent in ({"do": "open"}, {"do": "open", "lesson": ["x"]}, {"do": "guess", "guess": 1}, {"do": None}):
        assert visitor.does(**sent)["open"] == ""
    visitor.does("open", lesson="why-a-cache")
    for step in (1e99, -5, float("nan"), "x", None, [1]):
        assert visitor.does("go", step=step)["step"] in ("without", "price")
    visitor.does("go", step=0)
    for guess in (None, float("nan"), float("inf"), "54", [54], {"x": 1}, 1e12, True):
        assert "from 0 to 40" in visitor.does("guess", guess=guess)["html"]
    assert not any(visitor.progress.ticked(find_lesson("why-a-cache")))
    visitor.does("did", step="without")
    assert not any(visitor.progress.ticked(find_lesson("why-a-cache"))), "guessing is not done by saying so"


def test_choices_stand_in_an_order_of_the_visitors_own(page):
    def order(i: int) -> tuple[str, ...]:
        return tuple(re.findall('value="([a-z]+)"', Visitor(page, f"v{i}").does("open", lesson="memorising")["html"]))

    orders = {order(i) for i in range(12)}
    assert orders == {order(i) for i in range(12)} and len(orders) > 2
    assert all(sorted(each) == ["neither", "part", "together"] for each in orders)
