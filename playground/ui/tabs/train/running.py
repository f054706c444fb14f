"""Actions on a run: Train, Stop, Resume, and its panel's other buttons."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gradio as gr

from ....data import TextError
from ....data.tokenizers import in_known_case
from ....links import RunCard
from ....service.run_job import RunJob
from ....service.runs import OWN_TEXT, predict
from ....service.views import RunView
from ... import theme
from ...forms import run as form
from ...forms import texts
from ...forms.followed import Begins, Values
from ...links import broken, is_here, query_of
from ...page import Page
from ...panel import Asked
from ...refusals import sentence
from ...under_way import just_begun
from .linked import in_the_form, linked_html, with_all_settings
from .settings import OF_LINK, SET_BY_RUN, Settings
from .sweep import asked_for


class Running:
    """The handlers for runs. Holds the components and shared values, and nothing about single visitors."""

    def __init__(self, page: Page, settings: Settings):
        self.page, self.board, self.settings, self.c = page, page.board, settings, settings.c
        self.form_parts = [settings.c[name] for name in SET_BY_RUN]

    def connect(self) -> None:
        """Bind them."""
        page, of_link = self.page, [self.c[name] for name in OF_LINK]

        def wire() -> None:
            outputs = [*self.form_parts, *of_link, page.tabs, page.shared("links.note")]
            page.on_load(self.open_link, [page.visitor], outputs)

        page.later(wire)
        self.settings.connect(page, self.train)
        # the model's arrival asks about the form, too, and perhaps before it is filled
        follow = partial(self.settings.followed.after, cause="model")
        page.on_load(self.filled, [page.visitor], self.form_parts, follow)
        acts: dict[str, Callable[[Asked], Any]] = {
            "resume_run": self.resume, "use_best": self.use_best, "use_last": self.use_last,
            "rename_run": self.rename, "delete_run": self.delete, "forget_me": self.forget,
        }  # fmt: skip
        for name, act in acts.items():
            page.panels.act(name, act)

    # ---- the form ----------------------------------------------------------------------------------------------------

    def train(self, values: Values, asked: Asked) -> Begins:
        """Handle a press of Train: check, and begin or queue the run. An error appears under its field."""
        page, visitor = self.page, asked.visitor
        try:
            if just_begun(page, visitor, RunJob):
                return Begins()
            named = self.settings.suited(self.settings.named(values, visitor))
            source = texts.source_of(named, page.limits)
            share, name = page.share_of(asked.request, visitor), str(values["name"] or "")
            spec = form.run_spec(named, source, page.limits)
            if source.kind == OWN_TEXT and not spec.parent:
                texts.check_own_length(form.remembered(named)[0], spec.model.context_length)
            if text := str(values["sweep"] or "").strip():
                if spec.parent:
                    raise ValueError(
                        "Trying several values makes new models. Empty that field to train the chosen model further"
                    )
                job = self.board.sweep(visitor, spec, asked_for(text, page.limits), share=share)
                return Begins(job.id, {"problem": "", "sweep": ""})
            card = RunCard.from_letters(values["letters"]) if values["letters"] else None
            spec = with_all_settings(card, spec, page.limits) if card else spec
            job = self.board.start(visitor, spec, repeats=card, share=share, name=name)
        except ValueError as problem:
            said = theme.notice(sentence(str(problem)), "error")
            return Begins(shows={"problem" if isinstance(problem, TextError) else "outlook": said})
        return Begins(job.id, {"problem": "", "name": ""})

    def filled(self, visitor: str | None, request: gr.Request) -> dict:
        """The form on an opening page: as it was when the last run was begun, unless a link sets it up."""
        jobs = self.board.of(visitor)
        if not jobs or "run" in query_of(request):
            return gr.skip()
        last = next((job for job in reversed(jobs) if job.active), jobs[-1])
        if last.spec.parent:
            return gr.skip()
        return self.settings.load(form.values_of(last.spec))

    def open_link(self, visitor: str, request: gr.Request) -> dict:
        """Called when the page opens: set up the form if the address holds a run whose model is not here yet."""
        page, query, note = self.page, query_of(request), self.page.shared("links.note")
        if "run" not in query or is_here(page, query, visitor):
            return gr.skip()
        try:
            card = RunCard.from_letters(query["run"])
            named, spec = in_the_form(card, page.limits)
            spec = with_all_settings(card, spec, page.limits)
            page.limits.check_training(spec.model, spec.training)
        except ValueError as problem:
            return {note: broken(problem)}
        return self.settings.load(named) | {
            self.c["letters"]: query["run"],
            self.c["linked"]: linked_html(card, named["base"]),
            page.tabs: gr.Tabs(selected="train"),
            note: "",
        }

    # ---- what the panel's buttons do ---------------------------------------------------------------------------------

    def resume(self, asked: Asked) -> None:
        """Handle a press of Resume: continue a run, or train a finished one for as many steps again."""
        job = self.board.find(asked.visitor, _run(asked))
        self.board.resume(asked.visitor, _run(asked), more_steps=job.planned_first if job else 0)

    def use_best(self, asked: Asked) -> None:
        """Handle a press of *Use step …*: the kept weights become the run's model, on all tabs."""
        self.board.use_best(asked.visitor, _run(asked))

    def use_last(self, asked: Asked) -> None:
        """Handle a press of *Use the last step*: the weights of the run's end become its model again."""
        self.board.use_best(asked.visitor, _run(asked), best=False)

    def rename(self, asked: Asked) -> dict:
        """Handle a press of Rename: a run gets another name, everywhere."""
        self.board.rename(asked.visitor, _run(asked), str(asked.selection.get("rename") or ""))
        return {"move": {"rename": ""}}

    def delete(self, asked: Asked) -> None:
        """Delete a run with its model and its files: the visitor has pressed the button and confirmed."""
        self.board.delete(asked.visitor, _run(asked))

    def forget(self, asked: Asked) -> dict:
        """Delete everything kept for this visitor: the visitor has pressed Delete my data and confirmed."""
        self.board.forget_visitor(asked.visitor)
        self.page.shared("class.forget")(asked.visitor)
        self.page.uploads.forget(asked.visitor)
        return {"anew": True}

    # ---- what there is to show ---------------------------------------------------------------------------------------

    def view_of(self, visitor: str, model_id: str | None) -> RunView | None:
        """The view of a model's run: the run on this server, or the one recorded in the model."""
        job = self.board.find(visitor, model_id)
        if job is None:
            return recorded(self.page, model_id, visitor)
        job.predict()
        return job.view()


def _run(asked: Asked) -> str:
    """The run to which a pressed button belongs."""
    return str(asked.selection.get("of") or "")


def recorded(page: Page, model_id: str | None, visitor: str | None = None) -> RunView | None:
    """The run recorded in a shipped or loaded model, with its present predictions; None without a model."""
    try:
        checkpoint = page.registry.get(model_id, visitor)
    except ValueError:
        return None
    view = RunView.of_checkpoint(model_id, checkpoint)
    prompt = texts.PROMPTS.get(str(checkpoint.about.get("language")), view.prompt)
    known = in_known_case(prompt, checkpoint.tokenizer)
    ids = checkpoint.tokenizer.encode(known)[-checkpoint.config.context_length :]
    return view.asked(prompt, predict(checkpoint.model, ids)) if ids else view
