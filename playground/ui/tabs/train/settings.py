"""What touching the form does: texts, sizes and models set the controls; the page says what each change does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import gradio as gr

from ....data.corpus import text_sha256
from ....data.tokenizers import in_known_case
from ....kept import Kept
from ....service.limits import Limits
from ....service.pace import Pace
from ....service.runs import OWN_TEXT, source_text
from ....storage import Checkpoint
from ....studies.finetune import shortest, tuning_corpus
from ....words.training import in_steps
from ....words.tuning import lacking_words, needed_words
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
_FIELDS = (*form.BY_NAME, "size", "prompt", "base", "suited", "tuned")
WORDS = ("outlook", "problem", "changes", "reset")
SET_BY_RUN = tuple(dict.fromkeys((
    *form.BY_NAME, *texts.PUT_BACK, *WORDS,
    "size", "base", "suited", "tuned", "prompt", "name", "further", "train",
)))  # fmt: skip
"""The components with a run's settings, or with text about them."""
OF_LINK = ("letters", "linked")


class Settings:
    """The functions that update the form. Holds the components by name, and nothing about visitors.

    `find` returns a visitor's model by its id, and raises ValueError if there is none.
    """

    def __init__(self, limits: Limits, controls: dict[str, Any], pace: Pace, find: Callable[[str, str], Checkpoint]):
        self.limits, self.c, self.pace, self.find = limits, controls, pace, find
        self._after: dict[str, Callable[[Values], tuple[Values, Values]]] = {
            "source": self.choose_source,
            "text": self.suit,
            "further": self.suit,
            "model": lambda asked: self.suit(asked) if asked["parent"] else (asked, {}),
            "size": self.choose_size,
            "reset": self.reset,
        }

    def connect(self, page: Page, begin: Callable[[Values, Asked], Begins]) -> None:
        """Bind the handlers; `begin` is called when Train is pressed."""
        c = self.c
        reads = (*_FIELDS, *texts.READS, "letters", "name", "further", "sweep", "model")
        shows = (*texts.FOLLOWS_TEXT, *WORDS, *OF_LINK, "name", "sweep", "train")
        sets = tuple(dict.fromkeys((*_FIELDS, *shows)))
        self.followed = followed = Followed(
            page, "train_form", c | {"model": page.model}, reads=reads, sets=sets, follow=self.follow, begin=begin
        )
        texts.follow_text(followed, c)
        followed.on("text", c["tokenizer"].input, whole_texts=True)
        # a finished run has shown how fast this machine is, and another model may be trained further
        followed.on("further", c["further"].input, whole_texts=True)
        followed.on("model", page.model.change, whole_texts="further")
        touched = [c[name].input for name in form.BY_NAME if name != "tokenizer"]
        followed.on("fields", *touched, c["prompt"].input, c["sweep"].change)
        followed.on("size", c["size"].input)
        followed.on("reset", c["reset"].click, whole_texts=True)
        followed.begins(c["train"], panel="#train-panel")

    def follow(self, values: Values, causes: Sequence[str], asked: Asked) -> Follows:
        """The form's contents after following the changed controls, in that order."""
        try:
            named = self.named(values, asked.visitor)
        except ValueError as problem:
            return Follows(shows={"outlook": theme.notice(sentence(str(problem)), "error")})
        shows: Values = {}
        for cause in causes:
            if cause in self._after:
                named, also = self._after[cause](named)
                shows |= also
            if cause in ("source", "size", "reset", "further"):
                shows |= dict.fromkeys(OF_LINK, "")  # the form is the visitor's own again
        named = named | {"size": form.size_of(named)}
        fields = {name: named[name] for name in _FIELDS if values.get(name) != named.get(name)}
        return Follows(fields, self.words(named) | shows)

    def named(self, values: Values, visitor: str) -> Values:
        """The form's values with its text and, as `parent`, the model that is trained further, or None.

        If that is another model than before (`tuned`), the settings follow. Raises ValueError if it is not here.
        """
        named, before = texts.with_source(values), str(values.get("tuned") or "")
        now = str(values["model"] or "") if values.get("further") else ""
        parent = self.find(now, visitor) if values.get("further") else None
        if now == before:
            return named | {"parent": parent}
        with suppress(ValueError):
            named["parent"] = self.find(before, visitor) if before else None
        return self._moved(named, parent=parent, tuned=now)

    def _moved(self, named: Values, **changes: Any) -> Values:
        """The form with these changes and the settings that follow; the visitor's own settings stay."""
        by_hand = {field.name for field in form.changed(named, self._base(named))}
        moved = named | changes
        base = self._base(moved)
        return moved | {name: base[name] for name in form.BY_NAME if name not in by_hand}

    def _base(self, named: Values) -> Values:
        """The settings that Reset goes back to."""
        source = named["source"] if named["source"] in texts.SOURCES else FIRST_SOURCE
        own, parent = form.remembered(named)[0], named.get("parent")
        base = form.base_values(named.get("base"), source, own)
        if parent:
            base |= form.tuning_values(parent, own.tokens if source == OWN_TEXT else 0)
        return base | {"source": source, "prompt": named.get("prompt") or ""}

    def words(self, named: Values) -> Values:
        """The texts beside the form for these settings."""
        changes = form.changes(named, self._base(named))
        whose = "" if named.get("parent") else named.get("base") or ""
        return {
            "outlook": outlook_text(named, self.limits, self.pace),
            "problem": text_problem(named),
            "changes": changes_text(changes, whose),
            "reset": gr.update(visible=bool(changes), value=f"Reset {len(changes)} change{'s' * (len(changes) > 1)}"),
        }

    def suit(self, asked: Values) -> tuple[Values, Values]:
        """Update the form after the visitor's own text, or the way it is read, has changed."""
        named = self.suited(asked)
        return named, texts.shown_own(asked["own_kind"]) | self._of_text(named)

    def _of_text(self, named: Values) -> Values:
        """A note on the text, as HTML, with what the model to be trained further lacks, and whether Train can begin."""
        lacking, possible = lacking_html(named, self.limits)
        train = {"train": gr.update(interactive=possible)}
        if named["source"] in texts.EXAMPLES:
            return train | {"source_note": texts.note_html(named["source"]) + lacking}
        return train | {"source_note": "", "contents": texts.contents_html(named, self.limits) + lacking}

    def suited(self, named: Values) -> Values:
        """The form's values after following the visitor's own text: size and steps come from its length, and the
        visitor's own settings stay."""
        if named["source"] != OWN_TEXT:
            return named
        own, (_, last) = texts.own_in(named, self.limits), form.remembered(named)
        size = form.best_size(own) if named["base"] == last else named["base"]
        return self._moved(named, base=size, suited=form.written(own, last if last == form.BY_HAND else ""))

    def choose_source(self, asked: Values) -> tuple[Values, Values]:
        """Switch to another text with its prompt, tokens and settings; keep the visitor's own settings."""
        source = asked["source"]
        if source not in texts.SOURCES:
            return asked, {}
        new = form.for_another_text(asked, source, lambda other: self._base(asked | {"source": other}))
        named = self.suited(asked | {"prompt": texts.PROMPTS[source]} | new)
        return named, texts.chosen(source) | self._of_text(named)

    def choose_size(self, asked: Values) -> tuple[Values, Values]:
        """Switch to another size; the visitor's own text keeps its kind of tokens."""
        named = asked | {"base": asked["size"], "suited": form.written(form.remembered(asked)[0], form.BY_HAND)}
        pieces = {"tokenizer": named["tokenizer"]} if named["source"] == OWN_TEXT else {}
        return named | self._base(named) | pieces, {}

    def reset(self, asked: Values) -> tuple[Values, Values]:
        """Set all settings back to the size's own."""
        return self.suited(asked | self._base(asked)), {}

    def load(self, named: Values) -> dict:
        """Outputs that make the form hold these settings."""
        return {self.c[name]: value for name, value in self.held(named).items()}

    def held(self, named: Values) -> Values:
        """Values that make the form hold these settings, by name: fields, size, base, prompt, source of a text."""
        out = {name: named[name] for name in (*form.BY_NAME, "base", "prompt")}
        out |= {"suited": named.get("suited", ""), "size": form.size_of(named), "name": ""}
        out |= {"further": False, "tuned": "", "train": gr.update(interactive=True)}
        return out | self.words(named) | texts.put_back(named)


def _own(named: Values) -> texts.Own:
    """The facts about the visitor's own text, if it was read in these tokens."""
    own = form.remembered(named)[0] if named["source"] == OWN_TEXT else texts.UNKNOWN
    return own if own.tokenizer == texts.pieces_of(named) else texts.UNKNOWN


def text_problem(named: Values) -> str:
    """Why the visitor's own text cannot be learned, as HTML; empty if it can, or if `lacking_html` says it."""
    if named.get("parent"):
        return ""
    try:
        texts.check_own_length(_own(named), whole("Context", named["context_length"]))
    except ValueError as problem:
        return theme.notice(sentence(str(problem)), "error")
    return ""


_lacking = Kept(entries=32, megabytes=1)


def lacking_html(named: Values, limits: Limits) -> tuple[str, bool]:
    """Parts of the text for which the model to be trained further has no token, or why it cannot learn it, or ""; and
    whether it can."""
    parent = named.get("parent")
    if parent is None or (named["source"] == OWN_TEXT and named["own_kind"] == "hub"):
        return "", True
    try:
        text = source_text(texts.source_of(named, limits), limits)
    except ValueError:  # `contents_html` reports it, except where there is no text yet
        if named["upload"] if named["own_kind"] == "upload" else str(named["text"] or "").strip():
            return "", True
        return quiet(needed_words(parent.name, shortest(parent.config.context_length), parent.tokenizer.kind)), True

    def find() -> tuple[str, bool]:
        try:
            tuning_corpus(text, parent.tokenizer, parent.config.context_length)
        except ValueError as problem:
            return theme.notice(sentence(str(problem)), "error"), False
        if not (lacking := parent.tokenizer.unknown_parts(in_known_case(text, parent.tokenizer))):
            return "", True
        return theme.notice(lacking_words(parent.name, lacking, parent.tokenizer.kind), "warning"), True

    return _lacking.get((parent.name, text_sha256(text)), find, owner=parent.model)


def outlook_text(named: Values, limits: Limits, pace: Pace) -> str:
    """The model that these settings would make or train further, and how long that would take; or why they cannot."""
    parent = named.get("parent")
    try:
        own = _own(named)
        read(form.FIELDS, named, limits)
        config, training = form.model_config(named), form.train_config(named)
        limits.check_training(config, training)
    except ValueError as problem:
        return theme.notice(sentence(str(problem)), "error")
    runs = [(config, training)] if parent else runs_of(str(named.get("sweep") or ""), config, training, limits)
    seconds = sum(pace.seconds(*run, own.tokens) for run in runs)
    if parent:
        words = f"Trains “{parent.name}” further for {in_steps(training.steps)}. "
    elif own.vocabulary or named["source"] in texts.EXAMPLES:
        words = f"{config.n_parameters:,} parameters. "
    else:
        words = f"About {float(f'{config.n_parameters:.2g}'):,.0f} parameters. "
    took = f"{len(runs)} runs: " if len(runs) > 1 else ""
    took = f"{took}{theme.about(seconds)} here{' (a guess)' * pace.guesses}."
    words += took[:1].upper() + took[1:]
    if seconds > limits.seconds:
        words += f" It ends after {theme.duration(limits.seconds)} and keeps what it has learned."
    return quiet(words)


def changes_text(changes: Sequence[str], base: str) -> str:
    """The settings that were changed, and from which size."""
    name = form.SIZES.get(base) or "what suits this model"
    return quiet(f"Changed from {name}: {'; '.join(changes)}.") if changes else ""
