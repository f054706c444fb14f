"""What touching the form does: texts, sizes, presets and resets set the controls; every change says what it changes."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import gradio as gr

from ....model import PRESETS
from ....service.limits import Limits
from ....service.pace import Pace
from ....service.runs import OWN_TEXT
from ....training import RECIPES
from ....words.card import share_of_gpt2
from ....words.presets import NOTES, TITLES
from ....words.training import in_steps
from ... import theme
from ...chart import show
from ...forms import run as form
from ...forms import texts
from ...forms.fields import by_name, read
from ...page import QUIETLY, UNSEEN
from ...refusals import sentence
from ...theme import quiet
from . import watch

FIRST_SOURCE = "stories"
# The prompt begins as a pasted text does (`excerpts.beginning_of`), unless somebody has written one; at once and in the
# browser, since an answer from here would come after the first letters that are typed.
BEGINNING = """(prompt, text) => {
  if ((prompt ?? '').trim() && prompt !== window.playgroundBeginning) return prompt;
  const words = (text ?? '').trim().slice(0, 1000).match(/^\\S+(?:[^\\S\\r\\n]+\\S+){0,3}/u);
  const begun = words ? [...words[0]] : [];
  const cut = begun.slice(0, 41).join('').replace(/\\s+\\S*$/u, '');
  return window.playgroundBeginning = begun.length <= 40 ? begun.join('') : [...cut].slice(0, 40).join('');
}"""


class Settings:
    """The handlers of the left column. `inputs` are the components whose values make up a run."""

    def __init__(self, limits: Limits, controls: dict[str, Any], pace: Pace):
        self.limits, self.c, self.pace = limits, controls, pace
        self.fields = [controls[field.name] for field in form.FIELDS]
        self.words = [controls[name] for name in ("outlook", "changes", "size")]
        self.inputs = {*self.fields, *(controls[name] for name in ("source", "size", "prompt", "base", "suited"))}

    def connect(self) -> None:
        """Bind them."""
        c, inputs, words = self.c, self.inputs, self.words
        touched = [field.input for field in self.fields if field is not c["tokenizer"]]
        gr.on(touched, self.outlook, inputs, words, **QUIETLY)
        own, of_source = [c[name] for name in texts.OWN], [c[name] for name in (*texts.SET_BY_SOURCE, "prompt")]
        read, suited = {*inputs, *own}, [*self.fields, *words, c["base"], c["suited"]]
        c["source"].input(self.choose_source, read, [*suited, *of_source], **QUIETLY)
        begun = [c["text"].change, c["text"].blur]
        gr.on(begun, None, [c["prompt"], c["text"]], c["prompt"], js=BEGINNING, **UNSEEN)
        for listen in (
            c["text"].change,  # `input` says nothing of a pasted text
            c["upload"].upload,
            c["upload"].clear,
            c["own_kind"].input,
            c["tokenizer"].input,
        ):
            listen(self.suit, read, suited, **QUIETLY)
        c["size"].input(self.choose_size, inputs, suited, **QUIETLY)
        c["reset"].click(self.reset, read, suited, **QUIETLY)
        for group in form.GROUPS:
            c[f"reset_{group}"].click(self._resetter(group), read, suited, **QUIETLY)
        shown = [c["base"], c["preset_note"], c["preset_chart"], c["preset_table"]]
        for name in form.SYSTEMS:
            c[f"preset_{name}"].click(self._presetter(name), inputs, [*self.fields, *words, *shown], **QUIETLY)

    def named(self, values: dict) -> dict[str, Any]:
        """The form's values by name."""
        return by_name(self.c, values)

    def _base(self, named: dict[str, Any]) -> dict[str, Any]:
        """The settings that Reset goes back to."""
        source = named["source"] if named["source"] in texts.SOURCES else FIRST_SOURCE
        return form.base_values(named.get("base"), source, self.limits, form.remembered(named)[0]) | {
            "source": source, "prompt": named.get("prompt") or ""
        }  # fmt: skip

    def _by_length(self, named: dict[str, Any]) -> list[tuple[str, str]]:
        """What the length of an own text sets otherwise than its size does, as `form.changes` says it."""
        size = named.get("base")
        if named["source"] != OWN_TEXT or size not in form.SIZES:
            return []
        return form.changes(self._base(named), form.size_values(size, OWN_TEXT))

    def suit(self, values: dict) -> dict:
        """One's own text is another, or is read otherwise: the form follows."""
        named = self.suited(self.named(values))
        if named["source"] != OWN_TEXT or named["base"] in form.SYSTEMS:
            return self._outlook(named) | {self.c["suited"]: named.get("suited")}
        return self._all(named)

    def _all(self, named: dict[str, Any]) -> dict:
        """Outputs that put all of these into the form."""
        return self._outlook(named) | {self.c[name]: named.get(name) for name in (*form.BY_NAME, "base", "suited")}

    def suited(self, named: dict[str, Any]) -> dict[str, Any]:
        """The form's values as they are once it has followed one's own text, which takes it a moment: size and steps
        follow from the text's length, and what the visitor has set stays. A teaching system's settings stay, too."""
        if named["source"] != OWN_TEXT:
            return named
        own, (_, last) = texts.own_in(named, self.limits), form.remembered(named)
        if named["base"] in form.SYSTEMS:
            return named | {"suited": form.written(own, last)}
        by_hand = {field.name for field in form.changed(named, self._base(named))}
        size = form.best_size(own) if named["base"] == last else named["base"]
        suited = named | {"base": size, "suited": form.written(own, last if last == form.BY_HAND else "")}
        base = self._base(suited)
        return suited | {name: base[name] for name in form.BY_NAME if name not in by_hand}

    def _set(self, named: dict[str, Any], values: dict[str, Any]) -> dict:
        """Outputs that put these values into the form."""
        named = {**named, **values}
        out = {self.c[field.name]: values[field.name] for field in form.FIELDS if field.name in values}
        return out | self._outlook(named)

    def _outlook(self, named: dict[str, Any]) -> dict:
        base = self._base(named)
        return {
            self.c["outlook"]: outlook_text(named, self.limits, self.pace),
            self.c["changes"]: changes_text(form.changes(named, base), named.get("base") or "", self._by_length(named)),
            self.c["size"]: form.size_of(named),
        }

    def outlook(self, values: dict) -> dict:
        """A setting was touched: say what it changes."""
        return self._outlook(self.named(values))

    def choose_source(self, values: dict) -> dict:
        """Another text: its own prompt, pieces and settings; what the visitor has set stays."""
        named = self.named(values)
        source = named["source"]
        if source not in texts.SOURCES:
            return gr.skip()
        prompt = texts.PROMPTS[source]
        new = form.for_another_text(named, source, self.limits, form.remembered(named)[0])
        out = self._all(self.suited(named | {"prompt": prompt} | new))
        return out | texts.chosen(self.c, source, new["tokenizer"]) | {self.c["prompt"]: prompt}

    def load(self, named: dict[str, Any]) -> dict:
        """Outputs that make the form hold these: fields, source, size, base, prompt, where an own text comes from."""
        out = self._set(named, {field.name: named[field.name] for field in form.FIELDS})
        out |= {self.c["suited"]: named.get("suited", "")}
        return out | {self.c[name]: named[name] for name in ("base", "prompt")} | texts.put_back(self.c, named)

    def choose_size(self, values: dict) -> dict:
        """Another position of the dial; one's own text is still read in the same pieces."""
        named = self.named(values)
        named |= {"base": named["size"], "suited": form.written(form.remembered(named)[0], form.BY_HAND)}
        pieces = {"tokenizer": named["tokenizer"]} if named["source"] == OWN_TEXT else {}
        return self._all(named | self._base(named) | pieces)

    def reset(self, values: dict) -> dict:
        """All settings back to the size's own."""
        named = self.named(values)
        return self._all(self.suited(named | self._base(named)))

    def _resetter(self, group: str):
        def reset_group(values: dict) -> dict:
            named = self.named(values)
            base = self._base(named)
            return self._all(self.suited(named | {f.name: base[f.name] for f in form.FIELDS if f.group == group}))

        return reset_group

    def _presetter(self, name: str):
        def choose_preset(values: dict) -> dict:
            named = self.named(values) | {"base": name}
            settings, shrunk = form.preset_values(name, self.limits)
            c, config = self.c, PRESETS[name]
            n = config.n_parameters
            note = f"{TITLES[name]}: {NOTES[name]} {n:,} parameters, {share_of_gpt2(n)} of GPT-2 small."
            if name not in RECIPES:
                note += " Only its shape is its own: it is trained by the usual settings."
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
        read(form.FIELDS, named, limits)
        config, training = form.model_config(named), form.train_config(named)
        limits.check_training(config, training)
        own = form.remembered(named)[0] if named["source"] == OWN_TEXT else texts.UNKNOWN
        own = own if own.tokenizer == named["tokenizer"] else texts.UNKNOWN  # it was read in other pieces
        texts.check_own_length(own, config.context_length)
    except ValueError as problem:
        return theme.notice(sentence(str(problem)), "error")
    seconds, guess = pace.seconds(config, training, own.tokens), ", a guess until a first run" if pace.guesses else ""
    known = own.vocabulary or texts.knows_vocabulary(named["source"], named["tokenizer"])
    about = "" if known else "About "
    words = (
        f"{about}{config.n_parameters:,} parameters ({share_of_gpt2(config.n_parameters)} of GPT-2 small), "
        f"{in_steps(training.steps)}: {'about ' * (seconds >= 1)}{theme.duration(seconds)} here{guess}."
    )
    if 0 < training.sample_every < training.steps:
        first = pace.seconds(config, training.replace(steps=training.sample_every), own.tokens)
        words += " Its first text after the untrained one's comes after "
        words += f"{in_steps(training.sample_every)}: {theme.duration(first)}."
    suits = form.suited(named.get("base"), own) if own.tokens and named.get("base") not in form.SYSTEMS else None
    if suits is not None and suits.training.steps == training.steps:
        its = form.remembered(named)[1] == suits.size == form.size_of(named)
        what = "Size and steps" if its else "Steps"
        words += f" {what} were chosen for about {own.tokens:,} tokens of text."
        if training.patience:
            stops = training.steps // training.eval_every > training.patience  # else there are too few evaluations
            sooner = f"stops sooner where validation rises for {training.patience} evaluations, and " if stops else ""
            words += f" It {sooner}keeps its best weights."
    if seconds > limits.seconds:
        words += f" A run may take {theme.duration(limits.seconds)}; it will end there and keep what it has learned."
    return quiet(words)


def changes_text(changes: list[tuple[str, str]], base: str, by_length: Sequence[tuple[str, str]] = ()) -> str:
    """What was changed, from which size or preset, and what each change does.

    Args:
        by_length: what the length of an own text has changed in that size before.
    """
    name = form.SIZES.get(base) or (TITLES[base] if base in PRESETS else base)
    if by_length:
        name += " for a text this long"
    if not changes and by_length:
        followed = "; ".join(what for what, _ in by_length)
        return quiet(html.escape(f"All settings are those of {name}, whose length sets {followed}."))
    if not changes:
        return quiet(f"All settings are those of {name}.")
    rows = "".join(
        f"<li>{html.escape(what)}{f' <em>{html.escape(effect)}</em>' if effect else ''}</li>"
        for what, effect in changes
    )
    return f'<div class="quiet-line">Changed from {html.escape(name)}:<ul class="changes">{rows}</ul></div>'
