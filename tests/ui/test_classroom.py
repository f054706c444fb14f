"""A class on the page: what strangers see of it, what nonsense brings about, and that names are text."""

import json

import pytest

from playground.lessons.progress import Answer, Progress
from playground.lessons.reading import all_lessons, find_lesson
from playground.service.cards import settings_card
from playground.service.classes import Classes, Klass, Member
from playground.service.classes.members import Report, Run
from playground.service.store import FILE, Store
from playground.ui.app import build_app
from playground.ui.classroom import picture
from playground.ui.classroom.answers import answers_html, histogram, tell
from playground.ui.classroom.make import preset

from ..service.test_classes import CARD, made, student, with_seed
from .panels import PanelCaller
from .raw import RawCaller, serving
from .runs import ANNA, BERT, TEXT, known, small_limits

MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The whole page with an empty house of classes, and its address."""
    classes = Classes(Store(tmp_path_factory.mktemp("data") / FILE))
    with serving(build_app(small_limits(), classes=classes)) as (page, address):
        yield classes, address, page
    classes.store.close()


def panel(address: str, visitor: str, **selection) -> PanelCaller:
    """A class panel, which nothing was asked of yet."""
    return PanelCaller(address, visitor, "class", **selection)


def test_a_page_without_a_class_hears_nothing_of_one_and_makes_no_file(served):
    classes, address, page = served
    caller = panel(address, ANNA)
    assert page.shared("class.news")(ANNA) == ([], None) and caller.news()["pause"] is None
    caller.look()
    assert caller.selection["view"] == "start" and not classes.store.path.exists()
    config = RawCaller(address).config
    inside = [c for c in config["components"] if str(c["props"].get("elem_id", "")).startswith("class")]
    assert {c["type"] for c in inside} == {"column", "html"}, "the class is one panel, without form components"


def test_a_stranger_sees_nothing_and_a_student_no_board(served):
    classes, address, _ = served
    klass, secret = made(classes)
    classes.join(klass.code, "Rumpelstilzchen", ANNA)
    for visitor, code, key in ((BERT, klass.code, ""), (BERT, klass.code, "guess"), (ANNA, klass.code, "x" * 32),
                               (BERT, "", secret), (BERT, None, {}), (BERT, [], 7)):  # fmt: skip
        caller = panel(address, visitor, code=code, secret=key)
        said = str(caller.look())
        assert "Rumpelstilzchen" not in said and "class-head" not in said
        assert caller.selection["secret"] == "", "a wrong secret is not asked again"
    assert "<bdi>Rumpelstilzchen" in panel(address, ANNA, code=klass.code).look()["strip"]
    board = panel(address, BERT, code=klass.code, secret=secret)
    assert "Rumpelstilzchen" in board.look()["table"] and board.selection["view"] == "board"
    masked = str(board.look(masked=True))
    assert "Rumpelstilzchen" not in masked and "Student 1" in masked
    for name in ("results", "answers"):
        assert board.do(f"class_{name}")["save"].endswith(f"/class-{name}.csv")
    for deed in ("end_class", "delete_class", "class_results", "class_answers"):
        assert "the teacher" in panel(address, BERT, code=klass.code, secret="guess").do(deed)["problem"]
    assert not classes.invited(klass.code).ended


def test_a_class_is_made_and_joined_with_sense_and_nonsense(served):
    classes, address, _ = served
    teacher = panel(address, BERT)
    form = {"title": MARKUP, "hours": "2", "steps": 20, "size": "tiny", "changes": "seed"}
    for changes, words in (
        ({"source": "text", "text": " "}, "text yet"),
        ({"source": "text", "text": "a" * 300_000}, "at most 200,000"),
        ({"steps": 10**9}, "whole number"),
        ({"hours": "1e99"}, "when the class ends"),
        ({"source": ["copy"]}, "a text"),
    ):
        assert words in teacher.do("make_class", **{**form, **changes})["problem"], changes
    teacher.do("make_class", **form)
    klass = classes.taught(teacher.selection["code"], teacher.selection["secret"])
    assert klass.title == MARKUP and klass.spec(3).training.seed == 3
    pupil = panel(address, known("pat"))
    assert "a name" in pupil.do("join_class", code=klass.code, name=None)["problem"]
    joined = pupil.do("join_class", code=klass.code.replace("-", " "), name=MARKUP)
    assert (joined["fills"]["steps"], joined["fills"]["size"], joined["tab"]) == (20, "tiny", "train")
    strip = pupil.look()["strip"]
    assert "&lt;img" in strip and "<img" not in strip and pupil.selection["view"] == "student"
    assert pupil.do("leave_class")["move"] == {"code": "", "note": "left"} and not classes.students(klass)
    assert "have left" in pupil.look()["note"] and pupil.selection["view"] == "note"


def test_the_board_and_the_strip_hear_of_what_changes_and_rest_after_the_end(served):
    classes, address, _ = served
    klass, secret = made(classes)
    teacher, pupil = known("teacher"), known("pupil")
    classes.join(klass.code, "Ada", pupil)
    board, strip = panel(address, teacher, code=klass.code, secret=secret), panel(address, pupil)
    board.look()
    strip.look()
    assert (board.news()["pause"], strip.news()["pause"]) == (3.0, 10.0)
    before = board.news()["word"], strip.news()["word"]
    classes.progress(pupil, "first", 1, 5)
    assert board.news()["word"] != before[0] and strip.news()["word"] == before[1], "a strip shows no lesson"
    board.do("end_class")
    assert strip.news()["word"] != before[1] and board.news()["pause"] is strip.news()["pause"] is None
    shown = board.look()
    assert board.selection["view"] == "results" and "class-code" not in shown["head"]
    assert "end_class" not in shown["board-buttons"] and "students" not in shown["board-buttons"]
    assert "set_class_run" not in strip.look()["strip-buttons"] and "has ended" in strip.slots["strip"]
    classes.delete(klass)
    assert "deleted it" in strip.look()["note"]


def test_names_and_what_models_write_are_text_wherever_they_stand():
    klass = Klass(1, "a-b-c-d", MARKUP, MARKUP, CARD.to_letters(), TEXT, "seed", 0.0, 9e9, 1, False)
    report = Report(MARKUP, "k", 0, 5, 9, "training", 1.5, (), ((0, 2.0), (5, 1.5)), MARKUP, 10, True)
    pupil = student(1, (with_seed(0), 1.5))
    pupil = pupil.__class__(1, 1, MARKUP, 0.0, MARKUP, 1, 5, (*pupil.runs, Run("", report, 0.0)))
    answer = {"lesson": MARKUP, "step": 1, "question": MARKUP, "answer": MARKUP, "found": MARKUP}
    shown = [
        picture.head_html(klass, [pupil], 0.0, True),
        picture.table_html(klass, [pupil], False, 0.0),
        picture.strip_html(Member(klass, 1, 1, MARKUP), pupil.latest),
        answers_html([answer], 1),
    ]
    assert all("&lt;img" in html and "<img" not in html for html in shown)
    for drawn in (picture.curves(klass, [pupil], False), picture.spread(klass, [pupil], False)):
        assert "<img" not in json.dumps(drawn["figure"])


# ---- lessons ---------------------------------------------------------------------------------------------------------


def test_the_class_hears_of_a_lessons_steps_and_answers(served):
    classes, *_ = served
    lesson = next(lesson for lesson in all_lessons() if any(step.ask and step.ask.number for step in lesson.steps))
    at, step = next((i, step) for i, step in enumerate(lesson.steps, 1) if step.ask and step.ask.number)
    klass, _ = made(classes, lesson=lesson.id)
    classes.join(klass.code, "Ada", BERT)
    guess = step.ask.number.least
    progress = Progress(lesson.id, answers={lesson.id: {step.id: Answer(guess, 0.1 + 0.2, True, done=True)}})
    for _ in range(3):
        tell(classes, BERT, lesson, progress)
        tell(classes, known("nobody"), lesson, progress)
    (pupil,) = classes.students(klass := classes.invited(klass.code))
    assert (pupil.lesson, pupil.step, pupil.steps) == (lesson.id, 1, len(lesson.steps))
    (answer,) = classes.answers(klass)
    assert (answer["step"], answer["question"]) == (at, step.ask.question)
    assert answer["found"] == "0.3 % (right)", "a prediction has the digits that matter"
    assert f"1 of {len(lesson.steps)} steps" in picture.table_html(klass, [pupil], False, 0.0)
    drawn = answers_html(classes.answers(klass), 2)
    assert "1 of 2 answered" in drawn
    assert "<b>0</b>" in drawn and "<b>1</b>" in drawn


def test_a_question_has_a_bar_for_every_choice_and_equal_ranges_of_numbers():
    asks = [step.ask for lesson in all_lessons() for step in lesson.steps if step.ask]
    choice = next(ask for ask in asks if len(ask.choices) > 2)
    first, second, *rest = choice.choices.values()
    assert histogram([second, second, first], choice) == [(first, 1), (second, 2), *((text, 0) for text in rest)]
    number = find_lesson("why-a-cache").steps[0].ask
    bars = histogram(["18 tokens", "40 tokens", "16.5 tokens"], number)
    assert len(bars) == 8 and sum(count for _, count in bars) == 3 and bars[3] == ("15 to 20 tokens", 2)
    assert histogram(["maybe", "1", "1"], None) == [("1", 2), ("maybe", 1)], "of a lesson that no longer exists"


def test_a_lesson_and_the_class_are_one_task(served):
    """A student who followed the lesson trained its 200 steps, and was left out of the experiment."""
    classes, _, page = served
    lesson = find_lesson("first-model")
    usual = preset({"source": "copy", "size": "small"}, page, lesson)
    assert (usual.source.kind, usual.size, usual.training.steps) == ("stories", "tiny", 200)
    klass, _ = made(classes, lesson=lesson.id, letters=settings_card(usual).to_letters(), text="")
    classes.join(klass.code, "Ada", ANNA)
    sets = page.shared("class.lesson")(ANNA, lesson).steps[0].sets
    assert (sets["train.seed"], sets["train.source"]) == (1, "stories") and "train.seed" not in lesson.steps[0].sets
    for other in ("no-peeking", "only-its-text", "who-looks-at-whom"):
        assert preset({}, page, find_lesson(other)) is None, "it trains its own models, or none"
