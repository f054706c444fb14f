"""What touching the form does: texts, sizes and models set the controls; every change says what it changes.

What an answer wants in the fields goes through `answer`, and the browser (front/form.js) leaves alone those that were
touched meanwhile.
"""

from __future__ import annotations

import html
import itertools
import json
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
from ... import theme
from ...forms import run as form
from ...forms import texts
from ...forms.excerpts import beginning_of
from ...forms.fields import by_name, read, whole
from ...page import QUIETLY, UNSEEN
from ...refusals import sentence
from ...theme import quiet

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
_FIELDS = (*form.BY_NAME, "size", "prompt", "base", "suited")
_SETTLE = f"(answer, ...now) => playground.settle(answer, {json.dumps(_FIELDS)}, now)"


class Settings:
    """The handlers of the form. `inputs` are the components whose values make up a run."""

    def __init__(self, limits: Limits, controls: dict[str, Any], pace: Pace):
        self.limits, self.c, self.pace = limits, controls, pace
        self.fields = [controls[field.name] for field in form.FIELDS]
        self.words = [controls[name] for name in ("outlook", "problem", "changes", "advanced", "reset")]
        self.inputs = {*self.fields, *(controls[name] for name in ("source", "size", "prompt", "base", "suited"))}
        self._asked = itertools.count(1)

    def connect(self) -> None:
        """Bind them."""
        c, inputs, words = self.c, self.inputs, self.words
        told = [c["answer"], *words]
        fields = [c[name] for name in _FIELDS]
        c["answer"].change(None, [c["answer"], *fields], fields, js=_SETTLE, **UNSEEN)
        touched = [field.input for field in self.fields if field is not c["tokenizer"]]
        gr.on(touched, self.outlook, inputs, told, **QUIETLY)
        own, of_source = [c[name] for name in texts.OWN], [c[name] for name in texts.SET_BY_SOURCE]
        read = {*inputs, *own}
        c["picked"](self.choose_source, read, [*told, *of_source], **QUIETLY)
        begun = [c["text"].change, c["text"].blur]
        gr.on(begun, None, [c["prompt"], c["text"]], c["prompt"], js=BEGINNING, **UNSEEN)
        # `input` says nothing of a pasted text
        suits = [c["text"].change, c["upload"].upload, c["upload"].clear, c["own_kind"].input, c["tokenizer"].input]
        gr.on(suits, self.suit, read, told, **QUIETLY)
        c["size"].input(self.choose_size, inputs, told, **QUIETLY)
        c["reset"].click(self.reset, read, told, **QUIETLY)
        c["preset"].input(self.choose_preset, {*inputs, c["preset"]}, [*told, c["preset_note"]], **QUIETLY)

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

    def _answer(self, asked: dict[str, Any], named: dict[str, Any]) -> dict:
        """Outputs that say what these settings make, and want them in the fields."""
        told = named | {"size": form.size_of(named)}
        fields = {name: (asked.get(name), told.get(name)) for name in _FIELDS if asked.get(name) != told.get(name)}
        return self._words(named) | {self.c["answer"]: json.dumps({"n": next(self._asked), "fields": fields})}

    def _words(self, named: dict[str, Any]) -> dict:
        changes = form.changes(named, self._base(named))
        count = f"Advanced · {len(changes)} changed" if changes else "Advanced"
        return {
            self.c["outlook"]: outlook_text(named, self.limits, self.pace),
            self.c["problem"]: text_problem(named),
            self.c["changes"]: changes_text(changes, named.get("base") or "", self._by_length(named)),
            self.c["advanced"]: gr.Accordion(label=count),
            self.c["reset"]: gr.Button(visible=bool(changes)),
        }

    def suit(self, values: dict) -> dict:
        """One's own text is another, or is read otherwise: the form follows."""
        asked = self.named(values)
        named = self.suited(asked)
        if named["source"] == OWN_TEXT and named["own_kind"] == "upload":
            named["prompt"] = self._beginning(named)
        return self._answer(asked, named)

    def _beginning(self, named: dict[str, Any]) -> str:
        """What an uploaded text begins with; the prompt as it is where there is none."""
        try:
            return beginning_of(texts.source_of(named, self.limits).text) or named["prompt"]
        except ValueError:
            return named["prompt"]

    def suited(self, named: dict[str, Any]) -> dict[str, Any]:
        """The form's values as they are once it has followed one's own text, which takes it a moment: size and steps
        follow from the text's length, and what the visitor has set stays. A known model's settings stay, too."""
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

    def outlook(self, values: dict) -> dict:
        """A setting was touched: say what it changes."""
        named = self.named(values)
        return self._answer(named, named)

    def choose_source(self, values: dict) -> dict:
        """Another text: its own prompt, pieces and settings; what the visitor has set stays."""
        asked = self.named(values)
        source = asked["source"]
        if source not in texts.SOURCES:
            return gr.skip()
        new = form.for_another_text(asked, source, self.limits, form.remembered(asked)[0])
        named = self.suited(asked | {"prompt": texts.PROMPTS[source]} | new)
        return self._answer(asked, named) | texts.chosen(self.c, source)

    def load(self, named: dict[str, Any]) -> dict:
        """Outputs that make the form hold these: fields, source, size, base, prompt, where an own text comes from."""
        out = {self.c[name]: named[name] for name in (*form.BY_NAME, "base", "prompt")}
        out |= {self.c["suited"]: named.get("suited", ""), self.c["size"]: form.size_of(named), self.c["name"]: ""}
        return out | self._words(named) | texts.put_back(self.c, named)

    def choose_size(self, values: dict) -> dict:
        """Another position of the dial; one's own text is still read in the same pieces."""
        asked = self.named(values)
        named = asked | {"base": asked["size"], "suited": form.written(form.remembered(asked)[0], form.BY_HAND)}
        pieces = {"tokenizer": named["tokenizer"]} if named["source"] == OWN_TEXT else {}
        return self._answer(asked, named | self._base(named) | pieces)

    def reset(self, values: dict) -> dict:
        """All settings back to the size's own."""
        asked = self.named(values)
        return self._answer(asked, self.suited(asked | self._base(asked)))

    def choose_preset(self, values: dict) -> dict:
        """The settings of a model that others have made, or a size's own again."""
        asked = self.named(values)
        name = asked["preset"]
        if name not in form.SYSTEMS:
            return self._answer(asked, asked | {"base": form.FIRST_SIZE}) | {self.c["preset_note"]: ""}
        settings, shrunk = form.preset_values(name, self.limits)
        note = preset_note(name, shrunk=shrunk)
        return self._answer(asked, asked | {"base": name} | settings) | {self.c["preset_note"]: note}


def preset_note(name: str, *, shrunk: bool) -> str:
    """What a known model is, as HTML."""
    n = PRESETS[name].n_parameters
    note = f"{NOTES[name]} {n:,} parameters, {share_of_gpt2(n)} of GPT-2 small."
    if name not in RECIPES:
        note += " Only its shape is its own: it is trained by the usual settings."
    if shrunk:
        note += " Too large to train here: the controls hold a twin with 4 layers, width 128 and a context of 64."
    return quiet(note)


def _own(named: dict[str, Any]) -> texts.Own:
    """The length of one's own text, where it was read in these pieces."""
    own = form.remembered(named)[0] if named["source"] == OWN_TEXT else texts.UNKNOWN
    return own if own.tokenizer == named["tokenizer"] else texts.UNKNOWN


def text_problem(named: dict[str, Any]) -> str:
    """Why one's own text cannot be learned, as HTML; empty where it can."""
    try:
        texts.check_own_length(_own(named), whole("Context", named["context_length"]))
    except ValueError as problem:
        return theme.notice(sentence(str(problem)), "error")
    return ""


def outlook_text(named: dict[str, Any], limits: Limits, pace: Pace) -> str:
    """The model that these settings would make, and how long it would take; or why it cannot be."""
    try:
        own = _own(named)
        read(form.FIELDS, named, limits)
        config, training = form.model_config(named), form.train_config(named)
        limits.check_training(config, training)
    except ValueError as problem:
        return theme.notice(sentence(str(problem)), "error")
    seconds = pace.seconds(config, training, own.tokens)
    known = own.vocabulary or texts.knows_vocabulary(named["source"], named["tokenizer"])
    words = f"{'' if known else 'About '}{config.n_parameters:,} parameters. "
    words += f"{'About ' * (seconds >= 1)}{theme.duration(seconds)} here{' (a guess)' * pace.guesses}."
    if seconds > limits.seconds:
        words += f" It ends after {theme.duration(limits.seconds)} and keeps what it has learned."
    return quiet(words[:1].upper() + words[1:])


def changes_text(changes: list[tuple[str, str]], base: str, by_length: Sequence[tuple[str, str]] = ()) -> str:
    """What was changed, from which size or preset, and what each change does.

    Args:
        by_length: what the length of an own text has changed in that size before.
    """
    name = form.SIZES.get(base) or (TITLES[base] if base in PRESETS else base)
    if not changes:
        followed = "; ".join(what for what, _ in by_length)
        return quiet(f"{name}, suited to the length of your text: {followed}.") if followed else ""
    rows = "".join(
        f"<li>{html.escape(what)}{f' <em>{html.escape(effect)}</em>' if effect else ''}</li>"
        for what, effect in changes
    )
    return f'<div class="quiet-line">Changed from {html.escape(name)}:<ul class="changes">{rows}</ul></div>'
