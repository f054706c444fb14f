"""Classes: who gets in, what is remembered, what stays secret, and that what is deleted is gone."""

import csv
import io
import math
from dataclasses import replace

import pytest

from playground.links import SEEN_ONLY, RunCard
from playground.model import ModelConfig
from playground.service.board import Board
from playground.service.cards import settings_card
from playground.service.classes import ClassError, Classes, Student
from playground.service.classes.codes import WORDS, hashed, one_line
from playground.service.classes.experiment import GOES_WITH_SIZE, SHAPE, experiment
from playground.service.classes.members import Report, Run
from playground.service.classes.tables import answers_csv, results_csv
from playground.service.limits import CLASS_KEPT_DAYS, CLASS_RUNS, STUDENTS, WRONG_CODES
from playground.service.models import Registry
from playground.service.store import FILE, Store, StoreError
from playground.training import TrainConfig
from playground.ui.forms import run as form

from ..ui.runs import ANNA, BERT, MODEL, TEXT, ScriptedRunner, at_once, ended, known, small_limits, small_spec

CARD = settings_card(small_spec())
"""The class's run: on its own text, seconds to train."""


class Clock:
    """Time, as a test says."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def classes(tmp_path, clock):
    house = Classes(Store(tmp_path / "data" / FILE), clock)
    yield house
    house.store.close()


def made(classes: Classes, **changes) -> tuple:
    """A class of two hours, and its teacher's secret."""
    return classes.make("Tuesday", 2, **{"letters": CARD.to_letters(), "text": TEXT, "changes": "seed", **changes})


def on_disk(classes: Classes, *needles: str | bytes) -> list:
    """Which of these occur in the database's files."""
    found = b"".join(path.read_bytes() for path in classes.store.path.parent.iterdir())
    return [needle for needle in needles if (needle.encode() if isinstance(needle, str) else needle) in found]


def test_without_its_secret_the_teachers_link_opens_no_board_nor_does_a_house_without_classes(classes):
    assert classes.member(ANNA) is None
    classes.progress(ANNA, "first", 1, 5)
    with pytest.raises(ClassError, match="No class"):
        classes.invited("apple-otter-river-stone")
    assert not classes.store.path.exists()
    klass, secret = made(classes)
    assert classes.taught(klass.code, secret).id == klass.id
    other = made(classes)[1]
    for wrong in ("", None, secret[:-1], secret + "a", other, 7):
        with pytest.raises(ClassError, match="teacher's link"):
            classes.taught(klass.code, wrong)


def test_a_code_is_four_words_however_it_is_typed_and_what_is_missing_to_join_is_asked_for(classes):
    klass, _ = made(classes)
    words = klass.code.split("-")
    assert len(words) == 4 and set(words) <= set(WORDS) and len(set(WORDS)) ** 4 > 2**32
    for typed in (klass.code, f"  {' '.join(words).upper()} ", ", ".join(words)):
        assert classes.join(typed, "Anna", ANNA).klass.code == klass.code
    for wrong in (" ".join(words[:3]), "<b>", 7, "x" * 10_000):
        with pytest.raises(ClassError, match="No class"):
            classes.invited(wrong)
    for _ in range(WRONG_CODES + 1):
        with pytest.raises(ClassError, match="Type your class's code"):
            classes.join("", "", ANNA)
        with pytest.raises(ClassError, match="Choose a name"):
            classes.join("apple-apple-apple-apple", " ", ANNA)
    assert classes.join(klass.code, "Anna", ANNA).name == "Anna"


def test_wrong_codes_bound_who_sends_them_and_a_right_one_always_works(classes, clock):
    klass, secret = made(classes)
    guess = "apple-apple-apple-apple"
    for address in ("10.0.0.1", *(f"10.0.{i}.2" for i in range(17))):  # a thousand in all
        for _ in range(WRONG_CODES):
            with pytest.raises(ClassError, match="No class"):
                classes.invited(guess, address)
    for ask in (lambda: classes.invited(guess, "10.0.0.1"), lambda: classes.taught(klass.code, "guess", "10.0.0.1")):
        with pytest.raises(ClassError, match="10 minutes"):
            ask()
    assert classes.taught(klass.code, secret, "10.0.0.1") == klass
    assert classes.invited(klass.code, "10.0.0.1") == klass, "a school shares one address"
    with pytest.raises(ClassError, match="No class"):
        classes.invited(guess, "10.0.0.3")
    clock.now += 601
    with pytest.raises(ClassError, match="No class"):
        classes.invited(guess, "10.0.0.1")


def test_names_are_made_different_and_what_is_no_name_or_looks_like_another_is_refused(classes):
    klass, _ = made(classes)
    assert classes.join(klass.code, "Anna", ANNA).name == "Anna"
    assert classes.join(klass.code, " anna\u202e\x00\t ", BERT).name == "anna (2)"
    assert classes.join(klass.code, "Anna", ANNA).number == 1  # the same browser again is the same student
    assert [s.name for s in classes.students(classes.invited(klass.code))] == ["Anna", "anna (2)"]
    for nothing in ("", "   ", "\u200d\u200b", None, 5):
        with pytest.raises(ClassError, match="a name"):
            classes.join(klass.code, nothing, known("carl"))
    assert one_line("👩‍👩‍👧\n" * 500, 11) == "👩‍👩‍👧 👩‍👩‍👧"
    for name, words in (("😀" * 41, "at most 40 characters"), ("\u0410nna", "mixes alphabets")):
        with pytest.raises(ClassError, match=words):
            classes.join(klass.code, name, known("carl"))
    with pytest.raises(ClassError, match="A title has at most 80"):
        classes.make("T" * 81, 2, letters=CARD.to_letters(), text=TEXT)
    for name in ("Алиса", "Ελένη", "愛子 Ai", "Zoë", "Z" * 40):
        assert classes.join(klass.code, name, name * 8).name == name


def test_sixty_join_within_a_moment_and_a_class_is_full_at_its_bound(classes):
    klass, _ = made(classes)
    at_once(60, lambda i: classes.join(klass.code, "Kim", f"visitor-{i:020}", "10.0.0.1"))
    there = classes.students(classes.invited(klass.code))
    assert [s.number for s in there] == list(range(1, 61)) and len({s.name for s in there}) == 60
    for i in range(60, STUDENTS):
        classes.join(klass.code, f"S{i}", f"visitor-{i:020}")
    with pytest.raises(ClassError, match=f"{STUDENTS} students"):
        classes.join(klass.code, "Late", ANNA)


def test_a_class_ends_by_itself_and_leaves_nothing_a_week_later(classes, clock):
    klass, secret = made(classes, text="Wortlaut " + TEXT)
    classes.join(klass.code, "Rumpelstilzchen", ANNA)
    clock.now = klass.ends + 1
    with pytest.raises(ClassError, match="has ended"):
        classes.join(klass.code, "Bert", BERT)
    classes.progress(ANNA, "first", 3, 5)
    student = classes.students(classes.taught(klass.code, secret))[0]  # the teacher still reads
    assert student.step == 0 and classes.member(ANNA).klass.ended
    assert on_disk(classes, "Rumpelstilzchen", "Wortlaut")
    clock.now += CLASS_KEPT_DAYS * 86_400
    with pytest.raises(ClassError, match="No class"):
        classes.taught(klass.code, secret)
    assert classes.member(ANNA) is None and not on_disk(classes, "Rumpelstilzchen", "Wortlaut")


def test_secrets_are_not_in_the_file_and_two_teachers_delete_at_once(classes):
    address = "198.51.100.23"
    klass, secret = made(classes, address=address)
    kept, _ = made(classes)
    for name, visitor in (("Rumpelstilzchen", ANNA), ("Dornröschen", BERT)):
        classes.join(klass.code, name, visitor)
    classes.progress(ANNA, "first", 1, 5, [(1, "How low?", "Drosselbart", "0.4")])
    secrets = secret, ANNA, BERT, address, hashed(address), hashed(address).hex()
    assert not on_disk(classes, *secrets) and on_disk(classes, "Drosselbart")
    classes.withdraw(classes.member(ANNA))
    assert not on_disk(classes, "Rumpelstilzchen", "Drosselbart", hashed(ANNA)) and classes.member(ANNA) is None

    def delete(_: int) -> None:
        try:
            classes.delete(classes.taught(klass.code, secret))
        except ClassError as problem:
            assert "No class" in str(problem)

    at_once(2, delete)
    assert not on_disk(classes, "Dornröschen", hashed(BERT), hashed(secret))
    assert classes.invited(kept.code) == kept and classes.member(BERT) is None


def test_a_file_that_is_none_is_a_sentence_and_where_it_lies_is_for_the_log_alone(classes, clock, caplog, tmp_path):
    classes.store.path.parent.mkdir()
    classes.store.path.write_bytes(b"not a database, but long enough to be looked at" * 100)
    (tmp_path / "a file").write_text("stands where the folder should be")
    house = Classes(Store(tmp_path / "a file" / FILE), clock)
    for ask in (lambda: classes.member(ANNA), lambda: made(classes), lambda: made(house)):
        with pytest.raises(StoreError, match="right now") as refused:
            ask()
        assert str(tmp_path) not in str(refused.value) and "the owner" in str(refused.value)
    assert "File exists" in caplog.text or "a directory" in caplog.text


def test_what_makes_no_class_is_refused(classes):
    for hours, changes in ((0, "seed"), (-1, "seed"), (math.nan, "seed"), (1e9, "seed"), (2, "everything")):
        with pytest.raises(ClassError, match="Choose"):
            classes.make("x", hours, letters=CARD.to_letters(), text=TEXT, changes=changes)


def test_one_address_cannot_make_all_the_classes_there_may_be(classes, clock, monkeypatch):
    monkeypatch.setattr("playground.service.classes.house.CLASSES", 6)
    monkeypatch.setattr("playground.service.classes.house.CLASSES_PER_ADDRESS", 4)
    first, joined, *_ = (made(classes, address="10.0.0.1")[0] for _ in range(4))
    classes.join(joined.code, "Anna", ANNA)
    with pytest.raises(ClassError, match="from your network"):
        made(classes, address="10.0.0.1")
    made(classes, address="10.0.0.2")
    classes.delete(first)
    made(classes, address="10.0.0.1")
    made(classes, address="10.0.0.3")
    with pytest.raises(ClassError, match="many classes here"):
        made(classes, address="10.0.0.4")
    clock.now += 86_400 + 3601
    assert made(classes, address="10.0.0.4"), "those that nobody joined are gone"
    assert classes.of_id(joined.id).code == joined.code


@pytest.fixture
def board(classes):
    limits = small_limits()
    board = Board(Registry(limits), limits)
    board.told = classes.heard
    return board


def trained(board: Board, spec, visitor: str = ANNA):
    job = ended(board.start(visitor, spec))
    return job


def test_a_students_run_is_on_the_board_and_a_strangers_is_not(classes, board):
    klass, _ = made(classes)
    classes.join(klass.code, "Anna", ANNA)
    spec = small_spec(sample_every=15)
    job = trained(board, spec)
    trained(board, spec, BERT)
    (student,) = classes.students(classes.invited(klass.code))
    report = student.latest.report
    assert (report.state, report.step, report.loss) == ("finished", 30, pytest.approx(job.view().history.val_loss))
    assert [step for step, _ in report.curve] == [0, 10, 20, 30] and report.said.startswith("the ")
    assert dict(report.rungs)["uniform"] == pytest.approx(job.view().baselines.uniform, abs=1e-6)
    assert not on_disk(classes, job.id)


def test_only_the_latest_runs_are_kept_and_a_broken_file_stops_no_run(classes):
    klass, _ = made(classes)
    classes.join(klass.code, "Anna", ANNA)
    limits = small_limits()
    board = Board(Registry(limits), limits, ScriptedRunner())
    board.told = classes.heard
    for seed in range(CLASS_RUNS + 2):
        classes.clock.now += 1
        trained(board, small_spec(steps=2, seed=seed))
    runs = classes.students(classes.invited(klass.code))[0].runs
    assert [run.report.seed for run in runs] == list(range(2, CLASS_RUNS + 2))
    classes.store.close()
    for path in classes.store.path.parent.iterdir():
        path.unlink()
    classes.store.path.write_bytes(b"no database" * 1000)
    assert trained(board, small_spec(steps=2)).has_result


def student(number: int, *runs: tuple[RunCard, float]) -> Student:
    """One whose complete runs came to these losses."""
    made = []
    for card, loss in runs:
        seed, rungs = card.training.seed, (("floor", 1.0),)
        report = Report("Text", "key", seed, 30, 30, "finished", loss, rungs, (), "", 1000, True)
        made.append(Run(card.to_letters(), report, 0.0))
    return Student(number, number, f"S{number}", 0.0, "", 0, 0, tuple(made))


def with_seed(seed: int, **model) -> RunCard:
    return replace(CARD, training=CARD.training.replace(seed=seed), model=CARD.model.replace(**model))


NAMES = {n: f"S{n}" for n in range(20)}


def test_experiments_have_students_exact_interval_and_leave_out_what_changed_more_than_one_thing(classes):
    klass, _ = made(classes)
    pupils = [student(n, (with_seed(n), loss)) for n, loss in enumerate((2.0, 2.1, 2.3))]
    (group,) = experiment(klass, pupils, "seed", NAMES).groups
    assert group.own and group.names == ("S0", "S1", "S2") and group.mean == pytest.approx(2.1333333)
    # t(2) at 95 % is 4.30265…; the spread of 2.0, 2.1 and 2.3 is 0.152752
    assert group.margin == pytest.approx(4.302652729911275 * 0.1527525232 / math.sqrt(3))
    assert experiment(klass, pupils[:2], "seed", NAMES).groups[0].margin is None, "two are too few"
    assert experiment(klass, [], "seed", NAMES).groups == ()
    klass, _ = made(classes)
    pupils = [student(n, (with_seed(n), 2.0 + n / 100)) for n in range(4)]
    pupils += [student(n, (with_seed(n, d_model=32), 1.5 + n / 100)) for n in range(4, 8)]
    pupils.append(student(8, (with_seed(0), 2.0)))  # a seed that another has
    pupils.append(student(9, (with_seed(1, activation="relu", d_model=32), 1.0)))
    size = experiment(klass, pupils, "size", NAMES)
    assert [len(group.losses) for group in size.groups] == [4, 4] and size.groups[0].own
    assert size.left_out == 2 and all(abs(d) > m for *_, d, m in size.differences())
    seed = experiment(klass, pupils, "seed", NAMES)
    assert len(seed.groups) == 1 and seed.left_out == 6
    close = [student(n, (with_seed(n, d_model=32 if n > 3 else MODEL.d_model), 2 + n % 4 / 10)) for n in range(8)]
    assert all(abs(d) <= m for *_, d, m in experiment(klass, close, "size", NAMES).differences())
    others = [
        student(n, (replace(with_seed(n), text="stories", text_hash="", tokenizer=tokens), 1.25 + n / 100))
        for n, tokens in enumerate(("char", "char", "char", "word"), 10)
    ]
    text = experiment(klass, [*pupils[:4], *others], "text", NAMES)
    assert text.above_floor and [group.mean for group in text.groups] == pytest.approx([1.015, 0.36])
    assert text.left_out == 1, "nats per word are none per character"


def test_the_dial_of_sizes_sets_nothing_that_does_not_go_with_a_size():
    """*Small* on a language has a momentum of its own: all who chose another size were left out."""
    there = {name: form.size_values(name, "stories") for name in form.SIZES}
    differ = {name for values in there.values() for name, value in values.items() if value != there["small"][name]}
    known = differ & {*vars(TrainConfig()), *vars(ModelConfig())} - set(SEEN_ONLY)
    assert {"d_model", "muon_momentum"} <= known <= SHAPE | GOES_WITH_SIZE


def test_tables_hold_no_browser_and_no_formula(classes, board):
    klass, secret = made(classes)
    classes.join(klass.code, '=HYPERLINK("http://x")', ANNA)
    classes.progress(ANNA, "first", 2, 5, [(1, "How low?", "+1", "@SUM(A1)"), (2, "Why?", 'a\nb,"c"', "-2")])
    trained(board, small_spec())
    results, answers = (table(classes, classes.invited(klass.code)) for table in (results_csv, answers_csv))
    for text in (results, answers):
        assert ANNA not in text and hashed(ANNA).hex() not in text and secret not in text and text[0] == "\ufeff"
        for row in csv.reader(io.StringIO(text[1:])):
            assert not any(cell.startswith(("=", "+", "@", "\t")) for cell in row)
    (row,) = csv.DictReader(io.StringIO(results[1:]))
    assert row["name"].startswith("'=HYPER") and row["state"] == "finished" and 0 < float(row["validation loss"]) < 5
    first, second = csv.DictReader(io.StringIO(answers[1:]))
    assert (first["answer"], first["found"], second["answer"], second["found"]) == (
        "'+1",
        "'@SUM(A1)",
        'a b,"c"',
        "'-2",
    )
