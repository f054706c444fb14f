"""What touching the form does: texts, sizes, presets and resets set the controls; every change says what it changes."""

from __future__ import annotations

import html
from typing import Any

import gradio as gr

from ....model import PRESETS
from ....service.limits import Limits
from ....service.pace import Pace
from ....service.runs import OWN_TEXT
from ... import theme
from ...chart import show
from ...page import QUIETLY, sentence
from ...theme import quiet
from . import form, watch

FIRST_SOURCE, FIRST_SIZE = "stories", "small"


class Settings:
    """The handlers of the left column. `inputs` are the components whose values make up a run."""

    def __init__(self, limits: Limits, controls: dict[str, Any], pace: Pace):
        self.limits, self.c, self.pace = limits, controls, pace
        self.fields = [controls[field.name] for field in form.FIELDS]
        self.inputs = {*self.fields, *(controls[name] for name in ("source", "size", "prompt", "base"))}

    def connect(self) -> None:
        """Bind them."""
        c, inputs = self.c, self.inputs
        words = [c["outlook"], c["changes"]]
        touched = [field.input for field in self.fields]
        gr.on(touched, self.outlook, inputs, words, trigger_mode="always_last", **QUIETLY)
        own = [c["own"], c["source_note"], c["prompt"], c["tokenizer"]]
        c["source"].input(self.choose_source, inputs, [*self.fields, *words, *own, c["base"]], **QUIETLY)
        c["own_kind"].input(self.choose_own, c["own_kind"], [c["text"], c["upload"], c["hub"]], **QUIETLY)
        c["size"].input(self.choose_size, inputs, [*self.fields, *words, c["base"]], **QUIETLY)
        c["reset"].click(self.reset, inputs, [*self.fields, *words], **QUIETLY)
        for group in form.GROUPS:
            c[f"reset_{group}"].click(self._resetter(group), inputs, [*self.fields, *words], **QUIETLY)
        shown = [c["base"], c["preset_note"], c["preset_chart"], c["preset_table"]]
        for name in form.SYSTEMS:
            c[f"preset_{name}"].click(self._presetter(name), inputs, [*self.fields, *words, *shown], **QUIETLY)

    def named(self, values: dict) -> dict[str, Any]:
        """The form's values by name."""
        return {name: values[component] for name, component in self.c.items() if component in values}

    def _base(self, named: dict[str, Any]) -> dict[str, Any]:
        """The settings that Reset goes back to."""
        base = named.get("base")
        source = named["source"] if named["source"] in form.SOURCES else FIRST_SOURCE
        size = named["size"] if named["size"] in form.SIZES else FIRST_SIZE
        values = form.size_values(size, source)
        if base in form.SYSTEMS:
            values |= form.preset_values(PRESETS[base], self.limits)[0]
        return values | {"source": source, "prompt": named.get("prompt") or ""}

    def _set(self, named: dict[str, Any], values: dict[str, Any]) -> dict:
        """Outputs that put these values into the form."""
        named = {**named, **values}
        out = {self.c[field.name]: values[field.name] for field in form.FIELDS if field.name in values}
        return out | self._outlook(named)

    def _outlook(self, named: dict[str, Any]) -> dict:
        base = self._base(named)
        return {
            self.c["outlook"]: outlook_text(named, self.limits, self.pace),
            self.c["changes"]: changes_text(form.changes(named, base), named.get("base") or ""),
        }

    def outlook(self, values: dict) -> dict:
        """A setting was touched: say what it changes."""
        return self._outlook(self.named(values))

    def choose_source(self, values: dict) -> dict:
        """Another text: its own prompt, pieces and settings."""
        named = self.named(values) | {"base": self.named(values)["size"]}
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
            c["source_note"]: quiet(form.NOTES[source]),
            c["prompt"]: prompt,
            c["base"]: named["size"],
            c["tokenizer"]: gr.Dropdown(
                [(title, name) for title, name in form.TOKENIZERS if name in allowed], value=base["tokenizer"]
            ),
        }

    def load(self, named: dict[str, Any]) -> dict:
        """Outputs that make the form hold these: fields, source, size, base, prompt, where an own text comes from."""
        c, source = self.c, named["source"]
        allowed = form.TOKENIZERS_OF[source]
        out = self._set(named, {field.name: named[field.name] for field in form.FIELDS})
        out |= {c[name]: named[name] for name in ("source", "size", "base", "prompt")}
        if source == OWN_TEXT:
            out |= self.choose_own(named["own_kind"])
            out |= {c[name]: named[name] for name in ("own_kind", "hub_repo", "hub_file", "hub_type")}
        return out | {
            c["own"]: gr.Column(visible=source == OWN_TEXT),
            c["source_note"]: quiet(form.NOTES[source]),
            c["tokenizer"]: gr.Dropdown(
                [(title, name) for title, name in form.TOKENIZERS if name in allowed], value=named["tokenizer"]
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
        named = self.named(values) | {"base": self.named(values)["size"]}
        return self._set(named, self._base(named)) | {self.c["base"]: named["size"]}

    def reset(self, values: dict) -> dict:
        """All settings back to the size's own."""
        named = self.named(values)
        return self._set(named, self._base(named))

    def _resetter(self, group: str):
        def reset_group(values: dict) -> dict:
            named = self.named(values)
            base = self._base(named)
            return self._set(named, {f.name: base[f.name] for f in form.FIELDS if f.group == group})

        return reset_group

    def _presetter(self, name: str):
        def choose_preset(values: dict) -> dict:
            named = self.named(values) | {"base": name}
            preset = PRESETS[name]
            settings, shrunk = form.preset_values(preset, self.limits)
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


def outlook_text(named: dict[str, Any], limits: Limits, pace: Pace) -> str:
    """The model that these settings would make, and how long it would take; or why it cannot be."""
    try:
        for field in form.FIELDS:
            field.check(named[field.name], limits)
        config, training = form.model_config(named), form.train_config(named)
        limits.check_training(config, training)
    except ValueError as problem:
        return theme.notice(sentence(str(problem)), "error")
    seconds = pace.seconds(config, training)
    about = "" if form.knows_vocabulary(named["source"], named["tokenizer"]) else "About "
    words = (
        f"{about}{config.n_parameters:,} parameters ({watch.share_of_gpt2(config.n_parameters)} of GPT-2 small), "
        f"{training.steps:,} steps: about {theme.duration(seconds)} here."
    )
    if seconds > limits.seconds:
        words += f" A run may take {theme.duration(limits.seconds)}; it will end there and keep what it has learned."
    return quiet(words)


def changes_text(changes: list[tuple[str, str]], base: str) -> str:
    """What was changed, from which size or preset, and what each change does."""
    name = form.SIZES.get(base) or (PRESETS[base].title if base in PRESETS else base)
    if not changes:
        return quiet(f"All settings are those of {name}.")
    rows = "".join(
        f"<li>{html.escape(what)}{f' <em>{html.escape(effect)}</em>' if effect else ''}</li>"
        for what, effect in changes
    )
    return f'<div class="quiet-line">Changed from {html.escape(name)}:<ul class="changes">{rows}</ul></div>'
