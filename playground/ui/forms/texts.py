"""Texts: the choice of a text and of its tokens, the same on every tab: drawn, read, and put back.

`learn` switches between an example and the visitor's own text; `source` is the choice: an example's name, or OWN_TEXT.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

from ...data import LANGUAGES, TextError, corpus_from_sentences, decode_upload
from ...data.corpus import MIN_TOKENS, check_parts, language_tokenizer, parted
from ...data.tokenizers import MAX_WORDS, UNKNOWN_CHARACTER, WORD_PATTERN
from ...service.limits import Limits
from ...service.runs import HUB_FILE, OWN_TEXT, SENTENCES, Source
from ...training.recipes import learns_by_heart
from ..refusals import sentence
from ..theme import notice, quiet
from .excerpts import beginning_of, contents_of, note_of
from .fields import titled
from .followed import Followed

EXAMPLES = {**{name: language.title for name, language in LANGUAGES.items()}, SENTENCES: "Twenty sentences"}
END_MARKS = ".,;:!?…،؛؟۔。"
"""What ends a sentence is no part of a name."""
SOURCES = {**EXAMPLES, OWN_TEXT: "My own text"}
EXAMPLE = "example"
NOTES = {
    **{name: language.note for name, language in LANGUAGES.items()},
    SENTENCES: "Twenty short sentences; each word is a token. Sixteen for training, four for validation.",
}
ENOUGH = "2,000 characters are enough to begin; 100,000 teach much more."
PROMPTS = {
    **{name: language.prompt for name, language in LANGUAGES.items()},
    SENTENCES: "the cat",
    OWN_TEXT: "",
}
OWN_KINDS = {"paste": "Paste", "upload": "File", "hub": "Hub"}
OWN = ("own_kind", "text", "upload", "hub_repo", "hub_file", "hub_type")
"""The controls that give the visitor's own text."""
READS = ("learn", "source", *OWN)
"""All controls of the choice."""
SET_BY_SOURCE = ("source_note", "source", "own", "tokenizer")
"""The components that another text changes, besides the settings."""

TOKENIZERS = titled(
    ("char", "word", "bpe", "gpt2", "cl100k_base", "o200k_base"),
    char="characters",
    word="words",
    bpe="byte pairs learned from the text (BPE)",
    gpt2="GPT-2's byte pairs",
    cl100k_base="GPT-4's byte pairs (cl100k)",
    o200k_base="GPT-4o's byte pairs (o200k)",
)
TOKENIZERS_OF = {
    **{name: ("char", "word") for name in LANGUAGES},
    SENTENCES: ("word",),
    OWN_TEXT: tuple(value for _, value in TOKENIZERS),
}
_GUESSED_VOCABULARY = {
    "char": 64, "word": 2000, "bpe": 512, "gpt2": 50_257, "cl100k_base": 100_277, "o200k_base": 200_019
}  # fmt: skip


@lru_cache(maxsize=16)
def expected_vocabulary(source: Any, tokenizer: str) -> int:
    """The number of different tokens of an example; a rough guess for a text that has not been read."""
    if source == SENTENCES:
        return corpus_from_sentences().vocab_size
    if source in LANGUAGES and tokenizer in TOKENIZERS_OF[source]:
        return language_tokenizer(source, tokenizer).vocab_size
    return _GUESSED_VOCABULARY.get(tokenizer, 64)


COUNTED = ("char", "word")
"""Tokens that can be counted before a tokenizer is made."""


def check_own_length(own: Own, context_length: int) -> None:
    """Raise TextError if the visitor's own text is surely too short to be learned in these tokens."""
    if own.tokens and own.tokenizer in COUNTED:
        cut = parted(own.tokens)
        check_parts(cut, own.tokens - cut, context_length)


class Own(NamedTuple):
    """The facts about the visitor's own text on which the settings that suit it depend."""

    tokens: int = 0
    """The number of tokens, exact for those in COUNTED, else rough; 0 while unknown."""
    tokenizer: str = "char"
    vocabulary: int = 0
    """How many different tokens; 0 if that is known only once a tokenizer is made."""

    @property
    def kinds(self) -> int:
        """How many different tokens, or about how many."""
        return self.vocabulary or expected_vocabulary(OWN_TEXT, self.tokenizer)


UNKNOWN = Own()
"""A text about which nothing is known."""


def pieces_of(values: Mapping[str, Any]) -> str:
    """The kind of tokens in which a form's text is read: the `parent`'s if a model is trained further."""
    parent = values.get("parent")
    return parent.tokenizer.kind if parent else values["tokenizer"]


def own_of(text: str, tokenizer: str) -> Own:
    """The facts about a text, read in these tokens."""
    text = text.replace("\r\n", "\n")
    if tokenizer in COUNTED:
        pieces = text if tokenizer == "char" else re.findall(WORD_PATTERN, text)
        learned = pieces[: parted(len(pieces))] if tokenizer == "word" and len(pieces) >= MIN_TOKENS else pieces
        different = len(set(learned) - {UNKNOWN_CHARACTER}) + 1  # and the token for all others
        return Own(len(pieces), tokenizer, different if tokenizer == "char" else min(different, MAX_WORDS))
    size = len(text.encode("utf-8", errors="surrogatepass"))
    if tokenizer == "bpe":  # the shorter a text, the longer its learned tokens
        return Own(round(size / (2 + 1800 / max(size, 1))), tokenizer)
    return Own(round(size / 3.5), tokenizer)


def check_tokenizer(source: Source, tokenizer: str) -> None:
    """Raise ValueError unless this tokenizer can split this text."""
    allowed = TOKENIZERS_OF.get(source.kind, TOKENIZERS_OF[OWN_TEXT])
    if tokenizer not in allowed:
        titles = " or ".join(title for title, name in TOKENIZERS if name in allowed)
        raise ValueError(f"{source.title} can only be read in {titles}: choose that under “Pieces of text”")


def source_of(values: Mapping[str, Any], limits: Limits) -> Source:
    """The source that the form describes; an uploaded file is read here. Raises ValueError."""
    kind, how = values["source"], values.get("own_kind") or "paste"
    if kind not in SOURCES:
        raise TextError("choose an example or your own text to learn from")
    if kind != OWN_TEXT:
        return Source(kind)
    if how == "hub":
        repo, filename = str(values["hub_repo"] or "").strip(), str(values["hub_file"] or "").strip()
        if not repo or not filename:
            raise TextError("name a repository of the Hub as user/name, and a text file in it")
        return Source(HUB_FILE, repo=repo, filename=filename, repo_type=values["hub_type"])
    if how == "upload":
        if not values["upload"]:
            raise TextError("choose a file to upload first, or paste your text")
        path = Path(values["upload"])
        try:
            limits.check_size(path.stat().st_size)
            data = path.read_bytes()
        except OSError as problem:
            raise TextError(f"the file {path.name} is not here any more: upload it again") from problem
        text = decode_upload(data, name=path.name, max_bytes=limits.text_bytes)
        return Source(OWN_TEXT, text=text, name=path.name[:60])
    text = str(values["text"] or "")
    limits.check_text(text)
    if not text.strip():
        raise TextError("there is no text yet: paste a page or more, or choose an example")
    return Source(OWN_TEXT, text=text, name=beginning_of(text).rstrip(END_MARKS))


def values_of(source: Source) -> dict[str, Any]:
    """The form's values for this text, by name, without a text that is too long for a page."""
    hub = source.kind == HUB_FILE
    return {
        "source": OWN_TEXT if hub else source.kind,
        "own_kind": "hub" if hub else "paste",
        "text": source.pasted,
        "hub_repo": source.repo,
        "hub_file": source.filename if hub else "",
        "hub_type": source.repo_type,
    }


# ---- its components --------------------------------------------------------------------------------------------------


def note_html(source: str) -> str:
    """The note on an example: why to choose it, and what it looks like; empty for the visitor's own text."""
    return note_of(source, NOTES[source]) if source in NOTES else ""


def contents_html(values: Mapping[str, Any], limits: Limits) -> str:
    """What the visitor's own text holds, or why it cannot be read; how much is enough if there is none yet."""
    given = values["upload"] if values["own_kind"] == "upload" else values["text"]
    if values["own_kind"] == "hub" or not given or not str(given).strip():
        return "" if values.get("parent") else quiet(ENOUGH)  # that model says how much it needs
    try:
        text = source_of(values, limits).text
        own = own_of(text, values["tokenizer"])
        return contents_of(text, by_heart=not values.get("parent") and learns_by_heart(own.tokens, own.kinds))
    except ValueError as problem:
        return notice(sentence(str(problem)), "error")


def own_in(values: Mapping[str, Any], limits: Limits) -> Own:
    """The visitor's own text in the form; without a length if there is none yet, or none that can be read here."""
    pieces, parent = pieces_of(values), values.get("parent")
    if values["source"] != OWN_TEXT or values["own_kind"] == "hub":
        return Own(tokenizer=pieces)
    try:
        text = source_of(values, limits).text
    except ValueError:
        return Own(tokenizer=pieces)
    if parent:
        return Own(len(parent.tokenizer.encode(text)), pieces, parent.config.vocab_size)
    return own_of(text, pieces)


def draw(limits: Limits, label: str, first: str, prefix: str = "") -> dict[str, Any]:
    """The choice of text and the fields for a pasted one, by name; `prefix` tells the ids of a second choice apart."""
    c: dict[str, Any] = {}
    with gr.Column(elem_id=f"{prefix}source", elem_classes="text-choice"):
        c["learn"] = gr.Radio(
            [("Example", EXAMPLE), (SOURCES[OWN_TEXT], OWN_TEXT)],
            value=EXAMPLE,
            label=label,
            elem_classes="seg-radio",
            elem_id=f"{prefix}learn",
        )
        c["source"] = gr.Dropdown(
            [(title, name) for name, title in EXAMPLES.items()],
            value=first,
            label="Example",
            container=False,
            filterable=False,
            elem_id=f"{prefix}example",
        )
        c["source_note"] = gr.HTML(note_html(first), padding=False, elem_id=f"{prefix}source-note")
    with gr.Column(visible=False, elem_id=f"{prefix}own-text", elem_classes="text-own") as c["own"]:
        c["text"] = gr.Textbox(
            label="Your text",
            show_label=False,
            container=False,
            lines=4,
            max_lines=4,
            placeholder="Paste a page or more, or drop a text file here.",
            elem_id=f"{prefix}text",
        )
        c["upload"] = gr.File(
            label=f"A text file, at most {limits.text_bytes / 1e6:.0f} MB",
            visible=False,
            height=100,
            elem_id=f"{prefix}upload",
        )
        with gr.Column(visible=False) as c["hub"]:
            c["hub_repo"] = gr.Textbox(label="Repository", placeholder="user/name")
            c["hub_file"] = gr.Textbox(label="Text file in it", placeholder="train.txt")
            c["hub_type"] = gr.Radio(["dataset", "model", "space"], value="dataset", label="Kind of repository")
        c["own_kind"] = gr.Radio(
            [(title, name) for name, title in OWN_KINDS.items()],
            value="paste",
            show_label=False,
            container=False,
            elem_classes="seg-radio small",
            elem_id=f"{prefix}own-kind",
        )
        c["contents"] = gr.HTML(padding=False, elem_id=f"{prefix}contents")
    return c


_KINDS = ("text", "upload", "hub")


def follow_text(form: Followed, c: Mapping[str, Any]) -> None:
    """Update a form when the visitor chooses another text (cause "source") or changes their own (cause "text")."""
    form.on("source", c["source"].input, c["learn"].input, whole_texts=True)
    # `input` does not fire for a pasted text
    own = (c["text"].change, c["upload"].upload, c["upload"].clear, c["own_kind"].input)
    form.on("text", *own, whole_texts=True)


def with_source(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a page's form. The source is OWN_TEXT if the model learns from a visitor's own text."""
    return {**values, "source": OWN_TEXT} if values["learn"] == OWN_TEXT else dict(values)


def shown_own(kind: Any) -> dict[str, Any]:
    """Updates that show the fields for pasting, uploading or the Hub."""
    shown = {"text": "paste", "upload": "upload", "hub": "hub"}
    return {name: gr.update(visible=kind == its) for name, its in shown.items()}


def chosen(source: str, tokenizer: str | None = None) -> dict[str, Any]:
    """Updates that follow from another text: SET_BY_SOURCE. Without a tokenizer, the chosen one stays."""
    allowed = TOKENIZERS_OF[source]
    own = source == OWN_TEXT
    value = {} if tokenizer is None else {"value": tokenizer}
    return {
        "source": gr.update(visible=not own),
        "own": gr.update(visible=own),
        "source_note": note_html(source),
        "tokenizer": gr.update(choices=[(title, name) for title, name in TOKENIZERS if name in allowed], **value),
    }


def put_back(values: Mapping[str, Any]) -> dict[str, Any]:
    """Updates that make the choice hold these values (of `values_of`), `tokenizer` among them: PUT_BACK."""
    out = chosen(values["source"], values["tokenizer"])
    if values["source"] != OWN_TEXT:
        return out | {"learn": EXAMPLE, "source": gr.update(value=values["source"], visible=True)}
    out |= {"learn": OWN_TEXT} | shown_own(values["own_kind"])
    out |= {name: values[name] for name in ("own_kind", "hub_repo", "hub_file", "hub_type")}
    return out | {"text": gr.update(value=values["text"], visible=values["own_kind"] == "paste")}


PUT_BACK = (*SET_BY_SOURCE, "learn", "own_kind", *_KINDS, "hub_repo", "hub_file", "hub_type")
"""The components that `put_back` changes."""
FOLLOWS_TEXT = (*SET_BY_SOURCE, *_KINDS, "contents")
"""The components that a form following the choice sets besides its fields."""
