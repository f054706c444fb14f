"""What touching the form does: texts, sizes and models set the controls; every change says what it changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from ...forms.fields import read, whole
from ...forms.followed import Begins, Followed, Follows, Values
from ...page import Page
from ...panel import Asked
from ...refusals import sentence
from ...theme import quiet
from .sweep import runs_of

FIRST_SOURCE = "stories"
_FIELDS = (*form.BY_NAME, "size", "prompt", "base", "suited")
WORDS = ("outlook", "problem", "changes", "advanced", "reset")
SET_BY_RUN = (*form.BY_NAME, *texts.PUT_BACK, "size", "base", "suited", "prompt", "name", "further", *WORDS)
"""The components with a run's settings, or with text about them."""
OF_LINK = ("letters", "linked")


class Settings:
    """What the form follows. It holds the components by name, and of visitors nothing."""

    def __init__(self, limits: Limits, controls: dict[str, Any], pace: Pace):
        self.limits, self.c, self.pace = limits, controls, pace
        self._after: dict[str, Callable[[Values], tuple[Values, Values]]] = {
            "source": self.choose_source,
            "text": self.suit,
            "size": self.choose_size,
            "reset": self.reset,
            "preset": self.choose_preset,
        }

    def connect(self, page: Page, begin: Callable[[Values, Asked], Begins]) -> None:
        """Bind it all; `begin` is what pressing Train does."""
        c = self.c
        reads = (*_FIELDS, *texts.READS, "preset", "letters", "name", "further", "sweep", "model")
        shows = (*texts.FOLLOWS_TEXT, *WORDS, *OF_LINK, "preset_note", "name")
        sets = tuple(dict.fromkeys((*_FIELDS, *shows)))
        self.followed = followed = Followed(
            page, "train_form", c | {"model": page.model}, reads=reads, sets=sets, follow=self.follow, begin=begin
        )
        texts.follow_text(followed, c)
        followed.on("text", c["tokenizer"].input, whole_texts=True)
        touched = [c[name].input for name in form.BY_NAME if name != "tokenizer"]
        # a run that is over has shown how fast this machine is
        followed.on("fields", *touched, c["prompt"].input, c["further"].input, c["sweep"].input, page.model.change)
        followed.on("size", c["size"].input)
        followed.on("preset", c["preset"].input)
        followed.on("reset", c["reset"].click, whole_texts=True)
        followed.begins(c["train"], panel="#train-panel")

    def follow(self, values: Values, causes: Sequence[str]) -> Follows:
        """What the form holds once it has followed what was touched, in that order."""
        asked = named = texts.with_source(values)
        shows: Values = {}
        for cause in causes:
            if cause in self._after:
                named, also = self._after[cause](named)
                shows |= also
            if cause in ("source", "size", "reset", "preset"):
                shows |= dict.fromkeys(OF_LINK, "")  # the form is the visitor's own again
        named = named | {"size": form.size_of(named)}
        fields = {name: named[name] for name in _FIELDS if asked.get(name) != named.get(name)}
        return Follows(fields, self.words(named) | shows)

    def _base(self, named: Values) -> Values:
        """The settings that Reset goes back to."""
        source = named["source"] if named["source"] in texts.SOURCES else FIRST_SOURCE
        return form.base_values(named.get("base"), source, self.limits, form.remembered(named)[0]) | {
            "source": source, "prompt": named.get("prompt") or ""
        }  # fmt: skip

    def _by_length(self, named: Values) -> list[str]:
        """What the length of an own text sets otherwise than its size does, as `form.changes` says it."""
        size = named.get("base")
        if named["source"] != OWN_TEXT or size not in form.SIZES:
            return []
        return form.changes(self._base(named), form.size_values(size, OWN_TEXT))

    def words(self, named: Values) -> Values:
        """What is said of these settings."""
        changes = form.changes(named, self._base(named))
        count = f"Advanced · {len(changes)} changed" if changes else "Advanced"
        return {
            "outlook": outlook_text(named, self.limits, self.pace),
            "problem": text_problem(named),
            "changes": changes_text(changes, named.get("base") or "", self._by_length(named)),
            "advanced": gr.update(label=count),
            "reset": gr.update(visible=bool(changes)),
        }

    def suit(self, asked: Values) -> tuple[Values, Values]:
        """One's own text is another, or is read otherwise: the form follows."""
        named = self.suited(asked)
        return named, texts.shown_own(asked["own_kind"]) | {"contents": texts.contents_html(asked, self.limits)}

    def suited(self, named: Values) -> Values:
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

    def choose_source(self, asked: Values) -> tuple[Values, Values]:
        """Another text: its own prompt, pieces and settings; what the visitor has set stays."""
        source = asked["source"]
        if source not in texts.SOURCES:
            return asked, {}
        new = form.for_another_text(asked, source, self.limits, form.remembered(asked)[0])
        shows = texts.chosen(source) | {"contents": texts.contents_html(asked, self.limits)}
        return self.suited(asked | {"prompt": texts.PROMPTS[source]} | new), shows

    def choose_size(self, asked: Values) -> tuple[Values, Values]:
        """Another position of the dial; one's own text is still read in the same pieces."""
        named = asked | {"base": asked["size"], "suited": form.written(form.remembered(asked)[0], form.BY_HAND)}
        pieces = {"tokenizer": named["tokenizer"]} if named["source"] == OWN_TEXT else {}
        return named | self._base(named) | pieces, {}

    def reset(self, asked: Values) -> tuple[Values, Values]:
        """All settings back to the size's own."""
        return self.suited(asked | self._base(asked)), {}

    def choose_preset(self, asked: Values) -> tuple[Values, Values]:
        """The settings of a model that others have made, or a size's own again."""
        name = asked["preset"]
        if name not in form.SYSTEMS:
            return asked | {"base": form.FIRST_SIZE}, {"preset_note": ""}
        settings, shrunk = form.preset_values(name, self.limits)
        return asked | {"base": name} | settings, {"preset_note": preset_note(name, shrunk=shrunk)}

    def load(self, named: Values) -> dict:
        """Outputs that make the form hold these settings."""
        return {self.c[name]: value for name, value in self.held(named).items()}

    def held(self, named: Values) -> Values:
        """What makes the form hold these, by name: fields, size, base, prompt, where an own text comes from."""
        out = {name: named[name] for name in (*form.BY_NAME, "base", "prompt")}
        out |= {"suited": named.get("suited", ""), "size": form.size_of(named), "name": "", "further": False}
        return out | self.words(named) | texts.put_back(named)


def preset_note(name: str, *, shrunk: bool) -> str:
    """What a known model is, as HTML."""
    n = PRESETS[name].n_parameters
    note = f"{NOTES[name]} {n:,} parameters, {share_of_gpt2(n)} of GPT-2 small."
    if name not in RECIPES:
        note += " Only its shape is its own: it is trained by the usual settings."
    if shrunk:
        note += " Too large to train here: the controls hold a twin with 4 layers, width 128 and a context of 64."
    return quiet(note)


def _own(named: Values) -> texts.Own:
    """The length of one's own text, where it was read in these pieces."""
    own = form.remembered(named)[0] if named["source"] == OWN_TEXT else texts.UNKNOWN
    return own if own.tokenizer == named["tokenizer"] else texts.UNKNOWN


def text_problem(named: Values) -> str:
    """Why one's own text cannot be learned, as HTML; empty where it can."""
    try:
        texts.check_own_length(_own(named), whole("Context", named["context_length"]))
    except ValueError as problem:
        return theme.notice(sentence(str(problem)), "error")
    return ""


def outlook_text(named: Values, limits: Limits, pace: Pace) -> str:
    """The model that these settings would make, and how long it would take; or why it cannot be."""
    if named.get("further"):
        return quiet("The model chosen at the top keeps its size and its tokens, and learns this text in small steps.")
    try:
        own = _own(named)
        read(form.FIELDS, named, limits)
        config, training = form.model_config(named), form.train_config(named)
        limits.check_training(config, training)
    except ValueError as problem:
        return theme.notice(sentence(str(problem)), "error")
    seconds = pace.seconds(config, training, own.tokens)
    runs = runs_of(str(named.get("sweep") or ""), limits)
    seconds *= runs
    known = own.vocabulary or texts.knows_vocabulary(named["source"], named["tokenizer"])
    words = f"{'' if known else 'About '}{config.n_parameters:,} parameters. "
    words += f"{runs} runs: " * (runs > 1)
    words += f"{'About ' * (seconds >= 1 and runs == 1)}{theme.duration(seconds)} here{' (a guess)' * pace.guesses}."
    if seconds > limits.seconds:
        words += f" It ends after {theme.duration(limits.seconds)} and keeps what it has learned."
    return quiet(words[:1].upper() + words[1:])


def changes_text(changes: Sequence[str], base: str, by_length: Sequence[str] = ()) -> str:
    """What was changed, and from which size or preset.

    Args:
        by_length: what the length of an own text has changed in that size before.
    """
    name = form.SIZES.get(base) or (TITLES[base] if base in PRESETS else base)
    if changes:
        return quiet(f"Changed from {name}: {'; '.join(changes)}.")
    return quiet(f"{name}, suited to the length of your text: {'; '.join(by_length)}.") if by_length else ""
