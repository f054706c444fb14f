"""Prompt pairs: two prompts that differ in one word and between them change what the model says next.

Those of shipped models are written down, those of other models are found in their text.

N = windows, T = tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from ..data.tokenizers import Tokenizer
from ..engine import SamplingConfig, generate
from ..model import Transformer
from .patching import Pair

_DIALECTS = (
    ("the pot rises in the", "the ship rises in the", "oven", "harbor"),
    ("the field falls for", "the voice falls for", "days", "hours"),
    ("the crowd sings in the", "the crew sings in the", "dark", "harbor"),
)
WRITTEN = {
    "stories": (
        ("Mia had a red kite. Then Tom has the ", "Mia had a red boat. Then Tom has the ", "k", "b"),
        ("In the morning Ana came to the sea. ", "In the morning Ben came to the sea. ", "S", "H"),
        ("Ana lived in a small town. One day ", "Max lived in a small town. One day ", "s", "h"),
    ),
    "induction": (
        ("cage ca", "faeb ca", "g", "e"),
        ("bdfh bd", "bdch bd", "f", "c"),
        ("edgh ed", "edah ed", "g", "a"),
    ),
    "dialects-dense": _DIALECTS,
    "dialects-moe": _DIALECTS,
    "prose": (
        ("they got t", "they saw t", "o", "h"),
        ("He looked ", "He opened ", "a", "t"),
        ("his best w", "his head w", "i", "h"),
    ),
    "sentences": (
        ("the cat drinks the", "the cat sees the", "milk", "dog"),
        ("the boy drinks the", "the boy sees the", "milk", "bird"),
        ("the dog sleeps in the", "the bird sleeps in the", "rug", "tree"),
    ),
}
"""Shipped model → two prompts and the answer to each."""
SURE = 0.4
"""Probability that a model gives each answer, at least."""
LONGEST = 24
"""Tokens of a word at most."""
LENGTHS, AT_MOST = (24, 16, 12, 8, 6, 4), 256
"""Tokens of prompts that are found in a text, and how many pairs of each length are read."""
SEARCHED = 2 * AT_MOST * sum(LENGTHS)
"""Tokens that a search reads at most."""
AT_ONCE = 256
"""Prompts of one forward pass."""
VARIATIONS, UNLIKELY, FEWEST = 256, 5.0, 4
"""Words that are tried in a pair's place; nats by which one may make the prompt less probable; and the likeliest words,
which may even if it is more."""

Span = tuple[int, int]


def written_pairs(model: Transformer, tokenizer: Tokenizer) -> list[Pair]:
    """The pairs written down for shipped models of which this model gives both answers, at least SURE."""
    found = []
    for *prompts, answer, foil in dict.fromkeys(pair for pairs in WRITTEN.values() for pair in pairs):
        if any(map(tokenizer.unknown_parts, prompts)):
            continue
        ids, other = (tuple(tokenizer.encode(prompt)) for prompt in prompts)
        if len(ids) != len(other) or len(ids) > model.config.context_length:
            continue
        here, there = _said(model, [ids, other])
        said = [tokenizer.token_text(each.answer) for each in (here, there)]
        if said == [answer, foil] and min(here.sure, there.sure) >= SURE:
            found.append(Pair(ids, other, here.answer, there.answer))
    return found


@torch.inference_mode()
def found_pairs(model: Transformer, tokenizer: Tokenizer, windows: torch.Tensor, *, n: int = 4) -> list[Pair]:
    """Up to n pairs of prompts that occur in windows (N, T) of text and differ in one whole word, the surest first.

    In each prompt the model gives its answer at least SURE. None where the text holds no such prompts.
    """
    texts, found = windows.tolist(), []
    for length in LENGTHS:
        prompts = {
            tuple(ids[start : start + length])
            for ids in texts
            for start, _ in words_of(tokenizer, ids)
            if start + length <= len(ids) and (start or tokenizer.kind == "word")  # the first word may be cut off
        }
        alike: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for ids in sorted(prompts):
            for start, stop in words_of(tokenizer, ids):
                if stop < length:
                    alike.setdefault((start, *ids[:start], *ids[stop:]), []).append(ids)
        pairs = [tuple(each[:2]) for each in alike.values() if len(each) > 1][:AT_MOST]
        if not pairs:
            continue
        said = _said(model, [ids for both in pairs for ids in both])
        for both, here, there in zip(pairs, said[::2], said[1::2]):
            sure = min(here.sure, there.sure)
            if here.answer != there.answer and sure >= SURE and all(_typed(tokenizer, ids) for ids in both):
                found.append((sure, Pair(*both, here.answer, there.answer)))
        if found:
            break
    return [pair for _, pair in sorted(found, key=lambda each: -each[0])[:n]]


@torch.inference_mode()
def fresh_pairs(
    model: Transformer, tokenizer: Tokenizer, pair: Pair, windows: torch.Tensor, *, n: int = 16, seed: int = 0
) -> list[Pair]:
    """Up to n further pairs like this one: other words of windows (N, T) in its changed place.

    The model is SURE of both answers, and finds the words about as likely there as the pair's own.
    """
    rng, (start, stop) = np.random.default_rng(seed), _changed_word(tokenizer, pair)
    spans = [
        (ids, span) for ids in windows.tolist() for span in words_of(tokenizer, ids)[1:-1]
    ]  # others may be cut off
    words = {tuple(ids[a:b]) for ids, (a, b) in spans if b - a == stop - start}
    words = sorted(words - {pair.ids[start:stop], pair.other[start:stop]})
    chosen = [words[i] for i in rng.permutation(len(words))[:VARIATIONS]]
    prompts = [pair.ids, pair.other, *((*pair.ids[:start], *word, *pair.ids[stop:]) for word in chosen)]
    own, other, *said = _said(model, prompts)
    least = min(own.likely, other.likely) - UNLIKELY
    sure = [(ids, each) for ids, each in zip(prompts[2:], said) if each.sure >= SURE]
    least = min([least, *sorted((each.likely for _, each in sure), reverse=True)[:FEWEST]])
    clear = [(ids, each.answer) for ids, each in sure if each.likely >= least]
    found = []
    for ids, answer in clear:
        others = [each for each in clear if each[1] != answer]
        if others and len(found) < n:
            other, foil = others[rng.integers(len(others))]
            found.append(Pair(ids, other, answer, foil))
    return found


def _typed(tokenizer: Tokenizer, ids: Sequence[int]) -> bool:
    """Whether a prompt can be typed: its text gives the same tokens."""
    return tokenizer.encode(tokenizer.decode(ids)) == list(ids)


def word_with(model: Transformer, tokenizer: Tokenizer, ids: Sequence[int], token: int) -> str:
    """The word that a token after these ids begins or continues, as the model goes on; empty where it is in no word."""
    text, place = [*ids, token], len(ids)
    for step in generate(model, text, LONGEST, SamplingConfig(greedy=True)):
        text += step.tokens
        word = next((span for span in words_of(tokenizer, text) if span[0] <= place < span[1]), None)
        if word is None or word[1] < len(text):
            break
    return tokenizer.decode(text[slice(*word)]).strip() if word else ""


def words_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[Span]:
    """Where the words of a text begin and end, in tokens."""
    spans: list[Span] = []
    for place, token in enumerate(ids):
        text = tokenizer.token_text(int(token))
        if not re.search(r"[^\W_]", text):
            continue
        joined = tokenizer.kind != "word" and spans and spans[-1][1] == place and text[:1].isalnum()
        spans[-1:] = [(spans[-1][0], place + 1)] if joined else [*spans[-1:], (place, place + 1)]
    return spans


def ends_a_word(tokenizer: Tokenizer, pair: Pair) -> bool:
    """Whether both prompts end with a whole word: neither answer continues it."""
    n, both = len(pair.ids), ((*pair.ids, pair.answer), (*pair.other, pair.foil))
    return all(stop <= n for ids in both for start, stop in words_of(tokenizer, ids) if start < n)


def _changed_word(tokenizer: Tokenizer, pair: Pair) -> Span:
    """The words that hold all changes."""
    first, last = pair.changed[0], pair.changed[-1]
    spans = words_of(tokenizer, pair.ids)
    start = max((a for a, b in spans if a <= first < b), default=first)
    return start, min((b for a, b in spans if a <= last < b), default=last + 1)


class _Said(NamedTuple):
    """What a model says after a prompt."""

    answer: int
    """The likeliest token."""
    sure: float
    """Its probability."""
    likely: float
    """log p of the prompt's tokens after the first, in nats."""


@torch.inference_mode()
def _said(model: Transformer, prompts: Sequence[Sequence[int]]) -> list[_Said]:
    """What a model says after each of these prompts of equal length."""
    found = []
    for ids in torch.tensor(prompts).split(AT_ONCE):
        log_p = model(ids).logits.float().log_softmax(-1).cpu()  # (B, T, V)
        sure, answer = log_p[:, -1].exp().max(-1)
        likely = log_p[:, :-1].gather(-1, ids[:, 1:, None]).sum(dim=(1, 2))
        found += map(_Said, answer.tolist(), sure.tolist(), likely.tolist())
    return found
