"""Prompt pairs: two prompts that differ in one word and between them change what the model says next.

Nothing is written down for a model: words of a text like that which it learned are exchanged for others of the same
number of tokens, and the pairs are those in which both predictions are clear and differ, later in the text.

N = windows, T = tokens, V = vocabulary.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..data.tokenizers import Tokenizer
from ..model import Transformer
from .patching import Pair

WINDOWS, LONGEST = 20, 32
"""Windows that are searched, and their tokens."""
EXCHANGED, OTHERS = 5, 6
"""Words of a window that are exchanged, and by how many others each."""
SEARCHED = WINDOWS * EXCHANGED * OTHERS * LONGEST
"""Tokens that a search reads, about."""
CLEAR, CLEAREST = 1.0, 8.0
"""Nats by which each answer has to lead the other in its own prompt, and beyond which more makes no better pair."""
PER_TOKEN, PER_WORD, FAR = 0.1, 2.0, 4
"""Nats that a token costs, and that each word between change and answer is worth, up to so many words."""
UNLIKELY = 5.0
"""Nats by which an exchanged word and the beginning of the next one may be less probable than the text's own."""
ROWS_AT_ONCE = 16384
FOUND_LENGTHS, FOUND_AT_MOST, SURE = (24, 16, 12, 8, 6, 4), 256, 0.4
"""Tokens of prompts that are found in a text; how many of them are read; and the probability of each answer."""
VARIATIONS = 256
"""Words that are tried in a pair's place."""

Span = tuple[int, int]


@dataclass(frozen=True)
class _Exchange:
    window: int
    span: Span
    words: tuple[int, ...]


def suggested_pairs(
    model: Transformer, tokenizer: Tokenizer, windows: torch.Tensor, *, n: int = 4, seed: int = 0
) -> list[Pair]:
    """Up to n pairs from windows (N, T) of text, the clearest first; fewer, or none, where the model is not clear.

    The first prompt of each is the text's own, and its answer what the text says next.
    """
    rng = np.random.default_rng(seed)
    texts = _begun(tokenizer, windows)
    if len(texts) > WINDOWS:
        texts = [texts[i] for i in rng.choice(len(texts), WINDOWS, replace=False)]
    spans = [words_of(tokenizer, ids) for ids in texts]
    known = _known(texts, spans)
    exchanges = []
    for window, ids in enumerate(texts):
        for at in rng.permutation(len(spans[window]))[:EXCHANGED]:
            start, stop = spans[window][at]
            others = [each for each in known.get((stop - start, not start), ()) if each != tuple(ids[start:stop])]
            chosen = rng.permutation(len(others))[:OTHERS]
            exchanges += [_Exchange(window, (start, stop), others[i]) for i in chosen]
    if not exchanges:
        return []
    return _best(_scored(model, tokenizer, texts, exchanges), tokenizer, n)


@torch.inference_mode()
def found_pairs(model: Transformer, tokenizer: Tokenizer, windows: torch.Tensor, *, n: int = 4) -> list[Pair]:
    """Up to n pairs of which both prompts stand in windows (N, T) of text and differ in one token, the surest first.

    In each prompt the model gives its answer at least SURE. None where the text holds no such prompts.
    """
    texts, found = windows.tolist(), []
    for length in FOUND_LENGTHS:
        prompts = {
            tuple(ids[start : start + length])
            for ids in texts
            for start, _ in words_of(tokenizer, ids)
            if start + length <= len(ids)
        }
        alike: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for ids in sorted(prompts):
            for place in range(length - 1):
                if not re.search(r"[^\W_]", tokenizer.token_text(ids[place])):
                    continue  # other punctuation is no other prompt
                alike.setdefault((place, *ids[:place], *ids[place + 1 :]), []).append(ids)
        pairs = [tuple(each[:2]) for each in alike.values() if len(each) > 1][:FOUND_AT_MOST]
        if not pairs:
            continue
        sure, answers = _logits(model, torch.tensor(pairs).flatten(0, 1))[:, -1].softmax(-1).max(-1)
        for both, (p, q), (answer, foil) in zip(pairs, sure.view(-1, 2).tolist(), answers.view(-1, 2).tolist()):
            if answer != foil and min(p, q) >= SURE and all(_typed(tokenizer, ids) for ids in both):
                found.append((min(p, q), Pair(*both, answer, foil)))
        if found:
            break
    return [pair for _, pair in sorted(found, key=lambda each: -each[0])[:n]]


def fresh_pairs(
    model: Transformer, tokenizer: Tokenizer, pair: Pair, windows: torch.Tensor, *, n: int = 16, seed: int = 0
) -> list[Pair]:
    """Up to n further pairs like this one: other words in its changed place, or its two words in other texts.

    Words and texts come from windows (N, T). The first kind is taken where there are enough words.
    """
    rng = np.random.default_rng(seed)
    start, stop = _changed_word(tokenizer, pair)
    texts = _begun(tokenizer, windows)
    known = _known(texts, [words_of(tokenizer, ids) for ids in texts]).get((stop - start, not start), [])
    words = [each for each in known if each not in (pair.ids[start:stop], pair.other[start:stop])]
    words = [words[i] for i in rng.permutation(len(words))[:VARIATIONS]]
    found = _with_other_words(model, tokenizer, pair, (start, stop), words, rng, n) if len(words) > 1 else []
    if len(found) < n // 2:
        two = pair.ids[start:stop], pair.other[start:stop]
        exchanges = [
            _Exchange(window, span, two[1 - two.index(tuple(ids[slice(*span)]))])
            for window, ids in enumerate(texts)
            for span in words_of(tokenizer, ids)
            if tuple(ids[slice(*span)]) in two
        ]
        scored = _scored(model, tokenizer, texts, exchanges[:VARIATIONS]) if exchanges else []
        elsewhere = _best(scored, tokenizer, n)
        found += [each for each in elsewhere if each.ids != pair.ids][: n - len(found)]
    return found


@torch.inference_mode()
def _with_other_words(
    model: Transformer, tokenizer: Tokenizer, pair: Pair, span: Span, words: Sequence[tuple[int, ...]],
    rng: np.random.Generator, n: int,
) -> list[Pair]:  # fmt: skip
    """Up to n pairs of two of these words in the pair's changed place."""
    ids = torch.tensor([pair.ids])
    prompts = torch.tensor([_with(pair.ids, span, each) for each in words])
    logits = torch.cat([_logits(model, some) for some in prompts.split(max(1, ROWS_AT_ONCE // len(pair.ids)))])
    place, (end,) = torch.arange(len(pair.ids)), _next_begun(tokenizer, [pair.ids], [(0, span[1])])
    word = (place >= span[0]) & (place < end)
    likely = _rarer(_logits(model, ids), ids, logits, prompts, word) < UNLIKELY
    words, prompts, logits = [w for w, ok in zip(words, likely) if ok], prompts[likely], logits[likely, -1]
    answers = logits.argmax(dim=-1)
    found: list[Pair] = []
    for first in range(len(words)):
        for second in rng.permutation(len(words)):
            a, b = int(answers[first]), int(answers[second])
            margin = min(logits[first, a] - logits[first, b], logits[second, b] - logits[second, a])
            if a != b and margin >= CLEAR:
                found.append(Pair(tuple(prompts[first].tolist()), tuple(prompts[second].tolist()), a, b))
                break
        if len(found) == n:
            break
    return found


def _best(scored: Sequence[tuple[float, Pair, int]], tokenizer: Tokenizer, n: int) -> list[Pair]:
    """The n best that can be typed, one of each window."""
    found: dict[int, Pair] = {}
    for score, pair, window in sorted(scored, key=lambda each: -each[0]):
        if len(found) == n or score == -np.inf:
            break
        if _typed(tokenizer, pair.ids) and _typed(tokenizer, pair.other):
            found.setdefault(window, pair)
    return list(found.values())


def _typed(tokenizer: Tokenizer, ids: Sequence[int]) -> bool:
    """Whether a prompt can be typed: its text gives the same tokens."""
    return tokenizer.encode(tokenizer.decode(ids)) == list(ids)


def _begun(tokenizer: Tokenizer, windows: torch.Tensor) -> list[list[int]]:
    """Windows as texts of equal length that begin after a line break, a sentence or a space, where there is one."""
    length = min(LONGEST, windows.shape[1])
    texts = []
    for ids in windows.tolist():
        last = len(ids) - length
        pieces = [tokenizer.token_text(token) for token in ids[:last]]
        ends = [
            [i + 1 for i, piece in enumerate(pieces) if piece.endswith("\n")],
            [i + 1 for i, piece in enumerate(pieces) if i and piece == " " and pieces[i - 1][-1:] in ".!?"],
            [i + 1 for i, piece in enumerate(pieces) if piece == " "],
        ]
        start = next((each[0] for each in ends if each), 0)
        texts.append(ids[start : start + length])
    return texts


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


def _known(
    texts: Sequence[Sequence[int]], spans: Sequence[Sequence[Span]]
) -> dict[tuple[int, bool], list[tuple[int, ...]]]:
    """Number of tokens, and whether a text begins with them → such words, the most frequent first."""
    counts = Counter(
        (tuple(ids[a:b]), not a)
        for ids, own in zip(texts, spans)
        for a, b in own[:-1]  # the last may be cut off
    )
    by_kind: dict[tuple[int, bool], list[tuple[int, ...]]] = {}
    for (word, first), _ in counts.most_common():
        by_kind.setdefault((len(word), first), []).append(word)
    return by_kind


def _with(ids: Sequence[int], span: Span, words: Sequence[int]) -> list[int]:
    return [*ids[: span[0]], *words, *ids[span[1] :]]


def _changed_word(tokenizer: Tokenizer, pair: Pair) -> Span:
    """The words that hold all changes."""
    first, last = pair.changed[0], pair.changed[-1]
    spans = words_of(tokenizer, pair.ids)
    start = max((a for a, b in spans if a <= first < b), default=first)
    return start, min((b for a, b in spans if a <= last < b), default=last + 1)


@torch.inference_mode()
def _logits(model: Transformer, ids: torch.Tensor) -> torch.Tensor:
    """(B, T, V) on the CPU."""
    return model(ids.to(next(model.parameters()).device)).logits.float().cpu()


def _scored(
    model: Transformer, tokenizer: Tokenizer, texts: Sequence[Sequence[int]], exchanges: Sequence[_Exchange]
) -> list[tuple[float, Pair, int]]:
    """The best pair of each exchange: its score (−∞ where it is no pair), itself, and which text it is of."""
    windows = torch.tensor(texts)  # (N, T)
    T, own, found = windows.shape[1], _logits(model, windows), []
    starts = [[start for start, _ in words_of(tokenizer, ids)] for ids in texts]
    begun = torch.tensor([[sum(start <= place for start in own) for place in range(T)] for own in starts])
    for some in torch.arange(len(exchanges)).split(max(1, ROWS_AT_ONCE // T)):
        part = [exchanges[i] for i in some]
        variants = torch.tensor([_with(texts[each.window], each.span, each.words) for each in part])
        window = torch.tensor([each.window for each in part])
        start, stop = (torch.tensor([each.span[end] for each in part])[:, None] for end in (0, 1))
        here, there, ids = own[window], _logits(model, variants), windows[window]
        answer, foil = here.argmax(-1), there.argmax(-1)  # (B, T)
        leads = _lead(here, answer, foil), _lead(there, foil, answer)
        margin = torch.minimum(*leads)  # 0 where both predict the same
        places = torch.arange(T)
        ends = _next_begun(tokenizer, texts, [(each.window, each.span[1]) for each in part])
        word = (places >= start) & (places < torch.tensor(ends)[:, None])
        rarer = _rarer(here, ids, there, variants, word)
        words = begun[window] - begun[window].gather(1, stop - 1)  # begun since the change
        says = torch.cat((ids[:, 1:], ids.new_full((len(ids), 1), -1)), dim=1)
        possible = (places >= stop) & (answer == says) & (margin >= CLEAR) & (rarer < UNLIKELY)[:, None]
        score = margin.clamp(max=CLEAREST) - PER_TOKEN * places + PER_WORD * words.clamp(max=FAR)
        score = score.masked_fill(~possible, -torch.inf)
        for row, (best, end) in enumerate(zip(*(each.tolist() for each in score.max(dim=1)))):
            prompts = (tuple(each[row, : end + 1].tolist()) for each in (ids, variants))
            found.append((best, Pair(*prompts, int(answer[row, end]), int(foil[row, end])), part[row].window))
    return found


def _next_begun(tokenizer: Tokenizer, texts: Sequence[Sequence[int]], at: Sequence[tuple[int, int]]) -> list[int]:
    """For each (text, place) the end of the next word's first token, which tells whether an exchanged word fits."""
    spans = [words_of(tokenizer, ids) for ids in texts]
    return [next((start for start, _ in spans[text] if start >= place), place) + 1 for text, place in at]


def _lead(logits: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """By how much one token leads another (B, T), of logits (B, T, V)."""
    return (logits.gather(-1, one[..., None]) - logits.gather(-1, other[..., None]))[..., 0]


def _rarer(
    here: torch.Tensor, ids: torch.Tensor, there: torch.Tensor, variants: torch.Tensor, word: torch.Tensor
) -> torch.Tensor:
    """(B,) nats by which the variants' words (where `word` is true) are less probable than those of ids."""
    return (_log_probability(here, ids) - _log_probability(there, variants)).masked_fill(~word, 0.0).sum(dim=1)


def _log_probability(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """log p of each of ids (B, T) given those before it, 0 for the first."""
    said = logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    return torch.cat((said.new_zeros(len(ids), 1), said), dim=1)
