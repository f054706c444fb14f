"""Streaming: a model's continuation as tokens with their texts, from one iterator for page, endpoints and shell."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ..data.tokenizers import ByteTokenizer, Tokenizer
from ..model import Transformer
from .continuation import DecodeStep
from .decoder import generate
from .sampling import SamplingConfig
from .together import passes_of


class NewToken(NamedTuple):
    """One token of one sample."""

    id: int
    text: str
    """What it adds to the text; empty for bytes whose character is still to be completed."""
    probability: float
    """The model's own, before any sampling rule."""


class Streamed(NamedTuple):
    """A step of the decoder, and what it adds to each sample's text."""

    step: DecodeStep
    new: tuple[NewToken | None, ...]
    """A token per sample; None for one that met a stop text before."""


def stream(
    model: Transformer,
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    max_new_tokens: int,
    sampling: SamplingConfig | None = None,
    *,
    n_samples: int = 1,
    stop: Sequence[str] = (),
    use_cache: bool = True,
    shared: bool = False,
    precision: str = "fp32",
) -> Iterator[Streamed]:
    """Continue `prompt` as `generate` does, each token with its text, in time linear in the text's length.

    With `shared`, by the passes that all share who write with this model at the moment (see `Together`).

    The texts of a sample's tokens make up what the tokenizer decodes from all of them after the prompt. Whoever has
    read enough stops asking. Raises ValueError, before the first step, where prompt or numbers make no sense.
    """
    write = passes_of(model, precision).generate if shared else partial(generate, model, precision=precision)
    steps = write(
        prompt, max_new_tokens, sampling, n_samples=n_samples, tokenizer=tokenizer, stop=stop, use_cache=use_cache
    )
    return _streamed(steps, [Spelling(tokenizer, prompt) for _ in range(n_samples)], max_new_tokens)


def _streamed(steps: Iterator[DecodeStep], spellings: list[Spelling], max_new_tokens: int) -> Iterator[Streamed]:
    over: Sequence[bool] = [False] * len(spellings)
    for step in steps:
        chances, new = step.model_probability, []
        for i, (spelling, token) in enumerate(zip(spellings, step.tokens)):
            last = step.stopped[i] or step.index == max_new_tokens - 1
            new.append(None if over[i] else NewToken(token, spelling.add(token, last=last), chances[i]))
        over = step.stopped
        yield Streamed(step, tuple(new))


class Spelling:
    """Spells a sequence of tokens one by one: what each adds to the text decoded so far.

    >>> from playground.data.tokenizers import WordTokenizer
    >>> words = WordTokenizer.from_text("the cat sat.")
    >>> spelling = Spelling(words, words.encode("the"))
    >>> [spelling.add(token) for token in words.encode("cat sat.")]
    [' cat', ' sat', '.']
    """

    def __init__(self, tokenizer: Tokenizer, before: Iterable[int] = ()):
        self._tokenizer = tokenizer
        # all bytes before count: the last character may be half there
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace") if isinstance(tokenizer, ByteTokenizer) else None
        self._last: list[int] = []
        for token in before:
            self.add(token)

    def add(self, token: int, *, last: bool = False) -> str:
        """What this token adds; with `last`, bytes that no other will complete show as �."""
        if self._bytes is not None:
            return self._bytes.decode(self._tokenizer.token_bytes(token), final=last)
        # the space before a word depends on the token before it, and on nothing else
        known, self._last = self._last, [token]
        return self._tokenizer.decode([*known, token])[len(self._tokenizer.decode(known)) :]
