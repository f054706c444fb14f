"""A lesson's words as HTML: the strip of the open lesson at its step, and the list of all. Everything is escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from hashlib import sha256

from ...lessons.judging import filled, missing
from ...lessons.progress import Answer, Progress
from ...lessons.reading import Lesson, Step, all_lessons
from .. import theme
from .scenes import Here

BACK = ' disabled title="This is the first step."'
"""The Back button's reason when it leads nowhere."""


def list_html() -> str:
    """The list of all lessons to choose from; each group has a heading."""
    lessons = all_lessons()
    groups = {lesson.group: [each for each in lessons if each.group == lesson.group] for lesson in lessons}
    return "".join(
        f"{f'<h3>{html.escape(group)}</h3>' if group else ''}<ol>{''.join(map(_item, of_it))}</ol>"
        for group, of_it in groups.items()
    )


def _item(lesson: Lesson) -> str:
    return (
        f'<li><button type="button" data-lesson="{lesson.id}">'
        f"<strong>{lesson.number}. {html.escape(lesson.title)}</strong>"
        f'<span data-steps="{len(lesson.steps)}"></span><small>{html.escape(lesson.about)}</small></button></li>'
    )


def strip_html(progress: Progress, here: Here, problem: str = "") -> str:
    """The open lesson at its step. Everything is escaped."""
    lesson, step, answer = here.lesson, here.step, here.answer
    at, ticked = progress.step, progress.ticked(lesson)
    dots = "".join(_dot(i, other, ticked[i], i == at) for i, other in enumerate(lesson.steps))
    trains = "" if answer.done else here.trains()
    done = " class=lesson-ticked" if answer.told else ""
    head = (
        f'<header{done}><p class="lesson-name"><strong>Lesson {lesson.number}: {html.escape(lesson.title)}</strong> '
        f"<span>step {at + 1} of {len(lesson.steps)}</span></p><ol>{dots}</ol>"
        f'<button type="button" class="lesson-back" data-go="{at - 1}" aria-label="Back"{BACK if not at else ""}>←'
        f"</button>{_onward(lesson, at, trains)}"
        '<button type="button" data-do="fold"></button>'
        '<button type="button" data-do="close">Leave</button></header>'
    )
    does = []
    asked = answer.asked(step)
    waiting = missing(here, step) if asked or not (step.ask or answer.told) else ""
    if waiting:
        does.append(f'<p class="lesson-still">{_worded(waiting)}</p>')
    elif asked:
        does.append(_asked(step, here))
    if problem:
        does.append(theme.notice(problem, "warning"))
    if answer.told:
        does.append(_answered(step, answer))
    elif not waiting and (waits := _waits(step, answer, trains)):
        does.append(f'<p class="lesson-waits">{waits}</p>')
    if at + 1 == len(lesson.steps) and answer.told:
        left = [str(i) for i, done in enumerate(ticked, 1) if not done]
        does.append(f'<p class="lesson-over">{"Steps left: " + ", ".join(left) if left else "Lesson finished"}.</p>')
    point = '<button type="button" data-do="show">Show me where</button>' if step.point else ""
    again = '<button type="button" data-do="again">Start the lesson again</button>' if any(ticked) else ""
    said = "" if waiting and "{" in step.say else filled(here, step.say, "…")
    say = (
        f'<h3 tabindex="-1">{html.escape(step.title)}</h3><p>{_worded(said)}</p>'
        f'<p class="lesson-aside">{point}{again}</p>'
    )
    state = " lesson-ticked" if answer.told else ""
    return (
        f'{head}<div class="lesson-step{state}" tabindex="0" role="group" aria-label="This step"><div>{say}</div>'
        f"<div>{''.join(does)}</div></div>"
    )


def _onward(lesson: Lesson, at: int, trains: str) -> str:
    """To the next step once the training is over, or from the last one to the next lesson."""
    if at + 1 < len(lesson.steps):
        off = f' disabled title="{html.escape(trains, quote=True)}"' if trains else ""
        return f'<button type="button" class="lesson-next" data-go="{at + 1}"{off}>Continue →</button>'
    lessons = all_lessons()
    after = lessons[lessons.index(lesson) + 1 :]
    if not after:
        return ""
    title = html.escape(f"Lesson {after[0].number}: {after[0].title}", quote=True)
    words = f"Lesson {after[0].number} →"
    return f'<button type="button" class="lesson-next" data-lesson="{after[0].id}" title="{title}">{words}</button>'


def _dot(i: int, step: Step, done: bool, here: bool) -> str:
    said = html.escape(f"Step {i + 1}, {step.title}{', done' if done else ''}", quote=True)
    current = ' aria-current="step"' if here else ""
    mark = "✓" if done else i + 1
    return f'<li><button type="button" data-go="{i}" title="{said}" aria-label="{said}"{current}>{mark}</button></li>'


def _worded(words: str) -> str:
    """Words of a lesson, escaped; text between stars is emphasised."""
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", html.escape(words))


def shuffled(choices: Mapping[str, str], visitor: str, question: str) -> list[tuple[str, str]]:
    """The choices in an order that depends on the visitor, always the same for a question."""
    return sorted(choices.items(), key=lambda each: sha256(f"{visitor} {question} {each[0]}".encode()).digest())


def _asked(step: Step, here: Here) -> str:
    ask, scale = step.ask, step.ask.number
    if scale is None:
        given = "".join(
            f'<label><input type="radio" name="lesson-guess" required value="{html.escape(name, quote=True)}"> '
            f"{_worded(words)}</label>"
            for name, words in shuffled(ask.choices, here.visitor, ask.question)
        )
    else:
        middle = scale.least + round((scale.most - scale.least) / 2 / scale.step) * scale.step
        ends = f'min="{scale.least:g}" max="{scale.most:g}" value="{middle:g}" required aria-label="Your guess"'
        given = (
            f'<span class="lesson-slider"><input type="range" {ends} step="{scale.step:g}">'
            f'<input type="number" {ends} step="any"> {html.escape(scale.unit)}</span>'
        )
    question = _worded(filled(here, ask.question, "…"))
    return (
        f'<form class="lesson-ask"><fieldset><legend>{question}</legend>{given}'
        '<button type="submit">Guess</button></fieldset></form>'
    )


def _answered(step: Step, answer: Answer) -> str:
    told = list(answer.told)
    parts = ['<p class="lesson-done">✓ Done</p>'] if answer.right is None else []
    if step.ask is not None and answer.guess is not None:
        kind = {True: "good", False: "info", None: "info"}[answer.right]
        parts.append(theme.notice("✓ " * (answer.right is True) + told.pop(0), kind))
    parts += [f"<p>{_worded(words)}</p>" for words in told if words != "Done."]
    return f'<div class="lesson-told" role="status" tabindex="-1">{"".join(parts)}</div>'


def _waits(step: Step, answer: Answer, trains: str) -> str:
    """What the visitor waits for, in words."""
    if answer.asked(step):
        return "Guess, and the answer appears here." if answer.done and step.done else ""
    if not step.done or answer.done:
        return "" if answer.told else "The answer appears here as soon as its numbers are ready."
    if trains:
        return f"{trains} The answer comes when it ends."
    return "Your guess is in. The answer appears here once this is done." if step.ask is not None else ""
