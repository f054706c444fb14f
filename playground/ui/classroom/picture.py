"""What a class's pages say and draw, from what the class knows. Names are text, never markup."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from ...figures.classroom import class_curves, class_spread
from ...lessons.reading import find_lesson
from ...service.classes import Klass, Member, Student
from ...service.classes.experiment import experiment
from ...service.classes.house import SILENT_SECONDS
from ...service.classes.members import Run
from ...words import classroom as words
from ...words.numbers import signed
from ...words.training import in_steps
from .. import theme
from ..chart import show
from ..forms import run as form
from ..forms import texts
from ..theme import Cell


def bdi(text: str) -> str:
    """A user's text as an escaped <bdi> element, so that its direction does not affect its surroundings."""
    return f"<bdi>{html.escape(text)}</bdi>"


# ---- the student's strip ---------------------------------------------------------------------------------------------


def strip_html(member: Member, latest: Run | None) -> str:
    """The student's strip: name, class, the run to train, and the last run's loss."""
    klass, parts = member.klass, []
    if klass.ended:
        parts.append(words.ENDED)
    elif klass.letters:
        where = "The lesson trains" if klass.lesson else "Your run"
        parts.append(f"{where}: {run_in_words(klass, member.number)} {words.CHANGING[klass.changes]}")
    if latest is not None and latest.report.loss is not None:
        report = latest.report
        parts.append(words.latest_words(report.loss, report.step, report.planned, report.above))
    paragraphs = "".join(f"<p>{html.escape(part)}</p>" for part in parts)
    return (
        f'<div class="class-strip" title="{words.SEEN}"><p><strong>You are {bdi(member.name)}</strong> in '
        f"{bdi(klass.title)}.</p>{paragraphs}</div>"
    )


def run_in_words(klass: Klass, number: int = 0) -> str:
    """The run to which everybody's controls are set, as a sentence."""
    spec = klass.spec(number)
    if spec is None:
        return "It cannot be set up here."
    text, size = texts.SOURCES.get(spec.source.kind, spec.source.kind), form.values_of(spec)["size"]
    shape = form.SIZES.get(size, f"{spec.model.n_layers} layers of width {spec.model.d_model}")
    text = "the class's own text" if spec.source.text else text
    seed = spec.training.seed if number or klass.changes != "seed" else "= the student’s number"
    return f"{text}, {shape}, {in_steps(spec.training.steps)}, seed {seed}."


# ---- the board -------------------------------------------------------------------------------------------------------


def names_of(students: Sequence[Student], hidden: bool) -> dict[int, str]:
    """Student number → name on the board."""
    return {s.number: f"Student {s.number}" if hidden else s.name for s in students}


def head_html(klass: Klass, students: Sequence[Student], now: float, local: bool) -> str:
    """The class's title, its code in large letters, and the number of its students."""
    letters = " ".join(f"<span>{word}</span>" for word in klass.code.split("-"))
    runs = [s.latest for s in students if s.latest is not None]
    going = sum(at_work(run, now) for run in runs)
    finished = len(runs) - going
    ended, when = klass.ended, theme.duration(abs(klass.ends - now))
    cards = [
        ("Students", f"{len(students)}", f"{len(students) - len(runs)} without a run"),
        ("Training now", f"{going}", f"{finished} run{'s' * (finished != 1)} finished"),
        ("Ended", f"{when} ago", "no one can join") if ended else ("Ends", f"in {when}", "by itself"),
    ]
    run = f"<p>{html.escape(run_in_words(klass))} {words.CHANGING[klass.changes]}</p>" if klass.letters else ""
    run = (f"<p>Lesson: {html.escape(lesson_title(klass.lesson))}.</p>" if klass.lesson else "") + run
    code = f'<p class="class-code" aria-label="The code to join with">{letters}</p>'
    parts = [
        f"<h2>{bdi(klass.title)}</h2>{run}",
        "" if ended else code,
        theme.stat_cards(cards[:1] + cards[2:] if ended else cards),
        theme.notice(words.LOCAL, "warning") if local else "",
    ]
    return f'<div class="class-head">{"".join(parts)}</div>'


def lesson_title(lesson: str) -> str:
    """A lesson's title, or its id if the lesson no longer exists."""
    found = find_lesson(lesson)
    return found.title if found else lesson


def lesson_in_words(klass: Klass, student: Student) -> str:
    """A student's progress in the lesson that was opened last."""
    if not student.steps:
        return "–"
    other = f" of “{lesson_title(student.lesson)}”" if student.lesson != klass.lesson else ""
    return f"{student.step} of {student.steps} steps{other}"


def at_work(run: Run, now: float) -> bool:
    """Whether the run still trains, judging by its last report."""
    return run.report.state == "training" and now - run.at < SILENT_SECONDS


def table_html(klass: Klass, students: Sequence[Student], hidden: bool, now: float) -> str:
    """A row for every student, in the order of joining."""
    if not students:
        return theme.quiet(words.NO_STUDENTS)
    names, lessons = names_of(students, hidden), bool(klass.lesson) or any(student.steps for student in students)
    head = ["Name", *["Lesson"] * lessons, "Run", "Loss", "Above best possible", Cell("It writes", kind="words")]
    rows = []
    for student in students:
        run, row = student.latest, [Cell(html=bdi(names[student.number]))]
        if lessons:
            row.append(lesson_in_words(klass, student))
        if run is None:
            row += ["–", "–", "–", Cell("", kind="words")]
        else:
            report = run.report
            state = "" if report.state == "finished" else " · training" if at_work(run, now) else " · ended early"
            above = "–" if report.above is None else signed(report.above, 4, plus=True)
            above += "" if report.causal else " · no mask"
            row += [
                f"{report.step:,} of {report.planned:,}{state}",
                "–" if report.loss is None else f"{report.loss:.4f}",
                above,
                Cell(html=bdi(report.said), kind="words class-said"),
            ]
        rows.append(row)
    texts_learned = {student.latest.report.text_key for student in students if student.latest}
    note = theme.quiet(words.COMPARING) if len(texts_learned) > 1 else ""
    return theme.table(head, rows, classes="class-table") + note


def curves(klass: Klass, students: Sequence[Student], hidden: bool) -> Any:
    """Everybody's last run in one chart: those with comparable losses, on the text that most students use."""
    names = names_of(students, hidden)
    last = [(names[s.number], s.latest.report) for s in students if s.latest is not None and s.latest.report.curve]
    keys = [report.text_key for _, report in last]
    key = max(keys, key=keys.count) if keys else None
    drawn = [(name, report) for name, report in last if report.text_key == key]
    rungs = next((report.rungs for _, report in drawn if report.rungs), ())
    lines = [(name, report.curve) for name, report in drawn]
    losses, best = [curve[-1][1] for _, curve in lines], dict(rungs).get("floor")
    return show(class_curves(lines, rungs), words.class_words(losses, best, len(last) - len(drawn)))


def spread(klass: Klass, students: Sequence[Student], hidden: bool) -> Any:
    """The spread of runs that differ in what the class changes."""
    found = experiment(klass, students, klass.changes or "seed", names_of(students, hidden))
    groups = [(g.label, g.losses, g.names, g.mean, g.margin) for g in found.groups[:8]]
    unit = "above the best possible loss" if found.above_floor else "validation loss"
    return show(class_spread(groups, unit), words.experiment_words(found))
