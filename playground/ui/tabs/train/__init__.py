"""Train tiny model: choose a text and a size, press Train, watch it learn."""

from __future__ import annotations

import html
from typing import Any

import gradio as gr

from ....model import PRESETS, Transformer
from ... import theme
from ...chart import Chart, show
from ...jobs import Job, RunView
from ...page import Page, in_words, sentence
from ...runs import OWN_TEXT, predict, warm_up
from . import form, watch
from .followers import Follower, Followers
from .pace import Pace

TITLE = "Train tiny model"
TICK = 0.4  # seconds between looks at a run
QUIETLY = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
# on a phone the results stand below the controls
TO_RESULTS = """() => {
  if (innerWidth < 900) document.querySelector('#train-results').scrollIntoView({behavior: 'smooth'});
}"""
FIRST_SOURCE, FIRST_SIZE = "stories", "small"


def build(page: Page) -> None:
    """Lay the tab out and wire it up."""
    opening = recorded(page, page.registry.default)
    with gr.Row(elem_id="train", equal_height=False):
        with gr.Column(scale=5, min_width=320, elem_classes="card", elem_id="train-controls"):
            controls = _controls(page, opening)
        with gr.Column(scale=11, min_width=320, elem_id="train-results"):
            results = _results(opening)
    _Wiring(page, controls, results).connect()


# ---- layout ----------------------------------------------------------------------------------------------------------


def _controls(page: Page, opening: RunView | None) -> dict[str, Any]:
    """The left column. Returns its components by name; those of `form.FIELDS` by the fields' names."""
    c: dict[str, Any] = {}
    c["source"] = gr.Radio(
        [(title, name) for name, title in form.SOURCES.items()],
        value=FIRST_SOURCE,
        label="What should it learn?",
        elem_classes="pills",
        elem_id="source",
    )
    c["source_note"] = gr.HTML(_quiet(form.NOTES[FIRST_SOURCE]), padding=False)
    with gr.Column(visible=False, elem_id="own-text") as c["own"]:
        c["own_kind"] = gr.Radio(
            [(title, name) for name, title in form.OWN_KINDS.items()], value="paste", show_label=False, container=False
        )
        c["text"] = gr.Textbox(
            label="Your text",
            lines=6,
            max_lines=12,
            placeholder="Paste a page or more: a story, a poem, a chat, code …",
            elem_id="text",
        )
        c["upload"] = gr.File(
            label=f"A text file, UTF-8, at most {page.limits.text_bytes / 1e6:.0f} MB", visible=False, height=120
        )
        with gr.Column(visible=False) as c["hub"]:
            c["hub_repo"] = gr.Textbox(label="Repository", placeholder="user/name")
            c["hub_file"] = gr.Textbox(label="Text file in it", placeholder="train.txt")
            c["hub_type"] = gr.Radio(["dataset", "model", "space"], value="dataset", label="Kind of repository")
    c["size"] = gr.Radio(
        [(title, name) for name, title in form.SIZES.items()],
        value=FIRST_SIZE,
        label="Size",
        elem_classes="pills",
        elem_id="size",
    )
    values = form.size_values(FIRST_SIZE, FIRST_SOURCE)
    first = values | {"source": FIRST_SOURCE, "prompt": form.PROMPTS[FIRST_SOURCE]}
    c["outlook"] = gr.HTML(_outlook(first, page, Pace()), padding=False, elem_id="outlook")
    c["prompt"] = gr.Textbox(
        label="Prompt",
        info="What it continues while it learns. Press Enter to ask the model shown what comes next.",
        value=form.PROMPTS[FIRST_SOURCE],
        max_lines=3,
        elem_id="prompt",
    )
    c["train"] = gr.Button("Train", variant="primary", size="lg", elem_id="train-button")
    with gr.Row(elem_id="train-buttons"):
        c["stop"] = gr.Button("Stop", variant="stop", size="md", interactive=False, min_width=90, elem_id="stop-button")
        c["resume"] = gr.Button("Resume", size="md", interactive=False, min_width=90, elem_id="resume-button")
    c["why"] = gr.HTML(_quiet(_why(opening)), padding=False, elem_id="why")
    with gr.Accordion("Advanced", open=False, elem_id="advanced"):
        c["changes"] = gr.HTML(_changes([], FIRST_SIZE), padding=False)
        c["reset"] = gr.Button("Reset all to the size's own settings", size="sm")
        for group, title in form.GROUPS.items():
            with gr.Accordion(title, open=False, elem_classes="settings"):
                for field in form.FIELDS:
                    if field.group == group:
                        c[field.name] = field.build(page.limits, values[field.name])
                c[f"reset_{group}"] = gr.Button(f"Reset “{title}”", size="sm")
    with gr.Accordion("Teaching systems S1–S5", open=False, elem_id="systems"):
        gr.HTML(_quiet("A button sets the controls above to that system's architecture."), padding=False)
        with gr.Row(elem_classes="button-grid"):
            for name in form.SYSTEMS:
                c[f"preset_{name}"] = gr.Button(PRESETS[name].title, size="sm", min_width=120, elem_id=f"preset-{name}")
        c["preset_note"] = gr.HTML(padding=False)
        c["preset_chart"] = Chart(height=240, save_name="parameters", toolbar=False, visible=False)
        c["preset_table"] = gr.HTML(padding=False)
    # which settings "Reset" goes back to: a size or a preset. Not a gr.State, which would hold a connection open.
    c["base"] = gr.Textbox(FIRST_SIZE, visible=False)
    return c


def _results(opening: RunView | None) -> dict[str, Any]:
    """The right column, showing a recorded run before anything was trained."""
    r: dict[str, Any] = {}
    with gr.Column(elem_classes="card"):
        r["status"] = gr.HTML(watch.status(opening), padding=False, elem_id="status")
        r["curve"] = Chart(show(*watch.curve(opening)), height=360, save_name="loss", elem_id="curve")
        r["talk"] = gr.Button("Talk to it →", size="md", visible=bool(opening), elem_id="talk")
    with gr.Row(equal_height=False):
        with gr.Column(scale=6, min_width=300, elem_classes="card"):
            gr.HTML(
                theme.heading("What it writes", "The same prompt, continued along the way; the newest on top."),
                padding=False,
            )
            r["samples"] = gr.HTML(watch.samples(opening), padding=False, elem_id="samples")
        with gr.Column(scale=5, min_width=300, elem_classes="card"):
            r["question"] = gr.HTML(watch.question(opening), padding=False)
            r["predictions"] = Chart(
                show(*watch.predictions(opening)), height=300, save_name="next-token", elem_id="predictions"
            )
    with gr.Accordion("Your runs, side by side", open=False, elem_classes="card", elem_id="runs"):
        r["runs"] = gr.HTML(watch.runs_table([], None), padding=False)
        r["beside"] = gr.CheckboxGroup([], label="Draw beside the current run", visible=False)
    with gr.Accordion("Where the parameters are", open=False, elem_classes="card", elem_id="parameters"):
        config = opening.config if opening else None
        r["parameters"] = Chart(show(*watch.parameter_chart(config)), height=240, save_name="parameters")
        r["parameter_table"] = gr.HTML(watch.parameter_table(config), padding=False)
    with gr.Accordion("Gradients, layer by layer", open=False, elem_classes="card", elem_id="gradients"):
        gr.HTML(_quiet("How hard each part of the model is pushed by the loss, at each evaluation."), padding=False)
        r["gradients"] = Chart(show(*watch.gradient_chart(opening)), height=280, save_name="gradients")
    with gr.Accordion("Words used alike", open=False, elem_classes="card", elem_id="similarity"):
        r["similarity_note"] = gr.HTML(_similarity_note(opening), padding=False)
        r["similarity"] = Chart(height=320, save_name="word-similarity")
    return r


# ---- wiring ----------------------------------------------------------------------------------------------------------


class _Wiring:
    """The tab's handlers. Holds the components and what is shared by all visitors; of a visitor it keeps nothing."""

    def __init__(self, page: Page, controls: dict[str, Any], results: dict[str, Any]):
        self.page, self.c, self.r = page, controls, results
        self.followers, self.pace = Followers(), Pace()
        self.timer = gr.Timer(TICK, active=False)
        self.fields = [controls[field.name] for field in form.FIELDS]
        self.form_inputs = {
            *self.fields,
            *(controls[name] for name in ("source", "size", "prompt", "base")),
        }
        self.own_inputs = {
            controls[name] for name in ("own_kind", "text", "upload", "hub_repo", "hub_file", "hub_type")
        }
        self.views = [
            *results.values(),
            *(controls[n] for n in ("train", "stop", "resume", "why")),
            self.timer,
            page.model,
        ]

    def connect(self) -> None:
        """Bind every event of the tab."""
        c, r, page = self.c, self.r, self.page
        who = [page.visitor, page.model, r["beside"]]
        c["train"].click(None, None, None, js=TO_RESULTS)
        c["train"].click(self.train, {*self.form_inputs, *self.own_inputs, *who}, self.views, **QUIETLY)
        c["stop"].click(self.stop, who, self.views, **QUIETLY)
        c["resume"].click(self.resume, [*who, c["steps"]], self.views, **QUIETLY)
        self.timer.tick(self.look, who, self.views, **QUIETLY)
        page.on_load(self.attach, who, self.views)
        page.model.change(self.choose, who, self.views, **QUIETLY)
        c["prompt"].submit(self.ask, [c["prompt"], *who], self.views, **QUIETLY)
        r["beside"].input(self.choose, who, self.views, **QUIETLY)

        outlook = [c["outlook"], c["changes"]]
        gr.on(
            [f.input for f in self.fields],
            self.outlook,
            self.form_inputs,
            outlook,
            trigger_mode="always_last",
            **QUIETLY,
        )
        own = [c["own"], c["source_note"], c["prompt"], c["tokenizer"]]
        c["source"].input(self.choose_source, self.form_inputs, [*self.fields, *outlook, *own, c["base"]], **QUIETLY)
        c["own_kind"].input(self.choose_own, c["own_kind"], [c["text"], c["upload"], c["hub"]], **QUIETLY)
        c["size"].input(self.choose_size, self.form_inputs, [*self.fields, *outlook, c["base"]], **QUIETLY)
        c["reset"].click(self.reset, self.form_inputs, [*self.fields, *outlook], **QUIETLY)
        for group in form.GROUPS:
            c[f"reset_{group}"].click(self._resetter(group), self.form_inputs, [*self.fields, *outlook], **QUIETLY)
        preset_outputs = [*self.fields, *outlook, c["base"], c["preset_note"], c["preset_chart"], c["preset_table"]]
        for name in form.SYSTEMS:
            c[f"preset_{name}"].click(self._presetter(name), self.form_inputs, preset_outputs, **QUIETLY)
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

    # ---- the run -----------------------------------------------------------------------------------------------------

    def train(self, values: dict, request: gr.Request) -> dict:
        """Press Train: check, begin, and show the empty chart at once."""
        with in_words():
            named = self._named(values)
            visitor = self.page.known(values[self.page.visitor])
            source = form.source_of(named, self.page.limits)
            job = self.page.jobs.start(visitor, form.run_spec(named, source, self.page.limits))
        return self._follow(job, request)

    def resume(self, visitor: str, model_id: str, beside: list[str], steps: float, request: gr.Request) -> dict:
        """Press Resume: go on with the run that is shown, or train a finished one for as many steps again."""
        with in_words():
            more = int(steps) if isinstance(steps, (int, float)) else 1
            job = self.page.jobs.resume(self.page.known(visitor), model_id, more_steps=more)
        return self._follow(job, request, beside)

    def stop(self, visitor: str, model_id: str, beside: list[str], request: gr.Request) -> dict:
        """Press Stop."""
        job = self.page.jobs.stop(visitor)
        return self._draw(job.view(), visitor, self.followers.of(request), beside) if job else gr.skip()

    def look(self, visitor: str, model_id: str, beside: list[str], request: gr.Request) -> dict:
        """A tick of the timer: show what is new of the run that is followed."""
        follower = self.followers.of(request)
        job = self.page.jobs.active(visitor) or self.page.jobs.find(visitor, follower.run_id)
        if job is None:
            return {self.timer: gr.Timer(active=False)}
        settled, changed = job.settled, follower.run_id != job.id or follower.version != job.version
        if not (settled or changed):
            return gr.skip()
        out = self._draw(job.view(), visitor, follower, beside, whole=settled)
        if settled:
            self.pace.learn(job)
            out[self.timer] = gr.Timer(active=False)
            if job.checkpoint is not None:
                out[self.page.model] = self.page.model_list(visitor, job.id)
        return out

    def attach(self, visitor: str, model_id: str, beside: list[str], request: gr.Request) -> dict:
        """A browser opened the page: go on watching a run, or show the visitor's last one."""
        warm_up(FIRST_SOURCE, "char")
        job = self.page.jobs.active(visitor)
        if job is not None:
            return self._follow(job, request)
        view = self._view_of(visitor, model_id)
        if view is None or model_id == self.page.registry.default:
            return gr.skip()  # the page opens with it
        return self._show(view, visitor, request, [])

    def choose(self, visitor: str, model_id: str, beside: list[str], request: gr.Request) -> dict:
        """Another model was chosen, or other runs to draw beside it. A run that is going on stays in view."""
        job = self.page.jobs.active(visitor)
        view = job.view() if job else self._view_of(visitor, model_id)
        return gr.skip() if view is None else self._show(view, visitor, request, beside)

    def ask(self, prompt: str, visitor: str, model_id: str, beside: list[str], request: gr.Request) -> Any:
        """Enter in the prompt: what comes next, according to the model shown, and before it was trained."""
        job = self.page.jobs.active(visitor)
        if job is not None:
            return gr.skip()
        with in_words():
            self.page.limits.check_prompt(prompt)
            view = self._view_of(visitor, model_id)
            checkpoint = self.page.registry.get(model_id, visitor)
            ids = checkpoint.tokenizer.encode(prompt)[-checkpoint.config.context_length :]
            if view is None or not ids:
                raise ValueError("The prompt is empty: type something for the model to go on from.")
        job = self.page.jobs.find(visitor, model_id)
        # the same seed makes the same untrained model again
        untrained = Transformer(checkpoint.config, seed=job.spec.training.seed) if job else None
        before = predict(untrained, ids) if untrained else None
        return self._show(view.asked(prompt, predict(checkpoint.model, ids), before), visitor, request, beside)

    def _follow(self, job: Job, request: gr.Request, beside: list[str] | None = None) -> dict:
        return self._show(job.view(), job.visitor, request, beside or []) | {self.timer: gr.Timer(active=True)}

    def _show(self, view: RunView, visitor: str, request: gr.Request, beside: list[str]) -> dict:
        return self._draw(view, visitor, self.followers.fresh(request), beside, whole=True)

    def _view_of(self, visitor: str, model_id: str | None) -> RunView | None:
        job = self.page.jobs.find(visitor, model_id)
        return job.view() if job else recorded(self.page, model_id)

    def _draw(self, view: RunView, visitor: str, follower: Follower, beside: list[str], *, whole: bool = False) -> dict:
        """What the outputs become; only those that changed since this follower last looked, unless `whole`."""
        mine = [job.view() for job in self.page.jobs.of(visitor)]
        comparable = [v for v in mine if v.id != view.id and v.corpus_key and v.corpus_key == view.corpus_key]
        drawn = [v for v in comparable if v.id in (beside or [])]
        model, tokenizer = self._words_of(view, visitor)
        r, c = self.r, self.c
        parts = {
            r["status"]: watch.status(view),
            r["samples"]: watch.samples(view),
            r["question"]: watch.question(view),
            r["predictions"]: show(*watch.predictions(view)),
            r["parameters"]: show(*watch.parameter_chart(view.config)),
            r["parameter_table"]: watch.parameter_table(view.config),
            r["gradients"]: show(*watch.gradient_chart(view)),
            r["similarity"]: show(*watch.similarity_chart(model, tokenizer)),
            r["similarity_note"]: _similarity_note(view),
            r["runs"]: watch.runs_table(mine, view.id),
            r["beside"]: ("choices", [(v.name, v.id) for v in comparable]),
            r["talk"]: ("visible", view.learned and "generate" in self.page.tab_ids),
            c["train"]: ("interactive", not view.active),
            c["stop"]: ("interactive", view.active and view.state != "stopping"),
            c["resume"]: ("resume", view.can_resume and not view.active, _resume_label(view)),
            c["why"]: _quiet(_why(view)),
        }
        out = {component: _update(value) for component, value in follower.only_new(parts, view, whole=whole).items()}
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

    # ---- the form ----------------------------------------------------------------------------------------------------

    def _named(self, values: dict) -> dict[str, Any]:
        """The form's values by name."""
        return {name: values[component] for name, component in self.c.items() if component in values}

    def _base(self, named: dict[str, Any]) -> dict[str, Any]:
        """The settings that Reset goes back to."""
        base = named.get("base")
        source = named["source"] if named["source"] in form.SOURCES else FIRST_SOURCE
        size = named["size"] if named["size"] in form.SIZES else FIRST_SIZE
        values = form.size_values(size, source)
        if base in form.SYSTEMS:
            values |= form.preset_values(PRESETS[base], self.page.limits)[0]
        return values | {"source": source, "prompt": named.get("prompt") or ""}

    def _set(self, named: dict[str, Any], values: dict[str, Any]) -> dict:
        """Outputs that put these values into the form."""
        named = {**named, **values}
        out = {self.c[field.name]: values[field.name] for field in form.FIELDS if field.name in values}
        return out | self._outlook(named)

    def _outlook(self, named: dict[str, Any]) -> dict:
        base = self._base(named)
        return {
            self.c["outlook"]: _outlook(named, self.page, self.pace),
            self.c["changes"]: _changes(form.changes(named, base), named.get("base") or ""),
        }

    def outlook(self, values: dict) -> dict:
        """A setting was touched: say what it changes."""
        return self._outlook(self._named(values))

    def choose_source(self, values: dict) -> dict:
        """Another text: its own prompt, pieces and settings."""
        named = self._named(values) | {"base": self._named(values)["size"]}
        source = named["source"]
        if source not in form.SOURCES:
            return gr.skip()
        c, own = self.c, source == OWN_TEXT
        prompt = form.PROMPTS[source]
        base = form.size_values(named["size"] if named["size"] in form.SIZES else FIRST_SIZE, source)
        out = self._set(named | {"prompt": prompt}, base)
        allowed = form.TOKENIZERS_OF[source]
        return out | {
            c["own"]: gr.Column(visible=own),
            c["source_note"]: _quiet(form.NOTES[source]),
            c["prompt"]: prompt,
            c["base"]: named["size"],
            c["tokenizer"]: gr.Dropdown(
                [(title, name) for title, name in form.TOKENIZERS if name in allowed], value=base["tokenizer"]
            ),
        }

    def choose_own(self, kind: str) -> dict:
        """Paste, upload or the Hub."""
        c = self.c
        return {
            c["text"]: gr.Textbox(visible=kind == "paste"),
            c["upload"]: gr.File(visible=kind == "upload"),
            c["hub"]: gr.Column(visible=kind == "hub"),
        }

    def choose_size(self, values: dict) -> dict:
        """Another position of the dial."""
        named = self._named(values) | {"base": self._named(values)["size"]}
        return self._set(named, self._base(named)) | {self.c["base"]: named["size"]}

    def reset(self, values: dict) -> dict:
        """All settings back to the size's own."""
        named = self._named(values)
        return self._set(named, self._base(named))

    def _resetter(self, group: str):
        def reset_group(values: dict) -> dict:
            named = self._named(values)
            base = self._base(named)
            return self._set(named, {f.name: base[f.name] for f in form.FIELDS if f.group == group})

        return reset_group

    def _presetter(self, name: str):
        def choose_preset(values: dict) -> dict:
            named = self._named(values) | {"base": name}
            preset = PRESETS[name]
            settings, shrunk = form.preset_values(preset, self.page.limits)
            c, config = self.c, preset.config
            n = config.n_parameters
            note = f"{preset.title}: {preset.note} {n:,} parameters, {watch.share_of_gpt2(n)} of GPT-2 small."
            if shrunk:
                note += (
                    " That is too large to train here, so the controls now hold a small twin: the same architecture "
                    "with 4 layers, width 128 and a context of 64. Below is the real one."
                )
            return self._set(named, settings) | {
                c["base"]: name,
                c["preset_note"]: theme.notice(note, "warning" if shrunk else "info"),
                c["preset_chart"]: gr.update(value=show(*watch.parameter_chart(config)), visible=True),
                c["preset_table"]: watch.parameter_table(config),
            }

        return choose_preset


# ---- small pieces ----------------------------------------------------------------------------------------------------


def recorded(page: Page, model_id: str | None) -> RunView | None:
    """The run that a shipped or otherwise loaded model remembers, with what it predicts now; None without a model."""
    try:
        checkpoint = page.registry.get(model_id, None)
    except ValueError:
        return None
    view = RunView.of_checkpoint(model_id, checkpoint)
    prompt = form.PROMPTS.get(str(checkpoint.about.get("language")), view.prompt)
    ids = checkpoint.tokenizer.encode(prompt)[-checkpoint.config.context_length :]
    return view.asked(prompt, predict(checkpoint.model, ids)) if ids else view


def _outlook(named: dict[str, Any], page: Page, pace: Pace) -> str:
    """The model that these settings would make, and how long it would take; or why it cannot be."""
    try:
        for field in form.FIELDS:
            field.check(named[field.name], page.limits)
        config, training = form.model_config(named), form.train_config(named)
        page.limits.check_training(config, training)
    except ValueError as problem:
        return theme.notice(sentence(str(problem)), "error")
    seconds = pace.seconds(config, training)
    words = (
        f"{config.n_parameters:,} parameters ({watch.share_of_gpt2(config.n_parameters)} of GPT-2 small), "
        f"{training.steps:,} steps: about {watch.duration(seconds)} here."
    )
    if seconds > page.limits.seconds:
        words += (
            f" A run may take {watch.duration(page.limits.seconds)}; it will end there and keep what it has learned."
        )
    return _quiet(words)


def _changes(changes: list[tuple[str, str]], base: str) -> str:
    name = form.SIZES.get(base) or (PRESETS[base].title if base in PRESETS else base)
    if not changes:
        return _quiet(f"All settings are those of {name}.")
    rows = "".join(
        f"<li>{html.escape(what)}{f' <em>{html.escape(effect)}</em>' if effect else ''}</li>"
        for what, effect in changes
    )
    return f'<div class="quiet-line">Changed from {html.escape(name)}:<ul class="changes">{rows}</ul></div>'


def _resume_label(view: RunView) -> str:
    finished = view.history.finished or {}
    return "Train longer" if finished.get("reason") == "done" and view.can_resume else "Resume"


def _why(view: RunView | None) -> str:
    """Why a button sleeps."""
    if view is None:
        return "Stop wakes up while a run is going on, Resume after one of your own."
    if view.state == "stopping":
        return "Stopping; what was learned is kept."
    if view.active:
        return "Train and Resume wake up when this run is over. You may close this page: the run goes on."
    if view.can_resume:
        return "Stop wakes up while a run is going on."
    return "Stop wakes up while a run is going on, Resume after one of your own."


def _similarity_note(view: RunView | None) -> str:
    if view is not None and view.tokenizer is not None and view.tokenizer.kind == "word":
        if view.active:
            return _quiet("Drawn when the run is over.")
        return _quiet("Cosine similarity of word vectors: words used alike end up alike.")
    return _quiet(
        "This model reads characters or pieces. Train one on words (Advanced → Text) to compare their vectors."
    )


def _quiet(text: str) -> str:
    return f'<p class="quiet-line">{html.escape(text)}</p>'


def _update(value: Any) -> Any:
    """Values as they are; pairs (property, value) as updates of that property."""
    if isinstance(value, tuple) and value[0] == "choices":
        return gr.CheckboxGroup(choices=value[1], visible=bool(value[1]))
    if isinstance(value, tuple) and value[0] == "resume":
        return gr.Button(interactive=value[1], value=value[2])
    if isinstance(value, tuple):
        return gr.update(**{value[0]: value[1]})
    return value
