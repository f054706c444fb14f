"""What happens to a run: Train, Stop, Resume, looking at it while it goes on, finding it again."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ....model import Transformer
from ....service.run_job import RunJob
from ....service.runs import predict
from ....service.views import RunView
from ...chart import show
from ...followers import TICK, Follower, Followers, tick
from ...links import query_of
from ...page import QUIETLY, Page, in_words, scroll_to
from ...theme import quiet
from . import form, watch
from .replay import Replay, has_link, match, run_letters
from .runs_table import runs_table
from .settings import Settings

OWN_TEXT_CONTROLS = ("own_kind", "text", "upload", "hub_repo", "hub_file", "hub_type")


class Running:
    """The handlers of runs. Holds the components and what all visitors share; of a visitor it keeps nothing."""

    def __init__(self, page: Page, settings: Settings, results: dict[str, Any]):
        self.page, self.settings, self.c, self.r = page, settings, settings.c, results
        self.replay = Replay(page, settings)
        self.followers = Followers()
        self.timer = gr.Timer(TICK, active=False)
        buttons = (self.c[name] for name in ("train", "stop", "resume", "why"))
        self.views = [*results.values(), *buttons, self.timer, page.model]

    def connect(self) -> None:
        """Bind them."""
        c, r, page = self.c, self.r, self.page
        self.replay.connect(r["copy"], r["letters"])
        who = [page.visitor, page.model, r["beside"]]
        own = {c[name] for name in OWN_TEXT_CONTROLS}
        c["train"].click(None, None, None, js=scroll_to("#train-results"))
        c["train"].click(self.train, {*self.settings.inputs, *own, *who, c["letters"]}, self.views, **QUIETLY)
        c["stop"].click(self.stop, who, self.views, **QUIETLY)
        c["resume"].click(self.resume, [*who, c["steps"]], self.views, **QUIETLY)
        self.timer.tick(self.look, who, self.views, **QUIETLY)
        page.on_load(self.attach, who, [*self.views, *self.replay.form_parts])
        page.model.change(self.choose, who, self.views, **QUIETLY)
        c["prompt"].submit(self.ask, [c["prompt"], *who], self.views, **QUIETLY)
        r["beside"].input(self.choose, who, self.views, **QUIETLY)
        page.later(self._connect_talk)

    def _connect_talk(self) -> None:
        page, talk = self.page, self.r["talk"]
        if "generate" not in page.tab_ids:
            talk.visible = False
            return
        prompt = page.shared("generate.prompt")
        if prompt is None:
            talk.click(lambda: page.open("generate"), None, page.tabs, **QUIETLY)
        else:
            talk.click(lambda text: (page.open("generate"), text), self.c["prompt"], [page.tabs, prompt], **QUIETLY)

    def train(self, values: dict, request: gr.Request) -> dict:
        """Press Train: check, begin, and show the empty chart at once."""
        with in_words():
            named = self.settings.named(values)
            visitor = self.page.known(values[self.page.visitor])
            source = form.source_of(named, self.page.limits)
            spec = form.run_spec(named, source, self.page.limits)
            card, spec = self.replay.applied(values[self.c["letters"]], spec)
            job = self.page.board.start(visitor, spec, repeats=card)
        return self._follow(job, request)

    def resume(self, visitor: str, model_id: str, beside: list[str], steps: float, request: gr.Request) -> dict:
        """Press Resume: go on with the run that is shown, or train a finished one for as many steps again."""
        with in_words():
            more = int(steps) if isinstance(steps, (int, float)) else 1
            job = self.page.board.resume(self.page.known(visitor), model_id, more_steps=more)
        return self._follow(job, request, beside)

    def stop(self, visitor: str, model_id: str, beside: list[str], request: gr.Request) -> dict:
        """Press Stop."""
        job = self.page.board.stop(visitor)
        return self._draw(job.view(), visitor, self.followers.of(request), beside) if job else gr.skip()

    def look(self, visitor: str, model_id: str, beside: list[str], request: gr.Request) -> dict:
        """A tick of the timer: show what is new of the run that is followed."""
        follower = self.followers.of(request)
        job = self.page.board.active(visitor) or self.page.board.find(visitor, follower.run_id)
        if job is None:
            return {self.timer: gr.Timer(active=False)}
        settled, changed = job.settled, follower.run_id != job.id or follower.version != job.version
        if not (settled or changed):
            return gr.skip()
        out = self._draw(job.view(), visitor, follower, beside, whole=settled)
        if settled:
            out[self.timer] = gr.Timer(active=False)
            if job.checkpoint is not None:
                out[self.page.model] = self.page.model_list(visitor, job.id)
            elif job.state == "failed" and (before := self.view_of(visitor, model_id)) is not None:
                # nothing came of it: why, above what was there before
                out |= self._draw(before, visitor, follower, beside, whole=True)
                out[self.r["status"]] = watch.status(job.view()) + watch.status(before)
        return out

    def attach(self, visitor: str, model_id: str, beside: list[str], request: gr.Request) -> dict:
        """A browser opened the page: go on watching a run or show the chosen one, with the last run's form."""
        last = self.page.board.active(visitor) or next(reversed(self.page.board.of(visitor)), None)
        linked = "run" in query_of(request)  # whose settings are another's
        form_before = {} if last is None or linked else self.replay.restore(last.view(), last.spec)
        if last is not None and last.active:
            return self._follow(last, request) | form_before
        view = self.view_of(visitor, model_id)
        if view is None or model_id == self.page.registry.default:
            return form_before or gr.skip()  # the page opens with it
        return self._show(view, visitor, request, []) | form_before

    def choose(self, visitor: str, model_id: str, beside: list[str], request: gr.Request) -> dict:
        """Another model was chosen, or other runs to draw beside it. A run that is going on stays in view."""
        job = self.page.board.active(visitor)
        view = job.view() if job else self.view_of(visitor, model_id)
        return gr.skip() if view is None else self._show(view, visitor, request, beside)

    def ask(self, prompt: str, visitor: str, model_id: str, beside: list[str], request: gr.Request) -> Any:
        """Enter in the prompt: what comes next, according to the model shown, and before it was trained."""
        job = self.page.board.active(visitor)
        if job is not None:
            busy = "The run under way keeps to the prompt it began with: press Enter again when it is over."
            return {self.r["question"]: quiet(busy)}
        with in_words():
            self.page.limits.check_prompt(prompt)
            view = self.view_of(visitor, model_id)
            checkpoint = self.page.registry.get(model_id, visitor)
            ids = checkpoint.tokenizer.encode(prompt)[-checkpoint.config.context_length :]
            if view is None or not ids:
                raise ValueError("The prompt is empty: type something for the model to go on from.")
        job = self.page.board.find(visitor, model_id)
        # the same seed makes the same untrained model again
        untrained = Transformer(checkpoint.config, seed=job.spec.training.seed) if job else None
        before = predict(untrained, ids) if untrained else None
        return self._show(view.asked(prompt, predict(checkpoint.model, ids), before), visitor, request, beside)

    def _follow(self, job: RunJob, request: gr.Request, beside: list[str] | None = None) -> dict:
        view = job.view()
        timer = gr.Timer(tick(view.time_left), active=True)
        return self._show(view, job.visitor, request, beside or []) | {self.timer: timer}

    def _show(self, view: RunView, visitor: str, request: gr.Request, beside: list[str]) -> dict:
        return self._draw(view, visitor, self.followers.fresh(request), beside, whole=True)

    def view_of(self, visitor: str, model_id: str | None) -> RunView | None:
        """What there is to show of a model: its run, or the one that it remembers."""
        job = self.page.board.find(visitor, model_id)
        return job.view() if job else recorded(self.page, model_id, visitor)

    def _draw(self, view: RunView, visitor: str, follower: Follower, beside: list[str], *, whole: bool = False) -> dict:
        """What the outputs become; only those that changed since this follower last looked, unless `whole`."""
        jobs, history, state = self.page.board.of(visitor), view.history, view.state
        alike = [job for job in jobs if job.id != view.id and job.corpus_key and job.corpus_key == view.corpus_key]
        spec = next((job.spec for job in jobs if job.id == view.id), None)
        runs = tuple((job.id, job.state, job.evaluations) for job in jobs)
        r, c = self.r, self.c
        # component → (what it depends on, how to make it)
        parts = {
            r["status"]: (view.version, lambda: watch.status(view)),
            r["samples"]: ((state, len(history.samples)), lambda: watch.samples(view)),
            r["question"]: (view.prompt, lambda: watch.question(view)),
            r["predictions"]: ((state, len(history.samples)), lambda: show(*watch.predictions(view))),
            r["parameters"]: (view.config, lambda: show(*watch.parameter_chart(view.config))),
            r["parameter_table"]: (view.config, lambda: watch.parameter_table(view.config)),
            r["gradients"]: (len(history.gradients), lambda: show(*watch.gradient_chart(view))),
            r["similarity"]: (state, lambda: show(*watch.similarity_chart(*self._words_of(view, visitor)))),
            r["similarity_note"]: (state, lambda: watch.similarity_note(view)),
            r["runs"]: (runs, lambda: runs_table([job.view() for job in jobs], view.id)),
            r["beside"]: (
                [job.id for job in alike],
                lambda: gr.CheckboxGroup(choices=[(job.name, job.id) for job in alike], visible=bool(alike)),
            ),
            r["match"]: ((state, len(history.evaluations["step"])), lambda: match(view, spec)),
            r["letters"]: (state, lambda: run_letters(view, spec)),
            r["copy"]: (state, lambda: gr.Button(visible=has_link(view, spec))),
            r["talk"]: (state, lambda: gr.Button(visible=view.learned and "generate" in self.page.tab_ids)),
            c["train"]: (state, lambda: gr.Button(interactive=not view.active)),
            c["stop"]: (state, lambda: gr.Button(interactive=view.active and state != "stopping")),
            c["resume"]: (state, lambda: gr.Button(watch.resume_label(view), interactive=view.can_resume)),
            c["why"]: (state, lambda: quiet(watch.why_asleep(view))),
            self.timer: (pause := tick(view.time_left), lambda: gr.Timer(pause)),
        }
        out = follower.only_new(parts, view, whole=whole)
        drawn = [job.view() for job in alike if job.id in (beside or [])]
        out[r["curve"]] = follower.feed.update(*watch.curve(view, drawn))
        return out

    def _words_of(self, view: RunView, visitor: str) -> tuple[Any, Any]:
        """The model whose word vectors can be compared, once a run is over."""
        if not view.learned or view.tokenizer is None or view.tokenizer.kind != "word":
            return None, None
        if not self.page.registry.has(view.id, visitor):
            return None, None
        checkpoint = self.page.registry.get(view.id, visitor)
        return checkpoint.model, checkpoint.tokenizer


def recorded(page: Page, model_id: str | None, visitor: str | None = None) -> RunView | None:
    """The run that a shipped or otherwise loaded model remembers, with what it predicts now; None without a model."""
    try:
        checkpoint = page.registry.get(model_id, visitor)
    except ValueError:
        return None
    view = RunView.of_checkpoint(model_id, checkpoint)
    prompt = form.PROMPTS.get(str(checkpoint.about.get("language")), view.prompt)
    ids = checkpoint.tokenizer.encode(prompt)[-checkpoint.config.context_length :]
    return view.asked(prompt, predict(checkpoint.model, ids)) if ids else view
