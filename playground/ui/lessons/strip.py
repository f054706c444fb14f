"""The strip and its buttons: guesses, steps, and checks whether a step's task was done."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Mapping
from typing import Any

import gradio as gr

from ...lessons.judging import checked, holds, missing, said_of
from ...lessons.progress import Answer, Progress
from ...lessons.reading import Lesson, Step, all_lessons, find_lesson
from ...lessons.scene import NotYet
from ...lessons.vocabulary import PLACES, Place
from ...service.comparisons import ComparisonJob
from ...service.limits import LESSON_RUNS
from ...service.run_job import RunJob
from ...service.runs import OWN_TEXT, Source
from .. import theme
from ..forms import run as form
from ..forms import texts
from ..forms.excerpts import beginning_of
from ..glossary import BUTTON
from ..links import query_of
from ..own_files import ASSETS
from ..page import QUIETLY, UNSEEN, Page
from ..tabs.train.settings import OF_LINK
from .scenes import Here, whole
from .words import list_html, strip_html

STORAGE_KEY = SECRET = "transformer-playground-lessons"
LISTENS = {
    "run": ("#status",),
    "pair": ("#moe-bar", "#moe-verdict"),
    "balance": ("#moe-bar", "#moe-verdict"),
    "when": (
        "#status", "#samples", "#generate-panel [data-slot=game-result]",
        "#inspect-panel :is([data-slot=receipt], [data-slot=edits-in-force])",
    ),
}  # fmt: skip
"""Action → what on the page shows that it may be done by now."""

# 'select' is named for gr.HTML, which finds a component's events in the script
_TEMPLATE = f"""<nav id="learn-menu" class="lesson-list" aria-label="Learn" popover><h2>Lessons</h2>LIST
<p>{BUTTON}<button type="button" class="class-button">A class: join or make one</button></p></nav>
<section class="lesson" aria-label="Lesson" hidden></section>"""


class Strip:
    """The strip and its handler. Holds the components, and nothing about visitors."""

    def __init__(self) -> None:
        """Draw the strip; `build` connects it to the page below."""
        self._answers = itertools.count(1)
        script = (ASSETS / "lessons.js").read_text(encoding="utf-8")
        self.strip = gr.HTML(
            None,
            html_template=_TEMPLATE.replace("LIST", list_html()),
            js_on_load=script,
            apply_default_css=False,
            padding=False,
            elem_id="lessons",
        )
        self.progress = gr.BrowserState({}, storage_key=STORAGE_KEY, secret=SECRET)

    def build(self, page: Page) -> None:
        """Share the strip with the page, and connect it once all tabs are built."""
        self.page = page
        page.share("lessons.strip", self)
        page.later(self._connect)

    def _connect(self) -> None:
        page = self.page
        self.running = page.shared("train.running")
        self.settings, self.comparing = self.running.settings, page.shared("moe.comparing")
        self.panels = {name: page.shared(name) for name in ("inspect", "generate", "moe")}
        self.inputs = {self.progress, page.visitor, page.model, *self.panels.values()}
        outputs = [self.strip, self.progress, page.tabs, page.model, *self.panels.values(), *self.comparing.parts]
        outputs += [*self.running.form_parts, *(self.settings.c[name] for name in OF_LINK)]
        outputs = list(dict.fromkeys(outputs))
        self.strip.select(self.act, self.inputs, outputs, trigger_mode="multiple", **QUIETLY)

    def goes_on(self, events: list) -> None:
        """Continue an open lesson once all these events of a page load are over."""
        for event in events:
            ready = f"() => window.playgroundLessons?.ready({len(events)})"
            event.then(None, None, None, js=ready, **UNSEEN)

    # ---- what a visitor does -----------------------------------------------------------------------------------------

    def act(self, values: dict, event: gr.EventData, request: gr.Request) -> dict:
        """Handle a press in the strip, or an action on the page for which it waits.

        The answer depends only on what is sent, including the progress, and names the request. So a lost or slow
        request can be repeated.
        """
        said = event._data if isinstance(event._data, dict) else {}
        visitor, data = values[self.page.visitor], self.page.registry.data
        known = data.knows(visitor)
        sent = said.get("progress") or values[self.progress]
        kept = data.lessons(visitor) if known and not sent and said.get("do") == "resume" else ""
        progress = Progress.from_dict(json.loads(kept) if kept else sent)
        out = self._act(values, said, progress, request)
        now = progress.to_dict()
        out[self.strip] |= {"asked": whole(said.get("ask")), "progress": now}
        if known and now != sent:
            data.keep_lessons(visitor, json.dumps(now))
        return out

    def _act(self, values: dict, said: dict, progress: Progress, request: gr.Request) -> dict:
        does = said.get("do")
        visitor = values[self.page.visitor]
        if does == "resume" and (asked := query_of(request).get("lesson")) and said.get("linked") is True:
            if find_lesson(asked) is None:
                return {self.strip: self._value(progress, problem=f"There is no lesson “{asked[:40]}”.")}
            does, said = "open", {"lesson": asked}
        if does == "open":
            lesson = find_lesson(said.get("lesson"))
            if lesson is None:
                return {self.strip: self._value(progress)}
            self._open(progress, lesson, visitor)
        lesson = find_lesson(progress.lesson) if progress.lesson else None
        lesson = self.page.shared("class.lesson")(visitor, lesson)
        if lesson is None or does == "close":
            progress.lesson = ""
            sets_pair = lesson is not None and any(under("pair", step.sets) for step in lesson.steps)
            return self._told(progress) | (self.comparing.load({}) if sets_pair else {})
        if does == "again":
            progress.answers.pop(lesson.id, None)
            progress.before.pop(lesson.id, None)
            self._open(progress, lesson, visitor)
        if does == "go":
            progress.step = min(max(whole(said.get("step")), 0), len(lesson.steps) - 1)
        here = Here(self.page, lesson, lesson.steps[progress.step], progress, values)
        step, answer, sets, problem = here.step, here.answer, {}, ""
        if does in ("open", "again") and step.point == "bets" and not any(progress.ticked(lesson)):
            self.page.shared("generate.games").end(visitor, here.about())
        arrives = does in ("open", "again", "go", "resume")
        if arrives or does == "show":
            # a run's settings are set again: they may have been changed, or could not be set
            only_where = does == "show" and step.doing != "run"
            keeps = does == "resume" and answer.ticked(step)  # a reloaded page shows what its address says
            sets = self.set_up(here, only_where=only_where, fresh=does in ("open", "again"), keeps=keeps)
        elif does == "guess" and answer.guess is None and step.ask is not None:
            try:
                if waiting := missing(here, step):
                    raise ValueError(waiting.removesuffix("."))
                answer.guess = checked(step.ask, said.get("guess"))
            except (ValueError, TypeError) as mistake:
                problem = f"{mistake}."
        elif does == "did" and said.get("step") == step.id and step.done and step.done.place:
            answer.done = True
        before = (answer.done, answer.told)
        waits = self._settle(here)
        if (told := self.page.shared("class.told")) is not None:
            told(visitor, lesson, progress)
        if not answer.done and step.doing == "run":
            problem = problem or self._in_the_way(here)
        problem = problem or ("" if self.page.model in sets else waits)
        shown = self._told(progress, here, problem=problem, arrives=arrives, points=does == "show")
        same = said.get("seen") == shown[self.strip]["key"] and before == (answer.done, answer.told)
        if does == "look" and same:
            return {self.strip: {"n": next(self._answers)}}
        return {**sets, **shown}

    def _open(self, progress: Progress, lesson: Lesson, visitor: str) -> None:
        """Open a lesson where it was left, or at its beginning. Runs that exist by then do not count."""
        if lesson.id not in progress.before:
            runs = [job.id for kind in (RunJob, ComparisonJob) for job in self.page.board.of(visitor, kind=kind)]
            progress.before[lesson.id] = runs[-LESSON_RUNS:]
        ticked = progress.ticked(lesson)
        progress.lesson = lesson.id
        progress.step = ticked.index(False) if False in ticked else 0

    def _settle(self, here: Here) -> str:
        """Check whether the step is done, and add what it then says; returns why it cannot say it yet."""
        step, answer = here.step, here.answer
        try:
            if not answer.done and step.done:
                answer.done = self._is_done(here)
            if answer.ticked(step) and not answer.told:
                told, judged = said_of(here, step, answer.guess)
                answer.told = tuple(told) or ("Done.",)
                if judged is not None:
                    answer.truth, answer.right = judged.truth, judged.right
        except NotYet as problem:
            return str(problem) if answer.ticked(step) else ""
        return ""

    def _is_done(self, here: Here) -> bool:
        """Whether the step's task was done, as far as the server can tell."""
        done = here.step.done
        if done.kind == "when":
            return holds(here, done.when)
        job = here.awaited()
        return job is not None and _over(job) and not (done.kind == "run" and self._another(here.step, job))

    def _in_the_way(self, here: Here) -> str:
        """Why a running or ended run does not complete a step that waits for one."""
        going = self.page.board.active(here.visitor)
        if going is not None and going.id in here.old:
            return "Another run of yours is still training. Press Stop or wait for its end, then press Train."
        job = here.awaited()
        return self._another(here.step, job) if job is not None and _over(job) else ""

    def _another(self, step: Step, job: RunJob) -> str:
        """What a run lacks to be the one that a step asks for."""
        planned, asked = job.spec.training.steps, step.sets.get("train.steps")
        if asked is not None and planned != asked:
            return f"That run has {planned:,} steps, not {asked:,}. Press “Show me where” to set the form, then Train."
        history = job.view().history
        if (history.finished or {}).get("reason") == "stopped":
            return f"That run stopped after {history.last_step:,} of {planned:,} steps. Press Resume or Train."
        return ""

    # ---- what a step sets --------------------------------------------------------------------------------------------

    def set_up(self, here: Here, *, only_where: bool, fresh: bool, keeps: bool) -> dict[Any, Any]:
        """Updates that set the controls for a step; the forms only if the step is not done. `fresh`: first reset the
        panels and apply the lesson's scene. `keeps`: leave the panels' fields as the visitor has them."""
        page, step, sets, visitor = self.page, here.step, here.step.sets, here.visitor
        place, model = PLACES.get(step.point), here.about()
        tab = sets.get("tab", place.tab if place else "")
        view = sets.get("view", place.view if place else "")
        out: dict[Any, Any] = {}
        if tab:
            out[page.tabs] = gr.Tabs(selected=tab)
        held = begun(here.lesson, step) if fresh else {}
        for name, panel in self.panels.items():
            where = {"view": view} if view and name == "inspect" else {}
            where |= dict(place.opens) if place and place.tab == tab == name else {}
            move = under(name, {} if keeps else held | sets)
            move |= {"typed": True, "choice": None} if "prompt" in move else {}
            move |= {"pair": pair} if name == "moe" and (pair := here.pair_ids()) else {}
            old = ("query", "key") if "head" in move else ("key",) if "query" in move else ()
            move = dict.fromkeys(old) | move  # the old cell belongs elsewhere
            clean = fresh and name != "moe"  # its pair may be the one that this lesson has trained
            if clean or where | move:
                out[panel] = {"move": move | where, "fresh": clean, "of": model or here.model}
        if model not in (None, here.model):
            out[page.model] = page.model_list(visitor, model)
        if only_where or here.answer.ticked(step):
            return out
        trained = under("train", sets)
        going = page.board.active(visitor)
        if trained and (going is None or going.id in here.old):
            out |= self.settings.load(self.form_of(trained, here.lesson))
            out |= {self.settings.c[name]: "" for name in OF_LINK}
        if pair := under("pair", sets):
            out |= self.comparing.load(pair)
        return out

    def form_of(self, wanted: Mapping[str, Any], lesson: Lesson) -> dict[str, Any]:
        """The Train tab's form for these settings: those of size and text, with the wanted ones."""
        kind = wanted.get("source", OWN_TEXT if "text" in wanted else "stories")
        source, size = Source(kind, text=str(wanted.get("text", ""))), wanted.get("size", "small")
        own = texts.own_of(source.text, "char")
        named = form.base_values(size, source.kind, own)
        if "steps" in wanted:
            named = form.with_steps(named, wanted["steps"])
        prompt = lesson.prompt or texts.PROMPTS.get(source.kind) or beginning_of(source.text)
        named |= texts.values_of(source) | {"prompt": prompt, "base": size, "size": size, "suited": form.written(own)}
        return named | {name: value for name, value in wanted.items() if name in form.BY_NAME}

    # ---- what is seen ------------------------------------------------------------------------------------------------

    def _told(self, progress: Progress, here: Here | None = None, **more: Any) -> dict:
        return {self.strip: self._value(progress, here, **more), self.progress: progress.to_dict()}

    def _value(
        self,
        progress: Progress,
        here: Here | None = None,
        *,
        problem: str = "",
        arrives: bool = False,
        points: bool = False,
    ) -> dict[str, Any]:
        """What the browser's half receives: the strip as HTML, where it points, and what it waits for."""
        lessons = {lesson.id: lesson for lesson in all_lessons()}
        ticks = {name: sum(progress.ticked(lessons[name])) for name in progress.answers if name in lessons}
        value = {"n": next(self._answers), "whole": True, "html": "", "ticks": ticks, "open": progress.lesson}
        if here is None:
            return value | {"html": theme.notice(problem, "warning") if problem else ""}
        step, answer = here.step, here.answer
        place, shown = where(step, answer), strip_html(progress, here, problem)
        covers = covered(here.lesson, progress, step, begun=here.begun())
        live = ("{" in step.say or answer.asked(step)) and place is not None and not answer.told
        value |= {
            "html": shown,
            "key": zlib.crc32(f"{shown}{covers}".encode()),
            "live": place.selector if live else "",
            "step": step.id,
            "point": {"at": place.selector} if place else None,
            "awaits": None if answer.told else awaited(step, answer),
            "arrives": arrives,
            "points": points,
            "covers": covers,
        }
        return value


def _over(job: RunJob | ComparisonJob) -> bool:
    """Whether a job has ended, with something to show."""
    return job.has_result and not job.active


def under(tab: str, sets: Mapping[str, Any]) -> dict[str, Any]:
    """The settings for one tab or form, by their names there."""
    return {name.partition(".")[2]: value for name, value in sets.items() if name.startswith(f"{tab}.")}


def begun(lesson: Lesson, at: Step) -> dict[str, Any]:
    """What a lesson has set before a given step: its scene, and the settings of the earlier steps."""
    found = dict(lesson.scene)
    for step in lesson.steps[: lesson.steps.index(at)]:
        found |= {name: value for name, value in step.sets.items() if name.startswith(("generate.", "inspect."))}
    return found


def covered(lesson: Lesson, progress: Progress, at: Step, *, begun: bool) -> dict[str, list[str]]:
    """Places that hold an answer, by what must come first: this step's `guess`, its end (`done`), a `later` step.

    Until the training that the step waits for has `begun`, another run's results are there.
    """
    answer = progress.answer(lesson, at)
    needs = {at.point, at.then, at.done.place if at.done else "", *(at.ask.covers if at.ask else ())}
    own = list(at.ask.covers) if at.ask else []
    undone = at.ask is not None and at.ask.until == "done" and not answer.done
    first = "guess" if answer.asked(at) else "done" if undone else "" if begun or answer.done else "begun"
    open_later = [
        step for step in lesson.steps[lesson.steps.index(at) + 1 :] if progress.answer(lesson, step).asked(step)
    ]
    later = [name for step in open_later for name in step.ask.covers if name not in needs]
    return {
        until: list(dict.fromkeys(PLACES[name].selector for name in names))
        for until, names in ((first, own), ("later", later))
        if until
    }


def where(step: Step, answer: Answer) -> Place | None:
    """The place to which a step points; once the step is done, the place of its result."""
    came = step.then or (step.done and step.done.place) or ("curve" if step.doing == "run" else "")
    return PLACES.get(came if came and answer.told else step.point)


def awaited(step: Step, answer: Answer) -> dict[str, Any] | None:
    """The events for which the browser has to watch."""
    if step.done and not answer.done:
        if step.done.place:
            return {"kind": step.doing, "at": PLACES[step.done.place].selector, "times": step.done.times}
        return {"kind": "told", "at": LISTENS.get(step.doing, ())}
    return {"kind": "told", "at": LISTENS["when"]} if answer.ticked(step) else None
