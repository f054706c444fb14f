"""The strip above the tabs that leads through a lesson, and the list of lessons under the masthead.

The browser's half is assets/lessons.js: it shows what `Strip` sends, outlines the place that a step points at, and
tells when it was pressed, shown or changed. Nothing is worked out before a lesson is opened.
"""

from __future__ import annotations

import html
import itertools
import re
import zlib
from collections.abc import Mapping
from typing import Any

import gradio as gr

from ..inspection import Look
from ..inspection.replay import Appearance
from ..lessons.facts import NotYet, Scene, value_of
from ..lessons.judging import checked, filled, holds, said_of
from ..lessons.progress import Answer, Progress
from ..lessons.reading import Ask, Lesson, Step, all_lessons, find_lesson
from ..lessons.vocabulary import PLACES, SETS, WATCHED
from ..service.balance import BalanceJob, BalanceView
from ..service.limits import LESSON_RUNS
from ..service.run_job import RunJob
from ..service.runs import OWN_TEXT, Source
from ..service.views import PairView, RunView
from ..storage import Checkpoint
from . import theme
from .chart import ASSETS
from .forms import run as form
from .forms import texts
from .forms.excerpts import beginning_of
from .links import query_of
from .page import QUIETLY, Page
from .tabs.inspect.looks import Looks
from .tabs.inspect.place import whole
from .tabs.inspect.replay import replay_of
from .tabs.inspect.tested import roles_of
from .tabs.inspect.validation import held_out
from .tabs.moe.frame import each

STORAGE_KEY = SECRET = "transformer-playground-lessons"
HABIT = "induction"
"""The habit whose appearance a lesson may ask for."""
LISTENS = {"run": ("#status",), "balance": ("#unbalanced-said", "#unbalanced-entropy"), "when": ("#status", "#samples")}
"""Doing → what on the page tells that it may be done by now."""


class Strip:
    """The strip and its handler. Holds the components; of a visitor it keeps nothing."""

    def __init__(self) -> None:
        """Draw it; `build` connects it to the page below."""
        self._answers = itertools.count(1)
        script = (ASSETS / "lessons.js").read_text(encoding="utf-8")
        self.strip = gr.HTML(
            None,
            html_template=_TEMPLATE.replace("LIST", _list()),
            js_on_load=script,
            apply_default_css=False,
            padding=False,
            elem_id="lessons",
        )
        self.progress = gr.BrowserState({}, storage_key=STORAGE_KEY, secret=SECRET)

    def build(self, page: Page) -> None:
        """Connect it, once all tabs are there."""
        self.page, self.looks = page, Looks(page)
        page.share("lessons.strip", self)
        page.later(self._connect)

    def _connect(self) -> None:
        page = self.page
        self.running = page.shared("train.running")
        self.settings = self.running.settings
        self.pair_of, self.looked_at = page.shared("moe.pair")
        self.controls = {name: page.shared(name) for name in (*SETS, *WATCHED) if page.shared(name) is not None}
        self.subject, self.views = page.shared("inspect.subject"), page.shared("inspect.views")
        c = self.settings.c
        inputs = {self.progress, page.visitor, page.model, self.subject, self.looked_at, *self.controls.values()}
        outputs = [self.strip, self.progress, page.tabs, page.model, self.views, *self.controls.values()]
        outputs += [*self.running.linked.form_parts, *(c[name] for name in ("letters", "linked", "forget"))]
        outputs = list(dict.fromkeys(outputs))
        self.strip.select(self.act, inputs, outputs, trigger_mode="multiple", **QUIETLY)

    def goes_on(self, events: list) -> None:
        """When all of these events of a page that opens are over, an open lesson goes on."""
        for event in events:
            ready = f"() => window.playgroundLessons?.ready({len(events)})"
            event.then(None, None, None, js=ready, api_visibility="private")

    # ---- what a visitor does -----------------------------------------------------------------------------------------

    def act(self, values: dict, event: gr.EventData, request: gr.Request) -> dict:
        """Something was pressed in the strip, or done on the page that it waits for."""
        said = event._data if isinstance(event._data, dict) else {}
        progress, does = Progress.from_dict(values[self.progress]), said.get("do")
        visitor = values[self.page.visitor]
        if does == "resume" and (asked := query_of(request).get("lesson")) and said.get("linked") is True:
            if find_lesson(asked) is None:
                there = "; there are " + ", ".join(f"{lesson.number} {lesson.title}" for lesson in all_lessons())
                return {self.strip: self._value(progress, problem=f"There is no lesson “{asked[:40]}”{there}.")}
            does, said = "open", {"lesson": asked}
        if does == "open":
            lesson = find_lesson(said.get("lesson"))
            if lesson is None:
                return {self.strip: self._value(progress)}
            self._open(progress, lesson, visitor)
        lesson = find_lesson(progress.lesson) if progress.lesson else None
        if lesson is None or does == "close":
            progress.lesson = ""
            return self._told(progress)
        scene = self.scene(lesson, progress, values)
        if does == "fold":
            progress.folded = not progress.folded
            return self._told(progress, scene)
        if does == "again":
            progress.answers.pop(lesson.id, None)
            progress.before.pop(lesson.id, None)
            self._open(progress, lesson, visitor)
        if does == "go":
            progress.step = min(max(whole(said.get("step")), 0), len(lesson.steps) - 1)
            progress.folded = False
        step, sets = lesson.steps[progress.step], {}
        answer, problem = progress.answer(lesson, step), ""
        arrives = does in ("open", "again", "go", "resume")
        if arrives or does == "show":
            sets = self.set_up(step, answer, values, lesson, only_where=does == "show")
        elif does == "guess" and answer.guess is None and step.ask is not None:
            try:
                answer.guess = checked(step.ask, said.get("guess"))
            except (ValueError, TypeError) as mistake:
                problem = f"{mistake}."
        elif does == "did" and said.get("step") == step.id and step.done.keys() & {"pressed", "shown", "changed"}:
            answer.done = True
        before = (answer.done, answer.told)
        waits = self._settle(scene, step, answer, lesson, progress, visitor, values)
        if (told := self.page.shared("class.told")) is not None:
            told(visitor, lesson, progress)
        shown = self._told(progress, scene, problem=problem or waits, arrives=arrives, points=does == "show")
        same = said.get("seen") == shown[self.strip]["key"] and before == (answer.done, answer.told)
        if does == "look" and same:
            return {self.strip: {"n": next(self._answers)}}
        return {**sets, **shown}

    def _open(self, progress: Progress, lesson: Lesson, visitor: str) -> None:
        """Turn to a lesson: where it was left, or at its beginning. Runs that are there by then do not count."""
        if lesson.id not in progress.before:
            runs = [job.id for kind in (RunJob, BalanceJob) for job in self.page.board.of(visitor, kind=kind)]
            progress.before[lesson.id] = runs[-LESSON_RUNS:]
        ticked = progress.ticked(lesson)
        progress.lesson, progress.folded = lesson.id, False
        progress.step = ticked.index(False) if False in ticked else 0

    def _settle(
        self, scene: Scene, step: Step, answer: Answer, lesson: Lesson, progress: Progress, visitor: str, values: dict
    ) -> str:
        """See whether the step is done, and say what it then says; returns why it cannot be said yet."""
        try:
            if not answer.done and step.done:
                answer.done = self._is_done(scene, step, lesson, progress, visitor, values)
            if answer.ticked(step) and not answer.told:
                told, judged = said_of(scene, step, answer.guess)
                answer.told = tuple(told) or ("Done.",)
                if judged is not None:
                    answer.truth, answer.right = judged.truth, judged.right
        except NotYet as problem:
            return str(problem) if answer.ticked(step) else ""
        return ""

    def _is_done(
        self, scene: Scene, step: Step, lesson: Lesson, progress: Progress, visitor: str, values: dict
    ) -> bool:
        """Whether the thing was done, as far as the server can tell."""
        done = step.done
        if "run" in done:
            jobs = self._runs(lesson, done.get("of", "run"), progress, visitor)
            return bool(jobs) and (done["run"] == "begun" or (jobs[-1].has_result and not jobs[-1].active))
        if "balance" in done:
            job = self._balance_job(lesson, progress, visitor)
            return job is not None and (done["balance"] == "begun" or (job.has_result and not job.active))
        if "when" in done:
            return holds(scene, step.when)
        if "control" in done:
            value = values.get(self.controls.get(done["control"]))
            return value == done["is"] if "is" in done else bool(value)
        return False

    # ---- what a lesson sees ------------------------------------------------------------------------------------------

    def scene(self, lesson: Lesson, progress: Progress, values: dict) -> Scene:
        """What this visitor has at the moment."""
        page, visitor, model = self.page, values[self.page.visitor], values[self.page.model]

        def value(name: str) -> Any:
            return values.get(self.controls.get(name))

        def run(name: str) -> tuple[RunView, Checkpoint | None]:
            if name == "chosen":
                checkpoint = page.registry.get(model, visitor)
                job = page.board.find(visitor, model)
                return (job.view() if job else RunView.of_checkpoint(model, checkpoint)), checkpoint
            jobs = self._runs(lesson, name, progress, visitor)
            if not jobs:
                called = "" if name == "run" else f" called “{name}” in this lesson"
                raise NotYet(f"There is no model{called} of yours yet: train it first.")
            return jobs[-1].view(), jobs[-1].checkpoint

        def balance() -> BalanceView:
            job = self._balance_job(lesson, progress, visitor)
            if job is None:
                raise NotYet("Press “Train all three” first.")
            return job.view()

        def pair() -> PairView:
            found = self.pair_of(visitor, *each(values[self.looked_at]))
            if found is None:
                raise NotYet("Choose a dense model and a mixture first.")
            return found

        def appeared(look: Look) -> Appearance | None:
            return replay_of(look).appearance(HABIT)

        greedy = value("generate.greedy") or not value("generate.temperature")
        place = tuple(whole(value(f"inspect.{name}")) for name in ("layer", "head", "query", "key"))
        return Scene(
            run=run,
            checkpoint=lambda: page.registry.get(model, visitor),
            look=lambda: self.looks.look(visitor, model, value("inspect.prompt"), example=values[self.subject]),
            place=place,
            held_out=lambda look: held_out(page, look),
            role=lambda look: roles_of(page, look).tests.role(
                min(place[0], look.config.n_layers - 1), min(place[1], look.config.n_heads - 1)
            ),
            appeared=appeared,
            pair=pair,
            balance=balance,
            generate_prompt=str(value("generate.prompt") or "")[: page.limits.prompt],
            dice="none" if greedy else "kept" if value("generate.same_again") else "thrown",
            lesson_prompt=lesson.prompt,
        )

    def _runs(self, lesson: Lesson, name: str, progress: Progress, visitor: str) -> list[RunJob]:
        """The visitor's runs that count as the one of this name, the newest last."""
        needed, old = lesson.runs.get(name, {}), progress.before.get(lesson.id, ())
        return [
            job
            for job in self.page.board.of(visitor)
            if job.id not in old and job.state != "failed" and _fits(needed, job)
        ]

    def _balance_job(self, lesson: Lesson, progress: Progress, visitor: str) -> BalanceJob | None:
        old = progress.before.get(lesson.id, ())
        jobs = [job for job in self.page.board.of(visitor, kind=BalanceJob) if job.id not in old]
        return jobs[-1] if jobs else None

    # ---- what a step sets --------------------------------------------------------------------------------------------

    def set_up(
        self, step: Step, answer: Answer, values: dict, lesson: Lesson, *, only_where: bool = False
    ) -> dict[Any, Any]:
        """Updates that put the controls where a step wants them. Of one that is done already, only where it is seen."""
        page, sets = self.page, dict(step.sets)
        place = PLACES.get(step.point)
        tab = sets.pop("tab", place.tab if place else "")
        view = sets.pop("view", place.view if place else "")
        out: dict[Any, Any] = {}
        if tab:
            out[page.tabs] = page.open(tab)
        if view:
            out[self.views] = gr.Tabs(selected=view)
        if only_where or answer.ticked(step):
            return out
        visitor, another = values[page.visitor], False
        if (name := sets.pop("model", None)) is not None:
            another = values[page.model] != f"shipped-{name}"
            if another and page.registry.has(f"shipped-{name}", None):
                out[page.model] = page.model_list(visitor, f"shipped-{name}")
        trained = {name.partition(".")[2]: value for name, value in sets.items() if name.startswith("train.")}
        if trained and page.board.active(visitor) is None:
            out |= self.settings.load(self.form_of(trained, lesson)) | self.running.linked.forget()
            out.pop(self.settings.c["text_fits"], None)
        for name, value in sets.items():
            # another model brings a prompt of its own
            if not name.startswith("train.") and not (another and name.endswith(".prompt")):
                out[self.controls[name]] = value
        return out

    def form_of(self, wanted: Mapping[str, Any], lesson: Lesson) -> dict[str, Any]:
        """What the form of the Train tab holds for these settings: those of size and text, with the wanted ones."""
        kind = wanted.get("source", OWN_TEXT if "text" in wanted else "stories")
        source, size = Source(kind, text=str(wanted.get("text", ""))), wanted.get("size", "small")
        tokens = texts.tokens_in(source.text, "char")
        named = form.base_values(size, source.kind, self.page.limits, (tokens, "char"))
        if "steps" in wanted:
            steps = wanted["steps"]
            named |= {"eval_every": max(steps // 20, 5), "sample_every": max(steps // 8, 1)}
            named["warmup_steps"] = min(named["warmup_steps"], max(steps // 10, 1))
        prompt = lesson.prompt or texts.PROMPTS.get(source.kind) or beginning_of(source.text)
        named |= texts.values_of(source) | {"prompt": prompt, "base": size, "size": size, "suited": f"{tokens} {size}"}
        return named | {name: value for name, value in wanted.items() if name in form.BY_NAME}

    # ---- what is seen ------------------------------------------------------------------------------------------------

    def _told(self, progress: Progress, scene: Scene | None = None, **more: Any) -> dict:
        return {self.strip: self._value(progress, scene, **more), self.progress: progress.to_dict()}

    def _value(
        self,
        progress: Progress,
        scene: Scene | None = None,
        *,
        problem: str = "",
        arrives: bool = False,
        points: bool = False,
    ) -> dict[str, Any]:
        """What the browser's half shows: the strip as HTML, where it points, and what it waits for."""
        lessons = {lesson.id: lesson for lesson in all_lessons()}
        lesson = lessons.get(progress.lesson)
        ticks = {name: sum(progress.ticked(lessons[name])) for name in progress.answers if name in lessons}
        value = {"n": next(self._answers), "whole": True, "html": "", "ticks": ticks, "open": progress.lesson}
        if lesson is None:
            return value | {"html": theme.notice(problem, "warning") if problem else ""}
        step = lesson.steps[progress.step]
        answer = progress.answer(lesson, step)
        place = PLACES.get(step.point)
        shown = strip_html(lesson, progress, scene or Scene(), problem)
        live = "{" in step.say and place is not None and not answer.told
        value |= {
            "html": shown,
            "key": zlib.crc32(shown.encode()),
            "live": place.selector if live else "",
            "step": step.id,
            "folded": progress.folded,
            "point": {"at": place.selector, "fold": place.fold} if place else None,
            "awaits": None if answer.told else awaited(step, answer),
            "arrives": arrives,
            "points": points,
        }
        return value


def _fits(needed: Mapping[str, Any], job: RunJob) -> bool:
    source = job.spec.source
    return (
        needed.get("text", source.kind) == source.kind
        and needed.get("holds", "") in source.text
        and job.spec.model.causal == needed.get("causal", True)
    )


def awaited(step: Step, answer: Answer) -> dict[str, Any] | None:
    """What the browser has to watch for."""
    for kind in ("pressed", "shown", "changed"):
        if kind in step.done and not answer.done:
            place = PLACES[step.done[kind]]
            return {"kind": kind, "at": place.selector, "times": step.done.get("times", 1)}
    if step.done and not answer.done:
        kind = next(iter(step.done))
        return {"kind": "told", "at": LISTENS.get(kind, ())}
    return {"kind": "told", "at": LISTENS["when"]} if answer.ticked(step) else None


# ---- as HTML ---------------------------------------------------------------------------------------------------------

# 'select' is named for gr.HTML, which looks up the events of a component in the script
_TEMPLATE = """<nav class="lesson-list" aria-label="Lessons"><details><summary>Lessons</summary>LIST</details></nav>
<section class="lesson" aria-label="Lesson" hidden></section>"""


def _list() -> str:
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
        over = (
            "That was the whole lesson." if not rest else f"{rest} of {len(ticked)} steps are still open: see the dots."
        )
        parts.append(f'<p class="lesson-over">{over}</p>' if answer.told or rest < 2 else "")
    back = f'<button type="button" data-go="{at - 1}"{" disabled" if not at else ""}>← Back</button>'
    point = '<button type="button" data-do="show">Show me where</button>' if step.point else ""
    return f'{head}<div class="lesson-step">{"".join(parts)}<footer>{back}{point}{onward}</footer></div>'


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
