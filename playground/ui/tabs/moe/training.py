"""Train both: the form, what touching it says, and what the panel's buttons do to a comparison."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gradio as gr

from ....data import TextError
from ....service.comparisons import ComparisonJob, ComparisonSpec
from ....service.limits import Limits
from ....service.pace import Pace
from ....service.runs import OWN_TEXT, Source
from ....words.matched_pair import matched_in_words, sum_per_layer
from ...around import SEEN_ON
from ...forms import pair as form
from ...forms import texts
from ...forms.fields import by_name, draw
from ...gradio_fixes.lenient import LenientDropdown
from ...page import QUIETLY, UNSEEN, Page
from ...panel import Asked
from ...refusals import sentence
from ...theme import duration, notice, quiet, table
from .pair_panel import BAR, show_bar

SEEN_ON[ComparisonJob] = "Dense vs MoE"
TWICE = 1.0
"""Seconds within which a second press of Train both is a double click."""
# the page hears of the comparison at once, and a phone scrolls to it
BEGUN = """(begun) => {
  if (!begun) return;
  playground.news.look();
  if (innerWidth < 900) document.querySelector("#moe-panel")?.scrollIntoView({ behavior: "smooth" });
}"""
# the text that was given on the Train tab is offered here, and the other way round
SAME_TEXT = """(own, there) => (own ?? "").trim() ? own : there"""


class Comparing:
    """The form and its handlers. Holds the components and what all visitors share; of a visitor it keeps nothing."""

    def __init__(self, page: Page):
        self.page, self.board, self.c = page, page.board, controls(page)
        self.fields = {self.c[field.name] for field in form.FIELDS}
        self.asked = {*self.fields, self.c["source"], self.c["equal"], *(self.c[name] for name in texts.OWN)}

    def connect(self) -> None:
        """Bind the handlers."""
        c, page = self.c, self.page
        words = [c["problem"], c["outlook"], c["sum"]]
        of_text = {c[name] for name in (*texts.SET_BY_SOURCE, *form.OF_THE_TEXT)}
        for another in c["picked"](self.choose_source, self.asked, of_text, **QUIETLY):
            another.then(self.outlook, self.asked, words, **QUIETLY)
        gr.on([c["equal"].input, *(field.input for field in self.fields)], self.outlook, self.asked, words, **QUIETLY)
        # `input` says nothing of a pasted text
        given = [c["text"].change, c["upload"].upload, c["upload"].clear, c["own_kind"].input]
        gr.on(given, self.suit, self.asked, [c["context_length"], *words], **QUIETLY)
        pressed = c["train"].click(self.train, {*self.asked, page.visitor}, [*words, c["begun"]], **QUIETLY)
        pressed.then(None, c["begun"], None, js=BEGUN, **UNSEEN)
        filled = [c[name] for name in (*texts.PUT_BACK, "equal")]
        page.on_load(self.filled, [page.visitor], [*self.fields, *filled, *words])
        page.later(self._share_text)
        acts: dict[str, Callable[[Asked], Any]] = {
            "stop_pair": self.stop, "train_again": self.train_again, "dismiss_pair": self.dismiss
        }  # fmt: skip
        for name, act in acts.items():
            page.panels.act(name, act)

    def _share_text(self) -> None:
        """One text for all tabs: each is offered what was given on the other."""
        train = self.page.shared("train.running")
        if train is None:
            return
        here, there = self.c["text"], train.c["text"]
        for tab, own, other in (("moe", here, there), ("train", there, here)):
            opened = next(each for each in self.page.tabs.children if each.id == tab)
            opened.select(None, [own, other], own, js=SAME_TEXT, **UNSEEN)

    # ---- the form ----------------------------------------------------------------------------------------------------

    def choose_source(self, values: dict) -> dict:
        """Another text: the settings that hang on it are its own, all others stay."""
        named = by_name(self.c, values)
        if named["source"] not in texts.SOURCES:
            return gr.skip()
        own = form.own_in(named, self.page.limits)
        first = form.first_values(named["source"], own)
        out = {self.c[name]: first[name] for name in form.OF_THE_TEXT}
        return out | texts.chosen(self.c, named["source"], first["tokenizer"])

    def suit(self, values: dict) -> dict:
        """One's own text is another: the context follows it, as on the Train tab."""
        named = by_name(self.c, values)
        if named["source"] != OWN_TEXT:
            return gr.skip()
        named["context_length"] = form.first_values(OWN_TEXT, form.own_in(named, self.page.limits))["context_length"]
        return {self.c["context_length"]: named["context_length"], **self._words(named)}

    def outlook(self, values: dict) -> dict:
        """A setting was touched: what will be trained, and the sum that makes the two equal; or why there is none."""
        return self._words(by_name(self.c, values))

    def _words(self, named: dict[str, Any]) -> dict:
        return dict(
            zip((self.c["problem"], self.c["outlook"], self.c["sum"]), words(named, self.page.limits, self.board.pace))
        )

    def train(self, values: dict, request: gr.Request) -> dict:
        """Press Train both: check, and begin or stand in line. What is wrong is said above the button."""
        c, page = self.c, self.page
        try:
            named, visitor = by_name(c, values), page.known(values[page.visitor])
            job = self.board.active(visitor, kind=ComparisonJob)
            if job is not None and time.monotonic() - job.began < TWICE:
                return {c["begun"]: ""}
            source = texts.source_of(named, page.limits)
            spec = form.comparison_spec(named, source, page.limits, form.own_in(named, page.limits))
            if source.kind == OWN_TEXT:
                texts.check_own_length(form.own_in(named, page.limits), spec.moe.context_length)
            job = self.board.compare(visitor, spec, share=page.share_of(request))
        except ValueError as problem:
            place = c["problem"] if isinstance(problem, TextError) else c["outlook"]
            return {place: notice(sentence(str(problem)), "error"), c["begun"]: ""}
        return {c["problem"]: "", c["begun"]: job.id}

    def filled(self, visitor: str | None) -> dict:
        """The form of a page that opens: as it was when the last comparison was begun."""
        jobs = self.board.of(visitor, kind=ComparisonJob)
        if not jobs:
            return gr.skip()
        c, values = self.c, form.values_of(jobs[-1].spec)
        out = {c[field.name]: values[field.name] for field in form.FIELDS}
        return out | texts.put_back(c, values) | {c["equal"]: values["equal"]} | self._words(values | {"upload": None})

    # ---- what the panel's buttons do ---------------------------------------------------------------------------------

    def stop(self, asked: Asked) -> None:
        """Press Stop, or leave the line."""
        self.board.stop(asked.visitor, kind=ComparisonJob)

    def dismiss(self, asked: Asked) -> None:
        """Why the last comparison came to nothing need not be said any more."""
        self.board.dismiss(asked.visitor, ComparisonJob)

    def train_again(self, asked: Asked) -> None:
        """Press Train three seeds, or Train without balance: the pair that is shown, with that changed."""
        share = self.page.share_of(asked.request)
        self.board.compare(asked.visitor, self.again(asked), share=share)

    def again(self, asked: Asked) -> ComparisonSpec:
        """What that trains; the recorded pair is trained as the form opens. Raises ValueError."""
        seeds, balance = asked.selection.get("seeds"), asked.selection.get("balance")
        ids = asked.selection.get("dense"), asked.selection.get("mixture")
        jobs = self.board.of(asked.visitor, kind=ComparisonJob)
        job = next((job for job in jobs if (job.model_ids["dense"], job.model_ids["moe"]) == ids), None)
        if job is not None:
            spec = job.spec
        else:
            values = form.first_values() | {"equal": "active"}
            spec = form.comparison_spec(values, Source(form.FIRST_SOURCE), self.page.limits)
        if seeds is not None:
            return replace(spec, seeds=form.BY_NAME["seeds"].read(seeds, self.page.limits))
        kind = form.BY_NAME["balance"].read(balance, self.page.limits)
        return replace(spec, seeds=1, moe=spec.moe.replace(balance=kind))


# ---- the layout ------------------------------------------------------------------------------------------------------


def controls(page: Page) -> dict[str, Any]:
    """The left column. Returns its components by name; those of `pair.FIELDS` by the fields' names."""
    limits, values = page.limits, form.first_values()
    c = texts.draw(limits, "Learn from", form.FIRST_SOURCE, "moe-")
    c["equal"] = LenientDropdown(
        list(form.EQUAL_CHOICES), value="active", label="Make equal", filterable=False, elem_id="moe-equal"
    )
    problem, outlook, total = words(values | {"source": form.FIRST_SOURCE, "equal": "active"}, limits, Pace())
    c["problem"] = gr.HTML(problem, padding=False, elem_id="moe-problem")  # why Train both could not begin
    c["outlook"] = gr.HTML(outlook, padding=False, elem_id="moe-outlook")
    c["train"] = gr.Button("Train both", variant="primary", size="lg", elem_id="moe-train")
    page.panels.add(
        "moe-bar", lambda asked: show_bar(page, asked), BAR, start={}, follows=True, elem_id="moe-bar"
    )  # fmt: skip
    with gr.Accordion("Advanced", open=False, elem_id="moe-advanced"):
        c |= draw(form.TOP, limits, values)
        c["sum"] = gr.HTML(total, padding=False, elem_id="moe-sum")
        for title, fields in form.GROUPS.items():
            with gr.Accordion(title, open=False, elem_classes="settings"):
                c |= draw(fields, limits, values)
    c["begun"] = gr.Textbox("", visible=False)  # the comparison that Train both has begun
    return c


def words(named: dict[str, Any], limits: Limits, pace: Pace) -> tuple[str, str, str]:
    """What is wrong with the text; what will be trained and how long that takes; how the two are made equal."""
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
    count = f"{spec.moe.n_experts} experts, {spec.moe.experts_per_token} per token, {spec.seeds} seed"
    line = f"{count}{'s' * (spec.seeds > 1)} · about {duration(min(seconds, limits.seconds))}"
    known = own.vocabulary or texts.knows_vocabulary(source.kind, spec.tokenizer)
    guess = f"Counted for {matched.moe.vocab_size:,} different tokens; both change alike with your text's own number."
    rows = [[what, how, f"{whole:,}", f"{used:,}"] for what, how, whole, used in sum_per_layer(matched)]
    total = table(("one block", "matrices", "stored", "per token"), rows)
    return "", quiet(line), quiet(matched_in_words(matched)) + total + ("" if known else quiet(guess))
