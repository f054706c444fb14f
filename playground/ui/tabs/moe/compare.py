"""Train both: the form, the buttons, the curves and the verdict; following a comparison and finding it again."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ....service.comparisons import ComparisonJob
from ....service.limits import Limits
from ....service.runs import Source
from ....service.views import PairView, pair_of
from ...chart import Chart, show
from ...followers import Follower
from ...following import Following
from ...forms import pair as form
from ...forms import texts
from ...forms.fields import by_name, draw
from ...links import broken, is_here, linked_models, query_of
from ...page import QUIETLY, Page, scroll_to
from ...quoted import quoted
from ...refusals import in_words, sentence
from ...theme import heading, notice, quiet
from ...widgets.turns import Turns
from . import pair_picture
from .linked import PairCard, pair_letters
from .table import decoding_speeds, pair_table, training_speeds
from .two_models import TwoModels, both, each, first_choice


class Compare(Following):
    """The upper half of the tab. Holds the components and what all visitors share; of a visitor it keeps nothing."""

    kind, seen_on = ComparisonJob, "Dense vs MoE"

    def __init__(self, page: Page):
        super().__init__(page)
        opening = self.view_of(None, *(first_choice(page, experts) for experts in (False, True)), judged=False)
        with gr.Row(equal_height=False):
            with gr.Column(scale=5, min_width=320, elem_classes="card", elem_id="moe-controls"):
                self.c = controls(page.limits)
            with gr.Column(scale=11, min_width=320, elem_id="moe-results"):
                self.r = results(opening)
        # the ids of the pair that a comparison made; the pickers themselves are no outputs of a tick
        self.made = gr.Textbox("", visible="hidden", elem_id="moe-made")

    def connect(self, two: TwoModels, table: gr.HTML) -> None:
        """Bind the handlers, once the pickers and the table below are there."""
        self.two, self.table, page, c, r = two, table, self.page, self.c, self.r
        self.fields = {c[field.name] for field in form.FIELDS}
        self.axes = [r["x"], r["y"]]
        who = [page.visitor, two.dense, two.moe, *self.axes]
        buttons = [c[name] for name in ("train", "stop", "stop_dense", "stop_moe", "only", "why")]
        drawn = [r[name] for name in ("status", "curve", "verdict", "verdict_chart", "letters")]
        self.views = [*drawn, table, *buttons, self.timer]
        followed = [*self.views, self.made, page.model, page.over]
        asked = {*self.fields, c["source"], c["equal"]}
        own = {c[name] for name in texts.OWN}
        touched = [c["source"].input, c["equal"].input, *(field.input for field in self.fields)]
        chosen = {*self.fields, *(c[name] for name in (*texts.PUT_BACK, "equal", "equal_note", "sum"))}
        words = [c["sum"], c["equal_note"]]
        of_text = {c[name] for name in (*texts.SET_BY_SOURCE, *form.OF_THE_TEXT)}
        for another in c["picked"](self.choose_source, c["source"], of_text, **QUIETLY):
            another.then(self.outlook, asked, words, **QUIETLY)
        gr.on(touched, self.outlook, asked, words, **QUIETLY)
        c["train"].click(None, None, None, js=scroll_to("#moe-results"))
        c["train"].click(self.train, {*asked, *own, page.visitor, *self.axes}, followed, **QUIETLY)
        c["stop"].click(self.stop, who, followed, **QUIETLY)
        c["stop_dense"].click(self.stop_dense, who, followed, **QUIETLY)
        c["stop_moe"].click(self.stop_moe, who, followed, **QUIETLY)
        self.looks(who, followed)
        page.on_load(self.attach, who, [*followed, *chosen, c["linked"], page.tabs, page.shared("links.note")])
        late = [r["verdict"], r["verdict_chart"], table]
        Turns("moe-table").calls(page.tab.select, self.opened, [page.visitor, two.looked_at], late, slow=True)
        self.made.change(self.show_made, [page.visitor, self.made], two.pickers, **QUIETLY)
        for changed in (two.looked_at.change, *(axis.input for axis in self.axes)):
            # by what is looked at, since the pickers may hold it a moment later
            changed(self.other, [page.visitor, two.looked_at, *self.axes], self.views, **QUIETLY)

    # ---- the form ----------------------------------------------------------------------------------------------------

    def choose_source(self, source: str) -> dict:
        """Another text: the settings that hang on it are its own, all others stay."""
        if source not in texts.SOURCES:
            return gr.skip()
        values = form.first_values(source)
        out = {self.c[name]: values[name] for name in form.OF_THE_TEXT}
        return out | texts.chosen(self.c, source, values["tokenizer"])

    def outlook(self, values: dict) -> tuple[str, str]:
        """A setting was touched: the sum that makes the two equal, or why there is none."""
        named = by_name(self.c, values)
        equal = form.EQUAL_NOTES.get(named["equal"], "")
        return sum_text(named, self.page.limits), quiet(equal)

    # ---- a comparison's life -----------------------------------------------------------------------------------------

    def train(self, values: dict, request: gr.Request) -> dict:
        """Press Train both: check, begin, and show the empty chart at once."""
        with in_words():
            named, visitor = by_name(self.c, values), self.page.known(values[self.page.visitor])
            source = texts.source_of(named, self.page.limits)
            spec = form.comparison_spec(named, source, self.page.limits)
            job = self.board.compare(visitor, spec, share=self.page.share_of(request))
        return self.follow(job, request, None, None, *(values[axis] for axis in self.axes))

    def stop_dense(self, request: gr.Request, visitor: str, *who: Any) -> dict:
        """Stop the dense model; the mixture goes on."""
        return self._stop_one("dense", request, visitor, *who)

    def stop_moe(self, request: gr.Request, visitor: str, *who: Any) -> dict:
        """Stop the mixture; the dense model goes on."""
        return self._stop_one("moe", request, visitor, *who)

    def _stop_one(self, side: str, request: gr.Request, visitor: str, *who: Any) -> dict:
        job = self.board.active(visitor, kind=ComparisonJob)
        if job is None:
            return gr.skip()
        job.stop_side(side)
        return self.look(request, visitor, *who)

    def filled(self, job: ComparisonJob | None, request: gr.Request, visitor: str | None) -> dict:
        """See `Following.filled`; a link to a pair that is not here sets the form up instead."""
        query, note = query_of(request), self.page.shared("links.note")
        if "pair" not in query or is_here(self.page, query, visitor):
            return self._holding(form.values_of(job.spec)) if job else {}
        try:
            card = PairCard.from_letters(query["pair"])
            card.check(self.page.limits)
        except ValueError as problem:
            return {note: broken(problem)}
        said = {self.c["linked"]: gr.HTML(card.in_words(), visible=True), note: ""}
        return self._holding(card.values) | said | {self.page.tabs: self.page.open("moe")}

    def _holding(self, values: dict[str, Any]) -> dict:
        """Updates that make the form hold these."""
        c, equal = self.c, values["equal"]
        return (
            {c[field.name]: values[field.name] for field in form.FIELDS}
            | texts.put_back(c, values)
            | {
                c["equal"]: equal,
                c["equal_note"]: quiet(form.EQUAL_NOTES[equal]),
                c["sum"]: sum_text(values, self.page.limits),
            }
        )

    def other(self, request: gr.Request, visitor: str, looked_at: str, x: str, y: str) -> dict:
        """Other models were chosen, or another axis."""
        out = self.choose(request, visitor, *each(looked_at), x, y)
        out.pop(self.made, None)  # what was just chosen stays chosen
        return out

    def opened(self, visitor: str, looked_at: str) -> Any:
        """The tab was opened: the verdict, and the table with its speeds, which take seconds the first time."""
        view = self.view_of(visitor, *each(looked_at))
        if view is None or view.active or self.board.active(visitor, kind=ComparisonJob) is not None:
            return gr.skip()
        shown = {
            self.r["verdict"]: pair_picture.verdict(view),
            self.r["verdict_chart"]: show(*pair_picture.verdict_chart(view)),
            self.table: self.table_of(view, visitor),
        }
        return quoted(shown, model=view.name)

    def show_made(self, visitor: str, made: str) -> tuple[Any, Any, Any]:
        """A comparison has brought forth its pair: the parts below turn to it."""
        dense, moe = each(made)
        return self.two.pair(visitor, dense, moe) if moe else (gr.skip(), gr.skip(), gr.skip())

    # ---- what is seen ------------------------------------------------------------------------------------------------

    def view_of(
        self, visitor: str | None, dense: str | None, moe: str | None, *, judged: bool = True
    ) -> PairView | None:
        """The comparison that made these two, else the two as they are; None where one is missing."""
        for job in self.board.of(visitor, kind=ComparisonJob):
            if (dense, moe) == (job.model_ids["dense"], job.model_ids["moe"]) and len(job.learned) == 2:
                return job.view()
        registry = self.page.registry
        try:
            pair = [registry.get(model_id, visitor) for model_id in (dense, moe)]
        except ValueError:
            return None
        recorded = all(str(model_id).startswith("shipped-") for model_id in (dense, moe))
        return pair_of(dense, pair[0], moe, pair[1], recorded=recorded, judged=judged)

    def chosen(self, visitor: str | None, dense: str | None, moe: str | None, *axes: str) -> PairView | None:
        """See `Following.chosen`."""
        return self.view_of(visitor, dense, moe)

    def opening(self, jobs: list, request: gr.Request, visitor: str | None, *who: Any) -> PairView | None:
        """See `Following.opening`: what a link names, else the last that came to something, else the shipped pair."""
        named = linked_models(self.page, request, visitor, "moe")
        last = next((job for job in reversed(jobs) if job.has_result), None)
        if last is not None and not any(named):
            return last.view()
        return self.chosen(visitor, *who) if any(self.board.news(visitor)) else None

    def status(self, view: PairView) -> str:
        """See `Following.status`."""
        return pair_picture.status(view)

    def made_by(self, job: ComparisonJob) -> str | None:
        """See `Following.made_by`: the mixture."""
        return job.model_ids["moe"] if "moe" in job.learned else None

    def draw(
        self, view: PairView, visitor: str, follower: Follower, dense: Any, moe: Any, x: str, y: str,
        *, whole: bool = False,
    ) -> dict:  # fmt: skip
        """See `Following.draw`."""
        r, c, state = self.r, self.c, view.state
        key, above = self.above(visitor, view)
        kept = {side: part.model_id for side, part in view.sides.items()}
        complete = len(kept) == 2 and all(kept.values())
        asleep = {side: not view.active or pair_picture.is_over(part, view.seeds) for side, part in view.sides.items()}
        job = self.board.find(visitor, view.id, kind=ComparisonJob)
        spec = job.spec if job else None
        evaluations = tuple(len(h.evaluations["step"]) for part in view.sides.values() for h in part.histories)
        # component → (what it depends on, how to make it)
        parts = {
            r["status"]: ((view.version, key), lambda: above + pair_picture.status(view)),
            r["verdict"]: ((state, view.verdict, view.withheld), lambda: pair_picture.verdict(view)),
            r["verdict_chart"]: ((state, view.verdict), lambda: show(*pair_picture.verdict_chart(view))),
            self.table: ((state, evaluations), lambda: self.table_of(view, visitor)),
            c["train"]: (state, lambda: gr.Button(interactive=not view.active)),
            c["stop"]: (state, lambda: gr.Button(interactive=view.active and state != "stopping")),
            c["only"]: (state, lambda: gr.Row(visible=state == "training")),
            c["stop_dense"]: (asleep.get("dense"), lambda: gr.Button(interactive=not asleep.get("dense", True))),
            c["stop_moe"]: (asleep.get("moe"), lambda: gr.Button(interactive=not asleep.get("moe", True))),
            c["why"]: (state, lambda: quiet(pair_picture.why_asleep(view))),
            r["letters"]: (state, lambda: pair_letters(view, spec)),
            self.timer: (pause := self.pause(view), lambda: gr.Timer(pause)),
        }
        if complete and state != "recorded":
            # as soon as there are two models, the parts below show them, while further seeds are trained
            made = both(kept["dense"], kept["moe"])
            parts[self.made] = (made, lambda: made)
        out = follower.only_new(parts, view, whole=whole)
        x = x if x in [value for _, value in pair_picture.X_CHOICES] else "step"
        out[r["curve"]] = follower.feed.update(*pair_picture.curves(view, x, y))
        return quoted(out, model=view.name)

    def table_of(self, view: PairView | None, visitor: str | None) -> str:
        """The table; what has to be timed is timed once both models are there and nothing else is going on."""
        ids = [part.model_id for part in view.sides.values()] if view else []
        decoding = training = None
        if len(ids) == 2 and all(ids) and not view.active:
            try:
                pair = [self.page.registry.get(model_id, visitor).model for model_id in ids]
                decoding = decoding_speeds(*pair)
                training = None if view.matched else training_speeds(*pair)
            except ValueError:
                decoding = training = None  # one of them has left the registry meanwhile
        return pair_table(view, decoding, training)


# ---- the layout ------------------------------------------------------------------------------------------------------


def controls(limits: Limits) -> dict[str, Any]:
    """The left column. Returns its components by name; those of `pair.FIELDS` by the fields' names."""
    values = form.first_values()
    linked = gr.HTML(visible=False, padding=False, elem_id="moe-linked")
    c = texts.draw(limits, "What should both learn?", form.FIRST_SOURCE, "moe-") | {"linked": linked}
    c["equal"] = gr.Radio(
        list(form.EQUAL_CHOICES), value="active", label="What is equal?", elem_classes="pills", elem_id="moe-equal"
    )
    c["equal_note"] = gr.HTML(quiet(form.EQUAL_NOTES["active"]), padding=False)
    c["train"] = gr.Button("Train both", variant="primary", size="lg", elem_id="moe-train")
    c["stop"] = gr.Button("Stop", variant="stop", size="md", interactive=False, elem_id="moe-stop")
    with gr.Row(visible=False, elem_id="moe-stop-one") as c["only"]:
        c["stop_dense"] = gr.Button("Stop dense only", size="sm", min_width=110, elem_id="moe-stop-dense")
        c["stop_moe"] = gr.Button("Stop MoE only", size="sm", min_width=110, elem_id="moe-stop-moe")
    c["why"] = gr.HTML(quiet(pair_picture.why_asleep(None)), padding=False, elem_id="moe-why")
    c |= draw(form.TOP, limits, values)
    first = values | {"source": form.FIRST_SOURCE, "equal": "active"}
    c["sum"] = gr.HTML(sum_text(first, limits), padding=False, elem_id="moe-sum")
    with gr.Accordion("Advanced", open=False, elem_id="moe-advanced"):
        for title, fields in form.GROUPS.items():
            with gr.Accordion(title, open=False, elem_classes="settings"):
                c |= draw(fields, limits, values)
    return c


def results(opening: PairView | None) -> dict[str, Any]:
    """The right column, showing the shipped pair before anything was trained."""
    r: dict[str, Any] = {}

    def drawn(picture: tuple) -> Any:
        return quoted(show(*picture), model=opening and opening.name)

    with gr.Column(elem_classes="card"):
        r["status"] = gr.HTML(pair_picture.status(opening), padding=False, elem_id="moe-status")
        r["verdict"] = gr.HTML(pair_picture.verdict(opening), padding=False, elem_id="moe-verdict")
        with gr.Row(elem_id="moe-axes"):
            r["x"] = gr.Radio(
                list(pair_picture.X_CHOICES), value="step", label="Along the bottom", elem_classes="pills",
                min_width=290, scale=3, elem_id="moe-x",
            )  # fmt: skip
            r["y"] = gr.Radio(
                list(pair_picture.Y_CHOICES), value="loss", label="Up the side", elem_classes="pills", min_width=200,
                scale=2, elem_id="moe-y",
            )  # fmt: skip
        r["curve"] = Chart(
            drawn(pair_picture.curves(opening)),
            height=380,
            save_name="dense-vs-moe",
            elem_id="moe-curve",
        )
        r["letters"] = gr.Textbox("", visible="hidden", elem_id="moe-letters")
        gr.HTML(heading("The difference, seed by seed"), padding=False, elem_id="moe-difference-title")
        r["verdict_chart"] = Chart(
            drawn(pair_picture.verdict_chart(opening)),
            height=132,
            save_name="verdict",
            elem_id="moe-difference",
        )
    return r


def sum_text(named: dict[str, Any], limits: Limits) -> str:
    """The sum that makes the two equal, or why there is none."""
    try:
        source = Source(named["source"])
        spec = form.comparison_spec(named, source, limits)
        matched = spec.matched()
        for config in (matched.dense, matched.moe):
            limits.check_training(config, spec.training)
    except ValueError as problem:
        return notice(sentence(str(problem)), "error")
    known = texts.knows_vocabulary(source.kind, spec.tokenizer)
    guess = f"Counted for {matched.moe.vocab_size:,} different tokens; with your text's own number both change alike."
    return pair_picture.sum_of(matched) + ("" if known else quiet(guess))
