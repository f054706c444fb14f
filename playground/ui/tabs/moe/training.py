"""Train both: the form, its reactions to changes, and what the panel's buttons do to a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gradio as gr

from ....data import TextError
from ....service.comparisons import ComparisonJob, ComparisonSpec
from ....service.limits import Limits
from ....service.pace import Pace
from ....service.runs import OWN_TEXT, Source
from ....words.matched_pair import matched_in_words
from ....words.training import in_steps
from ...forms import pair as form
from ...forms import texts
from ...forms.fields import draw
from ...forms.followed import Begins, Followed, Follows, Values
from ...page import UNSEEN, Page
from ...panel import Asked
from ...refusals import sentence
from ...theme import duration, notice, quiet
from ...under_way import add_bar, just_begun
from . import verdict

# a text given on the Train tab is offered here, and the other way round
SAME_TEXT = """(own, there) => (own ?? "").trim() ? own : there"""
_WORDS = ("problem", "outlook", "sum")
_FIELDS = tuple(field.name for field in form.FIELDS)


class Comparing:
    """The form and its handlers. Holds the components and shared values, and nothing about single visitors."""

    def __init__(self, page: Page):
        self.page, self.board, self.c = page, page.board, controls(page)

    def connect(self) -> None:
        """Bind the handlers."""
        c, page = self.c, self.page
        reads = (*_FIELDS, *texts.READS, "equal")
        sets = tuple(dict.fromkeys((*_FIELDS, *texts.FOLLOWS_TEXT, *_WORDS)))
        followed = Followed(page, "moe_form", c, reads=reads, sets=sets, follow=self.follow, begin=self.train)
        texts.follow_text(followed, c)
        followed.on("fields", c["equal"].input, *(c[name].input for name in _FIELDS), whole_texts=True)
        followed.begins(c["train"], panel="#moe-panel")
        page.on_load(self.filled, [page.visitor], self.parts)
        page.later(self._share_text)
        page.panels.act("train_again", self.train_again)

    def _share_text(self) -> None:
        """Share one text between the tabs: each offers what was given on the other."""
        train = self.page.shared("train.running")
        if train is None:
            return
        here, there = self.c["text"], train.c["text"]
        for tab, own, other in (("moe", here, there), ("train", there, here)):
            opened = next(each for each in self.page.tabs.children if each.id == tab)
            opened.select(None, [own, other], own, js=SAME_TEXT, **UNSEEN)

    # ---- the form ----------------------------------------------------------------------------------------------------

    def follow(self, values: Values, causes: Sequence[str], asked: Asked) -> Follows:
        """The form's contents after following the changed controls: another text brings its own settings."""
        limits, named = self.page.limits, texts.with_source(values)
        source = named["source"]
        if source not in texts.SOURCES:
            return Follows()
        followed: tuple[str, ...] = ()
        shows: Values = {}
        if "source" in causes:
            followed, shows = form.OF_THE_TEXT, texts.chosen(source)
        elif "text" in causes and source == OWN_TEXT:  # the context follows it, as on the Train tab
            followed = ("context_length",)
        if "text" in causes:
            shows |= texts.shown_own(named["own_kind"])
        if {"source", "text"} & {*causes}:
            shows |= {"contents": texts.contents_html(named, limits)}
        first = form.first_values(source, form.own_in(named, limits)) if followed else {}
        fields = {name: first[name] for name in followed}
        return Follows(fields, self._words(named | fields) | shows)

    def _words(self, named: Values) -> Values:
        return dict(zip(_WORDS, words(named, self.page.limits, self.board.pace)))

    def train(self, values: Values, asked: Asked) -> Begins:
        """Handle a press of Train both: check, and begin or queue the comparison. An error appears above the button."""
        page, visitor, named = self.page, asked.visitor, texts.with_source(values)
        try:
            if just_begun(page, visitor, ComparisonJob):
                return Begins()
            source = texts.source_of(named, page.limits)
            own = form.own_in(named, page.limits)
            spec = form.comparison_spec(named, source, page.limits, own)
            texts.check_own_length(own, spec.moe.context_length)
            job = self.board.compare(visitor, spec, share=page.share_of(asked.request, visitor))
        except ValueError as problem:
            place = "problem" if isinstance(problem, TextError) else "outlook"
            return Begins(shows={place: notice(sentence(str(problem)), "error")})
        return Begins(job.id, {"problem": ""})

    @property
    def parts(self) -> list[Any]:
        """The components that `filled` and `load` set."""
        return list(dict.fromkeys(self.c[name] for name in (*_FIELDS, *texts.PUT_BACK, "equal", *_WORDS)))

    def load(self, wanted: Values) -> dict:
        """The form's first state, changed by these settings, for a lesson."""
        source = Source(str(wanted.get("source", form.FIRST_SOURCE)))
        values = form.first_values(source.kind) | {"equal": "active"} | wanted
        return self._holding(form.values_of(form.comparison_spec(values, source, self.page.limits)))

    def filled(self, visitor: str | None) -> dict:
        """The form on an opening page: as it was when the last comparison with its balance was begun."""
        specs = [job.spec for job in self.board.of(visitor, kind=ComparisonJob) if not job.spec.aside]
        return self._holding(form.values_of(specs[-1])) if specs else gr.skip()

    def _holding(self, values: Values) -> dict:
        """Outputs that make the form hold these."""
        out = {name: values[name] for name in (*_FIELDS, "equal")} | texts.put_back(values)
        return {self.c[name]: value for name, value in (out | self._words(values | {"upload": None})).items()}

    # ---- what the panel's buttons do ---------------------------------------------------------------------------------

    def train_again(self, asked: Asked) -> None:
        """Handle a press of Train three seeds or Train without balance: the shown pair again, with that change."""
        share = self.page.share_of(asked.request, asked.visitor)
        self.board.compare(asked.visitor, self.again(asked), share=share)

    def again(self, asked: Asked) -> ComparisonSpec:
        """The comparison `train_again` starts. Raises ValueError."""
        ids = asked.selection.get("dense"), asked.selection.get("mixture")
        jobs = self.board.of(asked.visitor, kind=ComparisonJob)
        spec = next((job.spec for job in jobs if tuple(job.model_ids.values()) == ids), None)
        if spec is None:
            raise ValueError("The recorded pair takes too long to train again. Press Train both first")
        if (seeds := asked.selection.get("seeds")) is not None:
            return replace(spec, seeds=form.BY_NAME["seeds"].read(seeds, self.page.limits))
        return replace(spec, seeds=1, aside=True, moe=spec.moe.replace(balance="none"))


# ---- the layout ------------------------------------------------------------------------------------------------------


def controls(page: Page) -> dict[str, Any]:
    """Draw the left column. Returns its components by name; those of `pair.FIELDS` by the fields' names."""
    limits, values = page.limits, form.first_values()
    c = texts.draw(limits, "Learn from", form.FIRST_SOURCE, "moe-")
    c["equal"] = gr.Dropdown(
        list(form.EQUAL_CHOICES), value="active", label="Make equal", filterable=False, elem_id="moe-equal"
    )
    problem, outlook, total = words(values | {"source": form.FIRST_SOURCE, "equal": "active"}, limits, Pace())
    c["problem"] = gr.HTML(problem, padding=False, elem_id="moe-problem")  # why Train both could not begin
    c["outlook"] = gr.HTML(outlook, padding=False, elem_id="moe-outlook")
    c["train"] = gr.Button("Train both", variant="primary", size="lg", elem_id="moe-train")
    add_bar(page, ComparisonJob, verdict.bar, elem_id="moe-bar", stop_id="moe-stop")
    with gr.Accordion("Advanced", open=False, elem_id="moe-advanced", elem_classes="advanced"):
        c |= draw(form.TOP, limits, values)
        c["sum"] = gr.HTML(total, padding=False, elem_id="moe-sum")
        for title, fields in form.GROUPS.items():
            with gr.Accordion(title, open=False, elem_classes="settings"):
                c |= draw(fields, limits, values)
    return c


def words(named: Values, limits: Limits, pace: Pace) -> tuple[str, str, str]:
    """Notes: what is wrong with the text; what will be trained, and how long it takes; how the two are made equal."""
    try:
        own = form.own_in(named, limits)
        source = Source(named["source"])
        spec = form.comparison_spec(named, source, limits, own)
        matched = spec.matched()
        for config in (matched.dense, matched.moe):
            limits.check_training(config, spec.training)
    except ValueError as problem:
        return "", notice(sentence(str(problem)), "error"), ""
    seconds = spec.seeds * sum(pace.seconds(each, spec.training, own.tokens) for each in (matched.dense, matched.moe))
    count = f"{spec.moe.n_experts} experts, {spec.moe.experts_per_token} per token"
    each = f"{spec.seeds} seeds of {in_steps(spec.training.steps)}" if spec.seeds > 1 else in_steps(spec.training.steps)
    line = f"{count} · {each} · about {duration(min(seconds, limits.seconds))}"
    return "", quiet(line), quiet(matched_in_words(matched))
