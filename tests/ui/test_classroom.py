"""A class on the page: what strangers see of it, what nonsense brings about, and that names are text."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from playground.lessons.progress import Answer, Progress
from playground.lessons.reading import all_lessons
from playground.service.classes import Classes, Klass, Member, Student
from playground.service.classes.house import Run
from playground.service.classes.reports import Report
from playground.service.classes.speedrun import Entry
from playground.service.store import FILE, Store
from playground.ui.app import build_app, launch
from playground.ui.classroom import Told, picture

from ..service.test_classes import CARD, made, student, with_seed
from .raw import RawCaller
from .runs import ANNA, BERT, TEXT, known, small_limits

MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The whole page with an empty house of classes, and its address."""
    classes = Classes(Store(tmp_path_factory.mktemp("data") / FILE))
    app = build_app(small_limits(), classes=classes)
    _, address, _ = launch(app, port=None, prevent_thread_lock=True, quiet=True)
    yield classes, address
    app.close(verbose=False)
    classes.store.close()


def test_a_page_without_a_class_asks_nothing_and_makes_no_file(served):
    classes, address = served
    caller = RawCaller(address)
    loads = [d for d in caller.config["dependencies"] if any(event == "load" for _, event in d["targets"])]
    opened = caller.endpoint("class-open")
    assert all(opened["id"] != load["id"] for load in loads)
    status, answer = caller.post(opened["id"], [ANNA, "", ""])
    assert status == 200 and "class-head" not in answer and not classes.store.path.exists()


def test_a_stranger_sees_nothing_and_a_student_no_board(served):
    classes, address = served
    klass, secret = made(classes)
    classes.join(klass.code, "Rumpelstilzchen", ANNA)
    caller = RawCaller(address)
    opened, look = (caller.endpoint(*place)["id"] for place in (("class-open",), ("class-sort", "input")))
    for visitor, code, key in ((BERT, klass.code, ""), (BERT, klass.code, "guess"), (ANNA, klass.code, "x" * 32),
                               (BERT, "", secret), (BERT, None, {}), ("", [], 7)):  # fmt: skip
        said = caller.post(opened, [visitor, code, key])[1]
        assert "Rumpelstilzchen" not in said and "class-head" not in said
    assert "Rumpelstilzchen" in caller.post(opened, [ANNA, klass.code, ""])[1]  # herself
    chosen = ["joined", False, "seed", "flops", ""]
    assert "Rumpelstilzchen" in caller.post(look, [klass.code, secret, *chosen])[1]
    hidden = caller.post(look, [klass.code, secret, "loss", True, "size", "seconds", ""])[1]
    assert "Rumpelstilzchen" not in hidden and "Student 1" in hidden
    for key in ("", "guess", None):
        assert "Rumpelstilzchen" not in caller.post(look, [klass.code, key, *chosen])[1]
    for button in ("class-results", "class-answers"):
        status, said = caller.post(caller.endpoint(button)["id"], [klass.code, "guess"])
        assert status == 500 and "not the teacher" in said
    status, _ = caller.post(caller.endpoint("class-delete")["id"], ["sure", klass.code, "guess"])
    assert status == 500 and classes.invited(klass.code)


def test_a_class_is_made_and_joined_by_raw_calls_with_sense_and_nonsense(served):
    classes, address = served
    caller = RawCaller(address)
    form = {"class-title": MARKUP, "class-steps": 20, "class-size": "tiny", "class-target": 0}
    for changes, words in (
        ({"class-source": "text", "class-text": " "}, "no text yet"),
        ({"class-steps": 10**9}, "must be a whole number"),
        ({"class-seed": -1}, "inimum"),
        ({"class-title": "x" * 90}, "at most 80 characters"),
        ({"class-target": 200}, "target loss"),
    ):
        status, said = caller.call("class-make", **{**form, **changes})
        assert status == 500 and words in said, (changes, said)
    status, said = caller.call("class-make", **form)
    code, secret = json.loads(said)["data"][:2]
    klass = classes.taught(code, secret)
    assert status == 200 and klass.title == MARKUP and klass.spec(3).training.seed == 3
    join = caller.endpoint("class-join")["id"]
    for visitor, given, name, words in (
        (ANNA, "wrong", "Anna", "no class with this code"),
        (ANNA, code, "😀" * 500, "at most 40 characters"),
        ("short", code, "Anna", "reload it"),
    ):
        status, said = caller.post(join, [visitor, given, name])
        assert status == 500 and words in said
    status, said = caller.post(join, [ANNA, code.replace("-", " "), MARKUP])
    assert status == 200 and "&lt;img" in said and "<img" not in said
    values = [out.get("value") if isinstance(out, dict) else out for out in json.loads(said)["data"]]
    assert 20 in values and "tiny" in values  # the controls are set


def test_names_and_what_models_write_are_text_wherever_they_stand():
    klass = Klass(1, "a-b-c-d", MARKUP, MARKUP, CARD.to_letters(), TEXT, "seed", 2.0, 0.0, 9e9, 1, False)
    report = Report(MARKUP, "k", 0, 5, 9, "training", 1.5, (), ((0, 2.0), (5, 1.5)), MARKUP, 1.0, 1.0, 10, True)
    pupil = student(1, (with_seed(0), 1.5))
    pupil = pupil.__class__(1, 1, MARKUP, 0.0, MARKUP, 1, 5, (*pupil.runs, Run("", report, 0.0)))
    entry = Entry(1, 1, "", 1.5, "refused", MARKUP, None, None, None)
    shown = [
        picture.head_html(klass, [pupil], 0.0, True),
        picture.table_html(klass, [pupil], "name", False, 0.0),
        picture.speedrun_html(klass, [pupil], [entry], "flops", False),
        picture.strip_html(Member(klass, 1, 1, MARKUP), pupil, [entry]),
    ]
    assert all("&lt;img" in html and "<img" not in html for html in shown)
    for drawn in (picture.curves(klass, [pupil], False), picture.spread(klass, [pupil], "seed", False)):
        assert "<img" not in json.dumps(drawn["figure"])


def test_who_sees_its_answers_is_not_closest_to_the_floor():
    klass = Klass(1, "a-b-c-d", "Class", "", CARD.to_letters(), TEXT, "seed", 2.0, 0.0, 9e9, 1, False)
    rungs = (("floor", 1.0),)

    def pupil(number: int, loss: float, **more) -> Student:
        report = Report("Text", "key", 0, 30, 30, "finished", loss, rungs, (), "", 1.0, 1.0, 10, True)
        return replace(student(number), runs=(Run("", replace(report, **more), 0.0),))

    peeks, honest = pupil(1, 0.2, causal=False), pupil(2, 1.3)
    head = picture.head_html(klass, [peeks, honest], 0.0, False)
    assert "0.3000" in head and "nats above it" in head and "0.8000" not in head
    assert "nats below it" in picture.head_html(klass, [pupil(1, 0.99), honest], 0.0, False)
    assert "no floor known yet" in picture.head_html(klass, [pupil(1, 1.0, rungs=())], 0.0, False)
    assert "its text has no floor" in picture.head_html(klass, [pupil(1, 1.0, rungs=(("bigram", 2.0),))], 0.0, False)
    assert "−0.8000 · sees its answers" in picture.table_html(klass, [peeks], "name", False, 0.0).replace("-0", "−0")
    two = picture.table_html(klass, [honest, pupil(3, 2.0, text_key="bpe", rungs=())], "name", False, 0.0)
    assert "or read them in other pieces: losses compare within one only, what is above the floor" in two
    assert "An entry counts once it was" in picture.speedrun_html(klass, [], [], "flops", False)


def test_the_class_hears_of_a_lessons_steps_and_answers(served):
    classes, _ = served
    lesson = next(lesson for lesson in all_lessons() if any(step.ask for step in lesson.steps))
    at, step = next((i, step) for i, step in enumerate(lesson.steps, 1) if step.ask)
    klass, _ = made(classes, lesson=lesson.id)
    classes.join(klass.code, "Ada", BERT)
    guess = next(iter(step.ask.choices), step.ask.least)
    progress = Progress(lesson.id, answers={lesson.id: {step.id: Answer(guess, guess, True, done=True)}})
    told = Told(classes)
    for _ in range(3):
        told(BERT, lesson, progress)
        told(known("nobody"), lesson, progress)
    (pupil,) = classes.students(klass := classes.invited(klass.code))
    assert (pupil.lesson, pupil.step, pupil.steps) == (lesson.id, 1, len(lesson.steps))
    (answer,) = classes.answers(klass)
    assert (answer["step"], answer["question"]) == (at, step.ask.question) and answer["found"].endswith("(right)")
    assert f"1 of {len(lesson.steps)} steps" in picture.table_html(klass, [pupil], "progress", False, 0.0)
