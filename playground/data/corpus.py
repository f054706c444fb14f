"""Corpus: a text as tokens, split into training and validation, with its batches, its windows and its baselines.

B = batch, T = context length. There are two kinds: a stream (one long text, windows cut anywhere) and documents (each
on its own, padded, the padding never counted).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import torch
from torch.nn.functional import pad

from ..kept import Kept
from .baselines import IGNORE, WRITTEN, Baselines, measure
from .errors import TextError
from .judging import LearnedText
from .languages import LANGUAGES, ExactModel, Language
from .languages.grammar import grammar_of
from .ngrams import NGram, count_ngrams, tune_strengths
from .overlap import SNIPPET, overlap
from .partition import Partition
from .sentences import HELD_OUT, NAME, SENTENCES
from .tokenizers import WORD_PATTERN, CharTokenizer, Tokenizer, WordTokenizer, build_tokenizer

MIN_TOKENS = 64
VALIDATION_SHARE = 0.1
WRITING_SEED = 7
"""The seed for the texts that the guessers write."""
WORKED_OUT = 64
"""Most values that a corpus keeps: some for each context length and number of windows that was asked for."""


@dataclass(frozen=True)
class Corpus:
    """The text on which a model is trained and validated. Make one with the `corpus_from_…` functions."""

    name: str
    """What it is called in charts and cards."""
    tokenizer: Tokenizer
    train: torch.Tensor
    """(tokens,) int64; documents are separated by −1."""
    val: torch.Tensor
    """(tokens,) int64, likewise."""
    sha256: str
    """The text's SHA-256, for run cards."""
    language: Language | None = None
    """The language that generated the text, if any."""
    documents: bool = False
    """Whether each document is separate."""
    n_characters: int = 0
    """Length of the text in characters."""
    held_out: str | None = None
    """The text of `val` as it was written; None if decoding `val` gives it back."""
    further: bool = False
    """Whether its model has learned another text before."""
    _once: Kept = field(default_factory=lambda: Kept(entries=WORKED_OUT), init=False, repr=False, compare=False)

    @property
    def vocab_size(self) -> int:
        """How many different tokens a model of this corpus needs."""
        return self.tokenizer.vocab_size

    def check_context(self, context_length: int) -> None:
        """Raise TextError unless both splits hold at least one whole window of this length."""
        if self.documents:
            return
        check_parts(len(self.train), len(self.val), context_length)

    def batch(
        self, split: str, batch_size: int, context_length: int, rng: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Random inputs (B, T) and the tokens that follow them (B, T), chosen with `rng`."""
        if self.documents:
            padded = self._padded(split, context_length)
            chunk = padded[torch.randint(len(padded), (batch_size,), generator=rng)]
            return _shifted(chunk)
        tokens = getattr(self, split)
        starts = torch.randint(len(tokens) - context_length, (batch_size, 1), generator=rng)
        chunk = tokens[starts + torch.arange(context_length + 1)]  # one gather for the whole batch
        return chunk[:, :-1], chunk[:, 1:]

    def windows(
        self, split: str, context_length: int, max_windows: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Fixed inputs and targets (N, T) that cover the split once, or `max_windows` of them, evenly spread.

        The last window of a stream is padded; padded targets are IGNORE.
        """
        if self.documents:
            chunks = self._padded(split, context_length)
        else:
            tokens = getattr(self, split)
            n = -(-(len(tokens) - 1) // context_length)
            padded = pad(tokens, (0, n * context_length + 1 - len(tokens)), value=-1)
            chunks = padded.unfold(0, context_length + 1, context_length)
        if max_windows is not None and len(chunks) > max_windows:
            chunks = chunks[torch.linspace(0, len(chunks) - 1, max_windows).long()]
        return _shifted(chunks)

    def baselines(self, context_length: int, max_windows: int | None = None) -> Baselines:
        """Reference losses on the same validation windows that a model is scored on. Computed once, then kept."""

        def compute() -> Baselines:
            inputs, targets = self.windows("val", context_length, max_windows)
            kinds = self.kinds(inputs, targets)
            floor = None if kinds is None else float(kinds.unavoidable[kinds.part >= 0].mean())
            return measure(
                self._guesser(),
                inputs,
                targets,
                floor,
                unit=self.unit,
                characters_per_token=self._characters_per_token(),
                occur=len({*self.train.unique().tolist(), *self.val.unique().tolist()} - {-1}),
                overlap=self.overlap(),
                write=self._written,
            )

        return self._once.get(("ladder", context_length, max_windows), compute)

    @property
    def unit(self) -> str:
        """What a token is called: character, word, or token."""
        return {"char": "character", "word": "word"}.get(self.tokenizer.kind, "token")

    @property
    def is_own_text(self) -> bool:
        """Whether a visitor brought the text: it is then a stream, and of no language of ours."""
        return not self.documents and self.language is None

    def overlap(self) -> float:
        """Share of the validation text that occurs word for word in the training text; 0 for texts that ship here."""
        if not self.is_own_text:
            return 0.0
        per_token = max(self.n_characters, 1) / (len(self.train) + len(self.val))
        tokens = max(round(SNIPPET / per_token), 4)
        return self._once.get("overlap", lambda: overlap(self.train, self.val, tokens))

    @property
    def ends(self) -> frozenset[int]:
        """Tokens that occur only at the end of documents, with nothing after them. Empty for a stream."""
        if not self.documents:
            return frozenset()
        tokens, after = self.train[:-1], self.train[1:]
        return frozenset(tokens[after < 0].tolist()) - frozenset(tokens[(tokens >= 0) & (after >= 0)].tolist())

    def exact_model(self) -> ExactModel | None:
        """The language's true next-token distribution, by token ids; None without a language, or for byte pairs."""
        if self.language is None or not isinstance(self.tokenizer, (CharTokenizer, WordTokenizer)):
            return None
        return self._once.get("exact", lambda: ExactModel(self.language.graph, self.tokenizer.encode, self.vocab_size))

    def kinds(self, inputs: torch.Tensor, targets: torch.Tensor) -> Partition | None:
        """The grammar rule behind each target of these windows (N, T); None if the rules are unknown."""
        exact = self.exact_model()
        return None if exact is None else self._by_kind(exact, inputs.numpy(), targets.numpy())

    def learned(self) -> LearnedText:
        """The training text, ready to be compared with other texts."""

        def compute() -> LearnedText:
            train = self._text(self.train)
            apart = self.documents or self.language is not None or self.tokenizer.kind == "word"
            sentences, ends = [], ""
            if len(self.ends) == 1:
                ends = self.tokenizer.token_text(*self.ends)
                sentences = train.split(ends)[:-1]
            return LearnedText(
                train, self.judging_text(), divided=not apart, sentences=sentences, ends=ends, further=self.further
            )

        return self._once.get("learned", compute)

    def _text(self, tokens: torch.Tensor) -> str:
        return self.tokenizer.decode(tokens[tokens >= 0].tolist())

    def judging_text(self) -> str:
        """The validation text before tokenising."""
        return self._text(self.val) if self.held_out is None else self.held_out

    def _by_kind(self, exact: ExactModel, inputs: np.ndarray, targets: np.ndarray) -> Partition:
        """The rule that decides each target, and how surprising it is to the language's own generator."""
        names, kinds = self._once.get(
            "kinds", lambda: grammar_of(self.language).kinds_of_places(exact, self.tokenizer.kind == "word")
        )
        losses, found = np.zeros(targets.shape), np.full(targets.shape, -1)
        for rows, length in _equally_long(targets):
            windows = np.concatenate((inputs[rows, :length], targets[rows, length - 1 : length]), axis=1)
            losses[rows, :length], found[rows, :length] = exact.losses_and_kinds(windows, kinds)
        return Partition(names, found, losses)

    def _guesser(self) -> NGram:
        """The n-gram that the training text supports. Its n and m are kept; the counts, which are many, are not."""
        train = self.train.numpy()
        return count_ngrams(
            train, self.vocab_size, self._once.get("strengths", lambda: tune_strengths(train, self.vocab_size))
        )

    def _characters_per_token(self) -> float:
        shown = self.val[self.val >= 0][:20_000].tolist()
        return max(len(self.tokenizer.decode(shown)), 1) / len(shown)

    def _written(self, guesser: NGram | None) -> str:
        """A text by one of the baselines' guessers, or (None) by the language itself. Unknown tokens are left out."""
        n_tokens = WRITTEN[self.unit]
        if guesser is None:
            text = self.language.sample(round(n_tokens * self._characters_per_token()), seed=WRITING_SEED)
            return self.tokenizer.decode(self.tokenizer.encode(text)[:n_tokens])
        unknown = (self.tokenizer.unknown,) if isinstance(self.tokenizer, (CharTokenizer, WordTokenizer)) else ()
        line_break = [] if self.documents else self.tokenizer.encode("\n")
        after = line_break[0] if len(line_break) == 1 and line_break[0] not in unknown else None
        return self.tokenizer.decode(guesser.write(n_tokens, WRITING_SEED, after, unknown))

    def _padded(self, split: str, context_length: int) -> torch.Tensor:
        """Documents (N, T + 1) with −1 after their end."""

        def compute() -> torch.Tensor:
            ends = (getattr(self, split) < 0).nonzero().flatten()
            documents = getattr(self, split).tensor_split(ends + 1)[:-1]  # each with the −1 at its end
            rows = [pad(d, (0, context_length + 1 - len(d)), value=-1) for d in documents]  # cuts what is too long
            return torch.stack(rows)

        return self._once.get(("padded", split, context_length), compute)


def corpus_from_text(
    text: str, tokenizer: str | Tokenizer = "char", *, name: str = "your text", vocab_size: int | None = None
) -> Corpus:
    """A stream corpus made from a text: the first 90 % for training, the last 10 % for validation.

    `tokenizer` is a kind to build, or a ready one. Words and byte pairs are learned from the training part alone:
    words that occur only in the validation part are unknown. Characters come from the whole text: the list of them does
    not say how they follow each other, and a visitor who types one should not see �.
    Raises TextError if the text is too short.
    """
    text = text.replace("\r\n", "\n")
    if not text.strip():
        raise TextError("there is no text: paste a page or more, or choose a language")
    kind = tokenizer if isinstance(tokenizer, str) else tokenizer.kind
    cut = _where_parted(text, kind)
    learned, held_out = text[:cut], text[cut:]
    made = tokenizer
    if isinstance(tokenizer, str):
        made = build_tokenizer(tokenizer, text if kind == "char" else learned, vocab_size=vocab_size)
    train, val = (torch.tensor(made.encode(part), dtype=torch.long) for part in (learned, held_out))
    parted(len(train) + len(val))
    return Corpus(name, made, train, val, text_sha256(text), n_characters=len(text), held_out=held_out)


def parted(n_tokens: int) -> int:
    """How many of a text's tokens are for training; the rest are for validation. Raises TextError if too few."""
    if n_tokens < MIN_TOKENS:
        few = f"{n_tokens} token{'s' * (n_tokens != 1)}"
        raise TextError(f"the text has only {few}: a model needs at least {MIN_TOKENS}, preferably 5,000")
    return n_tokens - max(int(n_tokens * VALIDATION_SHARE), 2)


def _where_parted(text: str, kind: str) -> int:
    """Where the validation text begins: after nine tenths of the words, or of the characters."""
    if kind != "word":
        return len(text) - max(int(len(text) * VALIDATION_SHARE), 2)
    n_words = sum(1 for _ in re.finditer(WORD_PATTERN, text))
    return next(islice(re.finditer(WORD_PATTERN, text), parted(n_words), None)).start()


def check_parts(n_training: int, n_validation: int, context_length: int) -> None:
    """Raise TextError if the training or the validation part is too short for one window."""
    for what, tokens in (("training", n_training), ("validation", n_validation)):
        if tokens < context_length + 1:
            raise TextError(
                f"the {what} part has {tokens:,} token{'s' * (tokens != 1)}, too few for a context of "
                f"{context_length}: use a longer text or a context of at most {max(tokens - 1, 1)}"
            )


def corpus_from_language(
    name: str,
    *,
    seed: int = 0,
    n_characters: int = 1_000_000,
    n_validation: int = 60_000,
    unit: str = "char",
) -> Corpus:
    """A synthetic language's text, per character or per word; training and validation texts are sampled separately."""
    if name not in LANGUAGES:
        raise TextError(f"there is no language called {name!r}; choose one of {', '.join(LANGUAGES)}")
    if unit not in ("char", "word"):
        raise TextError(f"a synthetic language needs tokens that are char or word, not {unit!r}")
    language, tokenizer = LANGUAGES[name], language_tokenizer(name, unit)
    text = language.sample(n_characters, seed=2 * seed)
    held_out = language.sample(n_validation, seed=2 * seed + 1)
    train, val = (torch.tensor(tokenizer.encode(t), dtype=torch.long) for t in (text, held_out))
    return Corpus(language.title, tokenizer, train, val, text_sha256(text + held_out), language, n_characters=len(text))


def language_tokenizer(name: str, unit: str) -> Tokenizer:
    """A synthetic language's tokenizer; made from all its words, so that it always has the same tokens in order."""
    return build_tokenizer(unit, "".join(dict.fromkeys(LANGUAGES[name].graph.texts)))


def corpus_from_sentences(
    sentences: Sequence[str] = SENTENCES, held_out: Sequence[str] = HELD_OUT, *, name: str = NAME
) -> Corpus:
    """Each sentence is its own document, in words; the `held_out` ones are for validation, the others for training.

    If none is held out, all sentences serve both purposes, and the two losses are the same.
    """
    text = "\n".join(sentences)
    tokenizer = WordTokenizer.from_text(text.replace("\n", " "))
    judging = [sentence for sentence in sentences if sentence in held_out]
    learned = [sentence for sentence in sentences if sentence not in held_out]
    train, val = (
        torch.tensor([t for sentence in part for t in (*tokenizer.encode(sentence), -1)], dtype=torch.long)
        for part in (learned, judging or learned)
    )
    known_by = text_sha256("\n".join((text, "", *judging)))  # how they are divided matters as well
    return Corpus(name, tokenizer, train, val, known_by, documents=True, n_characters=len(text))


def _equally_long(targets: np.ndarray) -> list[tuple[np.ndarray, int]]:
    """(number of windows, counted targets in each): all windows are whole but the last, which may be cut short."""
    lengths = (targets >= 0).sum(axis=1)
    return [(np.flatnonzero(lengths == length), int(length)) for length in np.unique(lengths) if length]


def real_tokens(targets: torch.Tensor) -> torch.Tensor | None:
    """For the targets (N, T) of a batch or of windows: which inputs (N, T) are tokens of a text (True) and which are
    padding (False); None if there is no padding. Padding follows a text's last token, which itself has no target.

    >>> real_tokens(torch.tensor([[4, 2, IGNORE, IGNORE]]))  # inputs: three tokens and one of padding
    tensor([[ True,  True,  True, False]])
    """
    real = torch.ones_like(targets, dtype=torch.bool)
    real[:, 1:] = targets[:, :-1] != IGNORE
    return None if real.all() else real


def _shifted(chunks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets (N, T) from chunks (N, T + 1), where −1 is padding: fed as id 0, never counted."""
    inputs, targets = chunks[:, :-1], chunks[:, 1:]
    return inputs.clamp(min=0), targets.masked_fill(targets < 0, IGNORE)


def text_sha256(text: str) -> str:
    """The SHA-256 that identifies a text."""
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()
