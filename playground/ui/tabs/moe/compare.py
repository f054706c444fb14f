"""Train both: the form, the buttons, the curves and the verdict; following a comparison and finding it again."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ....service.comparisons import ComparisonJob, ComparisonSpec
from ....service.limits import Limits
from ....service.runs import OWN_TEXT
from ....service.views import PairView, pair_of
from ...chart import Chart, show
from ...followers import Follower
from ...following import Following
from ...page import QUIETLY, Page, in_words, scroll_to, sentence
from ...quoted import quoted
from ...theme import heading, notice, quiet
from ...widgets.turns import Turns
from . import settings, watch
from .frame import Frame, both, each, first_choice, models_of
from .table import decoding_speeds, pair_table, training_speeds


class Compare(Following):
    """The upper half of the tab. Holds the components and what all visitors share; of a visitor it keeps nothing."""

    kind = ComparisonJob

    def __init__(self, page: Page):
        super().__init__(page)
        opening = self._opening()
        with gr.Row(equal_height=False):
            with gr.Column(scale=5, min_width=320, elem_classes="card", elem_id="moe-controls"):
                self.c = controls(page.limits)
            with gr.Column(scale=11, min_width=320, elem_id="moe-results"):
                self.r = results(opening)
        # the ids of the pair that a comparison made; the pickers themselves are no outputs of a tick
        self.made = gr.Textbox("", visible="hidden", elem_id="moe-made")

    def connect(self, frame: Frame, table: gr.HTML) -> None:
        """Bind the handlers, once the pickers and the table below are there."""
        self.frame, self.table, page, c, r = frame, table, self.page, self.c, self.r
        self.fields = {c[field.name] for field in settings.FIELDS}
        self.axes = [r["x"], r["y"]]
        who = [page.visitor, frame.dense, frame.moe, *self.axes]
        buttons = [c[name] for name in ("train", "stop", "stop_dense", "stop_moe", "only", "why")]
        self.views = [r["status"], r["curve"], r["verdict"], r["verdict_chart"], table, *buttons, self.timer]
        followed = [*self.views, self.made, page.model]
        form = {*self.fields, c["source"], c["text"], c["equal"], page.visitor, *self.axes}
        touched = [c["source"].input, c["equal"].input, *(field.input for field in self.fields)]
        chosen = [c[name] for name in ("source", "source_note", "text", "equal", "equal_note", "sum")]
        c["source"].input(self.choose_source, c["source"], [c["text"], c["source_note"], *self.fields], **QUIETLY).then(
            self.outlook, form, [c["sum"], c["equal_note"]], **QUIETLY
        )
        gr.on(touched, self.outlook, form, [c["sum"], c["equal_note"]], trigger_mode="always_last", **QUIETLY)
        c["train"].click(None, None, None, js=scroll_to("#moe-results"))
        c["train"].click(self.train, form, followed, **QUIETLY)
        c["stop"].click(self.stop, who, followed, **QUIETLY)
        c["stop_dense"].click(self.stop_dense, who, followed, **QUIETLY)
        c["stop_moe"].click(self.stop_moe, who, followed, **QUIETLY)
        self.timer.tick(self.look, who, followed, **QUIETLY)
        page.on_load(self.attach, who, [*followed, *chosen, *self.fields])
        Turns("moe-table").calls(page.tab.select, self.timed, [page.visitor, frame.looked_at], [table], slow=True)
        self.made.change(self.show_made, [page.visitor, self.made], frame.pickers, **QUIETLY)
        for changed in (frame.looked_at.change, *(axis.input for axis in self.axes)):
            # by what is looked at, since the pickers may hold it a moment later
            changed(self.choose, [page.visitor, frame.looked_at, *self.axes], self.views, **QUIETLY)

    # ---- the form ----------------------------------------------------------------------------------------------------

    def choose_source(self, source: str) -> dict:
        """Another text: the settings that hang on it are its own, all others stay."""
        if source not in settings.SOURCES:
            return gr.skip()
        values, c = settings.first_values(source), self.c
        return {c[name]: values[name] for name in settings.OF_THE_TEXT} | {
            c["text"]: gr.Textbox(visible=source == OWN_TEXT),
            c["source_note"]: quiet(settings.NOTES[source]),
        }

    def outlook(self, values: dict) -> tuple[str, str]:
        """A setting was touched: the sum that makes the two equal, or why there is none."""
        named = self._named(values)
        equal = settings.EQUAL_NOTES.get(named["equal"], "")
        return sum_text(named, self.page.limits), quiet(equal)

    def _named(self, values: dict) -> dict[str, Any]:
        return {name: values[component] for name, component in self.c.items() if component in values}

    # ---- a comparison's life -----------------------------------------------------------------------------------------

    def train(self, values: dict, request: gr.Request) -> dict:
        """Press Train both: check, begin, and show the empty chart at once."""
        with in_words():
            named, visitor = self._named(values), self.page.known(values[self.page.visitor])
            source = settings.source_of(named["source"], named.get("text"), self.page.limits)
            job = self.board.compare(visitor, settings.comparison_spec(named, source, self.page.limits))
        return self.follow(job, request, None, None, *(values[axis] for axis in self.axes))

    def stop(self, visitor: str, dense: str, moe: str, x: str, y: str, request: gr.Request) -> dict:
        """Press Stop."""
        job = self.board.stop(visitor, kind=ComparisonJob)
        return self.looked(request, visitor, dense, moe, x, y) if job else gr.skip()

    def stop_dense(self, visitor: str, dense: str, moe: str, x: str, y: str, request: gr.Request) -> dict:
        """Stop the dense model; the mixture goes on."""
        return self._stop_one("dense", request, visitor, dense, moe, x, y)

    def stop_moe(self, visitor: str, dense: str, moe: str, x: str, y: str, request: gr.Request) -> dict:
        """Stop the mixture; the dense model goes on."""
        return self._stop_one("moe", request, visitor, dense, moe, x, y)

    def _stop_one(self, side: str, request: gr.Request, visitor: str, *who: Any) -> dict:
        job = self.board.active(visitor, kind=ComparisonJob)
        if job is None:
            return gr.skip()
        job.stop_side(side)
        return self.looked(request, visitor, *who)

    def look(self, visitor: str, dense: str, moe: str, x: str, y: str, request: gr.Request) -> dict:
        """A tick of the timer."""
        return self.looked(request, visitor, dense, moe, x, y)

    def attach(self, visitor: str, dense: str, moe: str, x: str, y: str, request: gr.Request) -> dict:
        """A browser opened the page: go on watching a comparison or show the visitor's last one, with its settings."""
        job = self.board.active(visitor, kind=ComparisonJob)
        if job is not None:
            return self.follow(job, request, dense, moe, x, y) | self.restore(job.spec)
        jobs = self.board.of(visitor, kind=ComparisonJob)
        out = self.restore(jobs[-1].spec) if jobs else {}
        came_to_something = [job for job in jobs if job.has_result]
        news = self.board.news(visitor)
        follower = self.renew(request, news=news)
        if not came_to_something and not any(news):
            return out or gr.skip()  # the page opens with the shipped pair
        view = came_to_something[-1].view() if came_to_something else self.chosen(visitor, dense, moe, x, y)
        if view is None:
            return out or gr.skip()
        return out | self.draw(view, visitor, follower, dense, moe, x, y, whole=True)

    def restore(self, spec: ComparisonSpec) -> dict:
        """The form as it was when this comparison was begun."""
        c, values = self.c, settings.values_of(spec)
        return {c[name]: value for name, value in values.items()} | {
            c["source_note"]: quiet(settings.NOTES[spec.source.kind]),
            c["text"]: gr.Textbox(spec.source.pasted, visible=spec.source.kind == OWN_TEXT),
            c["equal_note"]: quiet(settings.EQUAL_NOTES[spec.equal]),
            c["sum"]: sum_text(values, self.page.limits),
        }

    def choose(self, visitor: str, looked_at: str, x: str, y: str, request: gr.Request) -> dict:
        """Other models were chosen, or another axis."""
        out = self.chose(request, visitor, *each(looked_at), x, y)
        out.pop(self.made, None)  # what was just chosen stays chosen
        return out

    def timed(self, visitor: str, looked_at: str) -> Any:
        """The tab was opened: the table with its speeds, which take seconds to measure the first time."""
        view = self.view_of(visitor, *each(looked_at))
        if view is None or view.active or self.board.active(visitor, kind=ComparisonJob) is not None:
            return gr.skip()
        return quoted(self.table_of(view, visitor), model=view.name)

    def show_made(self, visitor: str, made: str) -> tuple[Any, Any, Any]:
        """A comparison has brought forth its pair: the parts below turn to it."""
        dense, moe = each(made)
        return self.frame.pair(visitor, dense, moe) if moe else (gr.skip(), gr.skip(), gr.skip())

    # ---- what is seen ------------------------------------------------------------------------------------------------

    def view_of(self, visitor: str | None, dense: str | None, moe: str | None) -> PairView | None:
        """The comparison that made these two, else the two as they are; None where one is missing."""
        for job in self.board.of(visitor, kind=ComparisonJob):
            if (dense, moe) == (job.model_ids["dense"], job.model_ids["moe"]) and len(job.checkpoints) == 2:
                return job.view()
        registry = self.page.registry
        try:
            pair = [registry.get(model_id, visitor) for model_id in (dense, moe)]
        except ValueError:
            return None
        recorded = all(str(model_id).startswith("shipped-") for model_id in (dense, moe))
        return pair_of(dense, pair[0], moe, pair[1], recorded=recorded)

    def _opening(self) -> PairView | None:
        found = {e: first_choice(models_of(self.page, None, experts=e), experts=e) for e in (False, True)}
        return self.view_of(None, found[False], found[True])

    def chosen(self, visitor: str | None, dense: str | None, moe: str | None, *axes: str) -> PairView | None:
        """See `Following.chosen`."""
        return self.view_of(visitor, dense, moe)

    def status(self, view: PairView) -> str:
        """See `Following.status`."""
        return watch.status(view)

    def ended(self, job: ComparisonJob, visitor: str) -> dict:
        """A mixture that was made is chosen on all tabs."""
        made = "moe" in job.checkpoints
        return {self.page.model: self.page.model_list(visitor, job.model_ids["moe"])} if made else {}

    def draw(
        self, view: PairView, visitor: str, follower: Follower, dense: Any, moe: Any, x: str, y: str,
        *, whole: bool = False,
    ) -> dict:  # fmt: skip
        """See `Following.draw`."""
        r, c, state = self.r, self.c, view.state
        key, above = self.above(visitor, view)
        kept = {side: part.model_id for side, part in view.sides.items()}
        complete = len(kept) == 2 and all(kept.values())
        asleep = {side: not view.active or watch.is_over(part, view.seeds) for side, part in view.sides.items()}
        evaluations = tuple(len(h.evaluations["step"]) for part in view.sides.values() for h in part.histories)
        # component → (what it depends on, how to make it)
        parts = {
            r["status"]: ((view.version, key), lambda: above + watch.status(view)),
            r["verdict"]: ((state, view.verdict, view.withheld), lambda: watch.verdict(view)),
            r["verdict_chart"]: ((state, view.verdict), lambda: show(*watch.verdict_chart(view))),
            self.table: ((state, evaluations), lambda: self.table_of(view, visitor)),
            c["train"]: (state, lambda: gr.Button(interactive=not view.active)),
            c["stop"]: (state, lambda: gr.Button(interactive=view.active and state != "stopping")),
            c["only"]: (state, lambda: gr.Row(visible=state == "training")),
            c["stop_dense"]: (asleep.get("dense"), lambda: gr.Button(interactive=not asleep.get("dense", True))),
            c["stop_moe"]: (asleep.get("moe"), lambda: gr.Button(interactive=not asleep.get("moe", True))),
            c["why"]: (state, lambda: quiet(watch.why_asleep(view))),
            self.timer: (pause := self.pause(view), lambda: gr.Timer(pause)),
        }
        if complete and state != "recorded":
            # as soon as there are two models, the parts below show them, while further seeds are trained
            made = both(kept["dense"], kept["moe"])
            parts[self.made] = (made, lambda: made)
        out = follower.only_new(parts, view, whole=whole)
        x = x if x in [value for _, value in watch.X_CHOICES] else "step"
        out[r["curve"]] = follower.feed.update(*watch.curves(view, x, y))
        return quoted(out, model=view.name)

    def table_of(self, view: PairView | None, visitor: str | None) -> str:
        """The table; what has to be timed is timed once both models are there and nothing else is going on."""
        ids = [part.model_id for part in view.sides.values()] if view else []
        decoding = training = None
        if len(ids) == 2 and all(ids) and not view.active:
            try:
                pair = [self.page.registry.get(model_id, visitor).model for model_id in ids]
                decoding = decoding_speeds(*pair)
                training = None if view.twins else training_speeds(*pair)
            except ValueError:
                decoding = training = None  # one of them has left the registry meanwhile
        return pair_table(view, decoding, training)


# ---- the layout ------------------------------------------------------------------------------------------------------


def controls(limits: Limits) -> dict[str, Any]:
    """The left column. Returns its components by name; those of `settings.FIELDS` by the fields' names."""
    values, c = settings.first_values(), {}
    c["source"] = gr.Radio(
        [(title, name) for name, title in settings.SOURCES.items()],
        value=settings.FIRST_SOURCE,
        label="What should both learn?",
        elem_classes="pills",
        elem_id="moe-source",
    )
    c["source_note"] = gr.HTML(quiet(settings.NOTES[settings.FIRST_SOURCE]), padding=False)
    c["text"] = gr.Textbox(label="Your text", lines=6, max_lines=12, visible=False, elem_id="moe-text")
    c["equal"] = gr.Radio(
        list(settings.EQUAL_CHOICES), value="active", label="What is equal?", elem_classes="pills", elem_id="moe-equal"
    )
    c["equal_note"] = gr.HTML(quiet(settings.EQUAL_NOTES["active"]), padding=False)
    c["train"] = gr.Button("Train both", variant="primary", size="lg", elem_id="moe-train")
    c["stop"] = gr.Button("Stop", variant="stop", size="md", interactive=False, elem_id="moe-stop")
    with gr.Row(visible=False, elem_id="moe-stop-one") as c["only"]:
        c["stop_dense"] = gr.Button("Stop dense only", size="sm", min_width=110, elem_id="moe-stop-dense")
        c["stop_moe"] = gr.Button("Stop MoE only", size="sm", min_width=110, elem_id="moe-stop-moe")
    c["why"] = gr.HTML(quiet(watch.why_asleep(None)), padding=False, elem_id="moe-why")
    for field in settings.TOP:
        c[field.name] = field.build(limits, values[field.name])
    first = values | {"source": settings.FIRST_SOURCE, "equal": "active"}
    c["sum"] = gr.HTML(sum_text(first, limits), padding=False, elem_id="moe-sum")
    with gr.Accordion("Advanced", open=False, elem_id="moe-advanced"):
        for title, fields in settings.GROUPS.items():
            with gr.Accordion(title, open=False, elem_classes="settings"):
                for field in fields:
                    c[field.name] = field.build(limits, values[field.name])
    return c


def results(opening: PairView | None) -> dict[str, Any]:
    """The right column, showing the shipped pair before anything was trained."""
    r: dict[str, Any] = {}

    def drawn(picture: tuple) -> Any:
        return quoted(show(*picture), model=opening and opening.name)

    with gr.Column(elem_classes="card"):
        r["status"] = gr.HTML(watch.status(opening), padding=False, elem_id="moe-status")
        r["verdict"] = gr.HTML(watch.verdict(opening), padding=False, elem_id="moe-verdict")
        with gr.Row(elem_id="moe-axes"):
            r["x"] = gr.Radio(
                list(watch.X_CHOICES), value="step", label="Along the bottom", elem_classes="pills", min_width=290,
                scale=3, elem_id="moe-x",
            )  # fmt: skip
            r["y"] = gr.Radio(
                list(watch.Y_CHOICES), value="loss", label="Up the side", elem_classes="pills", min_width=200,
                scale=2, elem_id="moe-y",
            )  # fmt: skip
        r["curve"] = Chart(
            drawn(watch.curves(opening)),
            height=380,
            save_name="dense-vs-moe",
            elem_id="moe-curve",
        )
        gr.HTML(heading("The difference, seed by seed"), padding=False, elem_id="moe-difference-title")
        r["verdict_chart"] = Chart(
            drawn(watch.verdict_chart(opening)),
            height=132,
            save_name="verdict",
            elem_id="moe-difference",
        )
    return r


def sum_text(named: dict[str, Any], limits: Limits) -> str:
    """The sum that makes the two equal, or why there is none."""
    try:
        source = settings.Source(named["source"])
        spec = settings.comparison_spec(named, source, limits)
        twins = spec.twins()
        for config in (twins.dense, twins.moe):
            limits.check_training(config, spec.training)
    except ValueError as problem:
        return notice(sentence(str(problem)), "error")
    return watch.sum_of(twins)
