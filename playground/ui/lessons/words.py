"""A lesson's words as HTML: the strip of the open lesson at its step, and the list of all. Everything is escaped."""

from __future__ import annotations

import html
import re

from ...lessons.facts import NotYet, Scene, value_of
from ...lessons.judging import filled
from ...lessons.progress import Answer, Progress
from ...lessons.reading import Ask, Lesson, Step, all_lessons
from ...lessons.vocabulary import PLACES
from .. import theme


def list_html() -> str:
    """All lessons, to choose from."""
    items = "".join(
        f'<li><button type="button" data-lesson="{lesson.id}">'
        f"<strong>{lesson.number}. {html.escape(lesson.title)}</strong>"
        f'<span data-steps="{len(lesson.steps)}"></span><small>{html.escape(lesson.about)}</small></button></li>'
        for lesson in all_lessons()
    )
    return f"<ol>{items}</ol>"


def strip_html(lesson: Lesson, progress: Progress, scene: Scene, problem: str = "") -> str:
    """The open lesson at its step. Everything is escaped."""
    step, at, ticked = lesson.steps[progress.step], progress.step, progress.ticked(lesson)
    answer = progress.answer(lesson, step)
    dots = "".join(_dot(i, other, ticked[i], i == at) for i, other in enumerate(lesson.steps))
    fold = "Unfold" if progress.folded else "Fold"
    head = (
        f'<header><p class="lesson-name"><strong>Lesson {lesson.number}: {html.escape(lesson.title)}</strong> '
        f"<span>step {at + 1} of {len(lesson.steps)}</span></p><ol>{dots}</ol>"
        f'<button type="button" data-do="fold" aria-expanded="{str(not progress.folded).lower()}">{fold}</button>'
        '<button type="button" data-do="close">Leave</button></header>'
    )
    if progress.folded:
        return head
    parts = [f'<h3 tabindex="-1">{html.escape(step.title)}</h3><p>{_worded(filled(scene, step.say, "…"))}</p>']
    if step.ask is not None and answer.guess is None:
        parts.append(_asked(step.ask, scene))
    if problem:
        parts.append(theme.notice(problem, "warning"))
    if answer.told:
        parts.append(_answered(step, answer, scene))
    elif waits := _waits(step, answer):
        parts.append(f'<p class="lesson-waits">{_worded(waits)}</p>')
    last = at + 1 == len(lesson.steps)
    rest = ticked.count(False)
    onward = (
        f'<button type="button" class="lesson-next" data-go="{at + 1}">Next →</button>'
        if not last
        else '<button type="button" data-do="again">Once more from the start</button>'
    )
    if last:
        left = "is" if rest == 1 else "are"
        open_ones = f"{rest} of {len(ticked)} steps {left} still open: see the dots."
        over = open_ones if rest else "That was the whole lesson."
        parts.append(f'<p class="lesson-over">{over}</p>' if answer.told or rest < 2 else "")
    back = f'<button type="button" data-go="{at - 1}"{" disabled" if not at else ""}>← Back</button>'
    point = '<button type="button" data-do="show">Show me where</button>' if step.point else ""
    state = " lesson-ticked" if answer.told else ""
    return f'{head}<div class="lesson-step{state}">{"".join(parts)}<footer>{back}{point}{onward}</footer></div>'


def _dot(i: int, step: Step, done: bool, here: bool) -> str:
    said = html.escape(f"Step {i + 1}, {step.title}{', done' if done else ''}", quote=True)
    current = ' aria-current="step"' if here else ""
    mark = "✓" if done else i + 1
    return f'<li><button type="button" data-go="{i}" title="{said}" aria-label="{said}"{current}>{mark}</button></li>'


def _worded(words: str) -> str:
    """Words of a lesson, escaped; what stands between stars is stressed."""
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", html.escape(words))


def _asked(ask: Ask, scene: Scene) -> str:
    if ask.kind == "choice":
        given = "".join(
            f'<label><input type="radio" name="lesson-guess" value="{html.escape(name, quote=True)}"> '
            f"{_worded(words)}</label>"
            for name, words in ask.choices.items()
        )
    else:
        middle = ask.least + round((ask.most - ask.least) / 2 / ask.step) * ask.step
        drawn = _curve(ask, scene) if ask.kind == "curve" else ""
        given = (
            f'{drawn}<span class="lesson-slider"><input type="range" min="{ask.least:g}" max="{ask.most:g}" '
            f'step="{ask.step:g}" value="{middle:g}" aria-label="Your guess" '
            f'data-unit="{html.escape(ask.unit, quote=True)}"><output></output></span>'
        )
    question = _worded(filled(scene, ask.question, "…"))
    return (
        f'<form class="lesson-ask"><fieldset><legend>{question}</legend>{given}</fieldset>'
        '<button type="submit">Guess</button></form>'
    )


def _curve(ask: Ask, scene: Scene, guess: float | None = None, truth: float | None = None) -> str:
    """The place of a curve whose end is asked for; the browser draws it, and lets its end be dragged."""
    try:
        start = min(max(float(value_of(scene, ask.start)), ask.least), ask.most)
    except NotYet:
        start = ask.most
    known = {"low": ask.least, "high": ask.most, "start": start, "guess": guess, "truth": truth}
    ends = "".join(f' data-{name}="{value:g}"' for name, value in known.items() if value is not None)
    return (
        f'<svg class="lesson-curve" viewBox="0 0 320 120" role="img" aria-label="A curve that begins at {start:.4g}"'
        f"{ends}></svg>"
    )


def _answered(step: Step, answer: Answer, scene: Scene) -> str:
    told = list(answer.told)
    parts = []
    if step.ask is not None and answer.guess is not None:
        kind = {True: "good", False: "info", None: "info"}[answer.right]
        mark = {True: "✓ ", False: "", None: ""}[answer.right]
        parts.append(theme.notice(mark + told.pop(0), kind))
        if step.ask.kind == "curve" and not isinstance(answer.truth, str) and answer.truth is not None:
            parts.append(_curve(step.ask, scene, float(answer.guess), float(answer.truth)))
    parts += [f"<p>{_worded(words)}</p>" for words in told if words != "Done."]
    return (
        f'<div class="lesson-told" role="status" tabindex="-1"><p class="lesson-done">✓ Done</p>{"".join(parts)}</div>'
    )


def _waits(step: Step, answer: Answer) -> str:
    """What is left to do, in words."""
    if step.ask is not None and answer.guess is None:
        return "You have done it already: guess, and the answer stands here." if answer.done and step.done else ""
    done = step.done
    if not done or answer.done:
        return "" if answer.told else "The answer stands here as soon as the numbers are there."
    guess = "Your guess is kept. " if step.ask is not None else ""
    if "run" in done:
        end = "as soon as the run is over" if done["run"] == "finished" else "as soon as it has begun"
        return f"{guess}Press *Train*: this ticks itself {end}."
    if "balance" in done:
        return f"{guess}Press *Train all three*: this ticks itself when they are done."
    for kind in ("pressed", "shown", "changed"):
        if kind in done:
            title = PLACES[done[kind]].title
            times = f" {done['times']} times" if done.get("times", 1) > 1 else ""
            words = f"Press {title}{times}" if kind == "pressed" else f"Waiting for {title}"
            return f"{guess}{words}: this ticks itself."
    return f"{guess}This ticks itself when it is done."
