"""What happens to a run: Train, Stop, Resume, looking at it while it goes on, finding it again."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ....model import Transformer
from ....service.run_job import RunJob
from ....service.runs import predict
from ....service.views import RunView
from ...chart import show
from ...followers import Follower
from ...following import Following
from ...forms import run as form
from ...forms import texts
from ...links import query_of
from ...page import QUIETLY, UNSEEN, Page, scroll_to
from ...prompts import beginning
from ...quoted import quoted
from ...refusals import in_words
from ...theme import quiet
from . import speaking, watch
from .linked import LinkedRuns, has_link, match, run_letters
from .runs_table import runs_table
from .settings import Settings

SURE = """(sure, ...who) => [
  confirm('Delete this run, its model and its files for good?') ? 'sure' : '', ...who
]"""
FORGET = """(sure, visitor) => [
  confirm('Delete everything that this page keeps of you: models, runs, comparisons, texts, lessons, your place in a ' +
          'class? Nothing of it can be brought back.') ? 'sure' : '', visitor
]"""
START_ANEW = """(done) => {
  if (done !== 'done') return;
  const ours = Object.keys(localStorage).filter((key) => key.startsWith('transformer-playground'));
  ours.forEach((key) => localStorage.removeItem(key));
  location.assign(location.pathname);
}"""
TAKE_IT_ALONG = """() => {
  const folded = document.querySelector('#take > button:not(.open)');
  if (folded) folded.click();
  document.querySelector('#take').scrollIntoView({behavior: 'smooth'});
}"""


class Running(Following):
    """The handlers of runs. Holds the components and what all visitors share; of a visitor it keeps nothing."""

    kind, seen_on, shows_chosen = RunJob, "Train tiny model", True

    def __init__(self, page: Page, settings: Settings, results: dict[str, Any]):
        super().__init__(page)
        self.settings, self.c, self.r = settings, settings.c, results
        self.linked = LinkedRuns(page, settings)
        buttons = (self.c[name] for name in ("train", "stop", "resume", "why"))
        self.views = [*results.values(), *buttons, self.timer, page.model, page.over, page.weights]

    def connect(self) -> None:
        """Bind them."""
        c, r, page = self.c, self.r, self.page
        self.linked.connect(r["copy"], r["letters"])
        who = [page.visitor, page.model, r["beside"]]
        own = {c[name] for name in texts.OWN}
        c["train"].click(None, None, None, js=scroll_to("#train-results"))
        c["train"].click(self.train, {*self.settings.inputs, *own, *who, c["letters"]}, self.views, **QUIETLY)
        c["stop"].click(self.stop, who, self.views, **QUIETLY)
        c["resume"].click(self.resume, [*who, c["steps"]], self.views, **QUIETLY)
        self.looks(who, self.views)
        page.on_load(self.attach, who, [*self.views, *self.linked.form_parts])
        page.model.change(self.choose, who, self.views, **QUIETLY)
        # a run that is over is chosen, and has shown how fast this machine is
        page.model.change(self.settings.outlook, self.settings.inputs, self.settings.words, **QUIETLY)
        c["prompt"].submit(self.ask, [c["prompt"], *who], self.views, **QUIETLY)
        r["beside"].input(self.choose, who, self.views, **QUIETLY)
        r["best"].click(self.use_best, who, self.views, **QUIETLY)
        r["rename"].click(self.rename, [r["name"], *who], self.views, **QUIETLY)
        r["name"].submit(self.rename, [r["name"], *who], self.views, **QUIETLY)
        r["delete"].click(self.delete, [r["sure"], *who], self.views, js=SURE, **QUIETLY)
        r["take"].click(None, None, None, js=TAKE_IT_ALONG)
        forgotten = r["forget_me"].click(self.forget, [r["sure"], page.visitor], r["sure"], js=FORGET, **QUIETLY)
        forgotten.then(None, r["sure"], None, js=START_ANEW, **UNSEEN)
        page.later(self._connect_talk)

    def _connect_talk(self) -> None:
        page, who = self.page, [self.page.model, self.page.visitor, self.c["prompt"]]
        shown = [page.tabs, page.shared("generate")]

        def talk(*who: Any) -> tuple[Any, dict]:
            return page.open("generate"), {"move": {"prompt": beginning(page, *who), "typed": True}}

        self.r["talk"].click(talk, who, shown, **QUIETLY)

    def train(self, values: dict, request: gr.Request) -> dict:
        """Press Train: check, begin or stand in line, and show the empty chart at once."""
        with in_words():
            named = self.settings.suited(self.settings.named(values))
            visitor = self.page.known(values[self.page.visitor])
            source = texts.source_of(named, self.page.limits)
            spec = form.run_spec(named, source, self.page.limits)
            card, spec = self.linked.applied(values[self.c["letters"]], spec)
            job = self.board.start(visitor, spec, repeats=card, share=self.page.share_of(request))
        return self.follow(job, request, values[self.page.model], values[self.r["beside"]])

    def resume(self, visitor: str, model_id: str, beside: list[str], steps: float, request: gr.Request) -> dict:
        """Press Resume: go on with the run that is shown, or train a finished one for as many steps again."""
        with in_words():
            more = int(steps) if isinstance(steps, (int, float)) else 1
            job = self.board.resume(self.page.known(visitor), model_id, more_steps=more)
        return self.follow(job, request, model_id, beside)

    def use_best(self, visitor: str, model_id: str, beside: list[str], request: gr.Request) -> dict:
        """Press *Use step …*: the kept weights are the run's model from now on, on all tabs."""
        with in_words():
            job = self.board.use_best(self.page.known(visitor), model_id)
        shown = self.look(request, visitor, model_id, beside)
        return shown | {self.page.model: self.page.model_list(visitor, job.id)}

    def rename(self, name: str, visitor: str, model_id: str, beside: list[str], request: gr.Request) -> dict:
        """Press Rename: the run that is shown gets another name, everywhere."""
        with in_words():
            self.board.rename(self.page.known(visitor), model_id, name)
        return self.look(request, visitor, model_id, beside)

    def delete(self, sure: Any, visitor: str, model_id: str, beside: list[str], request: gr.Request) -> dict:
        """Press Delete, and be sure: the run that is shown leaves with its model and its files."""
        if sure != "sure":
            return gr.skip()
        with in_words():
            self.board.delete(self.page.known(visitor), model_id)
        return self.look(request, visitor, model_id, beside)

    def forget(self, sure: Any, visitor: str) -> Any:
        """Press Delete my data, and be sure: all that is kept of this visitor is gone."""
        if sure != "sure":
            return gr.skip()
        with in_words():
            visitor = self.page.known(visitor)
            self.board.forget_visitor(visitor)
            self.page.shared("class.forget")(visitor)
        return "done"

    def ask(self, prompt: str, visitor: str, model_id: str, beside: list[str], request: gr.Request) -> Any:
        """Enter in the prompt: what comes next, according to the model shown, and before it was trained."""
        job = self.board.active(visitor)
        if job is not None:
            busy = "The run under way keeps to the prompt it began with: press Enter again when it is over."
            return {self.r["question"]: quiet(busy)}
        with in_words():
            prompt = prompt or ""
            self.page.limits.check_prompt(prompt)
            view = self.view_of(visitor, model_id)
            checkpoint = self.page.registry.get(model_id, visitor)
            ids = checkpoint.tokenizer.encode(prompt)[-checkpoint.config.context_length :]
            if view is None or not ids:
                raise ValueError("The prompt is empty: type something for the model to go on from.")
        job = self.board.find(visitor, model_id)
        # the same seed makes the same untrained model again
        untrained = Transformer(checkpoint.config, seed=job.spec.training.seed) if job else None
        before = predict(untrained, ids) if untrained else None
        follower = self.renew(request, news=self.board.news(visitor))
        asked = view.asked(prompt, predict(checkpoint.model, ids), before)
        return self.draw(asked, visitor, follower, model_id, beside, whole=True)

    # ---- what is seen ------------------------------------------------------------------------------------------------

    def view_of(self, visitor: str, model_id: str | None) -> RunView | None:
        """What there is to show of a model: its run, or the one that it remembers."""
        job = self.board.find(visitor, model_id)
        if job is None:
            return recorded(self.page, model_id, visitor)
        job.predict()
        return job.view()

    def chosen(self, visitor: str | None, model_id: str | None, beside: Any = ()) -> RunView | None:
        """See `Following.chosen`: a model that has left gives way to the one that the page opens with."""
        return self.view_of(visitor, model_id) or recorded(self.page, self.page.registry.default)

    def opening(
        self, jobs: list, request: gr.Request, visitor: str | None, model_id: str | None, beside: Any = ()
    ) -> RunView | None:
        """See `Following.opening`: the page is made with the run of the model that it opens with."""
        news = model_id != self.page.registry.default or any(self.board.news(visitor))
        return self.chosen(visitor, model_id) if news else None

    def filled(self, job: RunJob | None, request: gr.Request, visitor: str | None) -> dict:
        """See `Following.filled`; the settings of a page that a link set up are another's."""
        return {} if job is None or "run" in query_of(request) else self.linked.restore(job.spec)

    def status(self, view: RunView) -> str:
        """See `Following.status`."""
        return watch.status(view)

    def made_by(self, job: RunJob) -> str | None:
        """See `Following.made_by`: a run that came to something."""
        return job.id if job.learned else None

    def renewed(self, visitor: str, model_id: str | None, beside: Any = ()) -> dict:
        """A model may have been trained, renamed or deleted, here or on another page."""
        return {self.page.model: self.page.model_list(visitor, model_id)}

    def draw(
        self, view: RunView, visitor: str, follower: Follower, model_id: Any, beside: Any, *, whole: bool = False
    ) -> dict:
        """See `Following.draw`."""
        jobs, history, state = self.board.of(visitor), view.history, view.state
        alike = [job for job in jobs if job.id != view.id and job.corpus_key and job.corpus_key == view.corpus_key]
        ticked = [job.id for job in alike if job.id in (beside or [])]
        # a tick that no longer applies is dropped; others are the visitor's own, who may be at it right now
        stale = len(ticked) < len(beside or [])
        dropped = {"value": ticked} if stale else {}
        spec = next((job.spec for job in jobs if job.id == view.id), None)
        departed = self.page.registry.departed(visitor)
        runs = tuple((job.id, job.name, job.state, job.evaluations) for job in jobs), departed
        own = view.learned and not view.id.startswith("shipped-") and self.page.registry.has(view.id, visitor)
        key, above = self.above(visitor, view)
        r, c = self.r, self.c
        of_model = {} if view.used is None else {"step": view.used}
        # component → (what it depends on, how to make it)
        parts = {
            r["status"]: ((view.version, view.name, key), lambda: above + watch.status(view)),
            r["rungs"]: ((view.baselines, view.learned_text is None), lambda: speaking.panel(view)),
            r["skill"]: (len(history.judged), lambda: show(*speaking.skill_chart(view))),
            r["samples"]: ((state, len(history.samples), view.learned_text is None), lambda: watch.samples(view)),
            r["question"]: (view.prompt, lambda: watch.question(view)),
            r["predictions"]: (
                (state, len(history.samples), view.used, view.prompt),
                lambda: show(*watch.predictions(view), prompt=view.prompt, **of_model),
            ),
            r["parameters"]: (view.config, lambda: show(*watch.parameter_chart(view.config))),
            r["parameter_table"]: (view.config, lambda: watch.parameter_table(view.config)),
            r["gradients"]: (len(history.gradients), lambda: show(*watch.gradient_chart(view))),
            r["similarity"]: (
                (state, view.used),
                lambda: show(*watch.similarity_chart(*self._words_of(view, visitor)), **of_model),
            ),
            r["similarity_note"]: (state, lambda: watch.similarity_note(view)),
            r["runs"]: (runs, lambda: runs_table([job.view() for job in jobs], view.id, departed)),
            r["beside"]: (
                ([(job.id, job.name) for job in alike], stale),
                lambda: gr.CheckboxGroup([(job.name, job.id) for job in alike], visible=bool(alike), **dropped),
            ),
            r["name"]: ((view.name, own), lambda: gr.Textbox(view.name if own else "", interactive=own)),
            r["rename"]: (own, lambda: gr.Button(interactive=own)),
            r["delete"]: (own, lambda: gr.Button(interactive=own)),
            r["match"]: ((state, len(history.evaluations["step"])), lambda: match(view, spec)),
            r["letters"]: (state, lambda: run_letters(view, spec)),
            r["copy"]: (state, lambda: gr.Button(visible=has_link(view, spec))),
            r["best"]: (
                (state, view.kept),
                lambda: gr.Button(watch.use_label(view), visible=view.learned and bool(view.kept)),
            ),
            r["talk"]: (state, lambda: gr.Button(visible=view.learned)),
            c["train"]: (state, lambda: gr.Button(interactive=not view.active)),
            c["stop"]: (state, lambda: gr.Button(interactive=view.active and state != "stopping")),
            c["resume"]: (state, lambda: gr.Button(watch.resume_label(view), interactive=view.can_resume)),
            c["why"]: (state, lambda: quiet(watch.why_asleep(view))),
            self.timer: (pause := self.pause(view), lambda: gr.Timer(pause)),
        }
        if own and not view.active:
            weights = f"{view.id} {self.page.step_of(visitor, view.id)}"
            parts[self.page.weights] = (weights, lambda: weights)
        out = follower.only_new(parts, view, whole=whole)
        drawn = [job.view() for job in alike if job.id in ticked]
        out[r["curve"]] = follower.feed.update(*watch.curve(view, drawn))
        return quoted(out, **watch.facts(view))

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
    prompt = texts.PROMPTS.get(str(checkpoint.about.get("language")), view.prompt)
    ids = checkpoint.tokenizer.encode(prompt)[-checkpoint.config.context_length :]
    return view.asked(prompt, predict(checkpoint.model, ids)) if ids else view
