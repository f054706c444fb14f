"""Guess the next token: bets on held-out text, scored in points, against a bigram, the model and the best possible.

V = vocabulary. A bet gives every token a probability, and costs −log2 of the probability of the token that came. With
this score, honest probabilities are the best strategy (Good 1952, Kelly 1956; Cover and King 1978 had people bet on
the next letter). Points are the same on another scale, as whole numbers: POINTS for certainty, none for a uniform bet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from ..data import Corpus
from ..data.languages import ExactModel
from ..data.ngrams import NGram
from ..model import Transformer

SURE = {"guess": 0.25, "think": 0.6, "sure": 0.9}
"""The probability that a bet gives its token; all others share the rest."""
POINTS = 10
"""Points for a bet that was certain, and right."""
SHOWN_CHARACTERS, SHOWN_TOKENS = 24, 8
"""Tokens shown before the first bet: if they are characters, and if they are longer."""
LONGEST_CHARACTERS, LONGEST_TOKENS = 160, 60
"""Tokens among which the bets are chosen, likewise."""
ROUNDS = 10
"""Bets on one text."""
OPEN = 0.7
"""A choice is real if the best player gives no token more than this."""
PART = 5000
"""Tokens of a long held-out text within which a beginning is chosen."""
YOU, BIGRAM, MODEL, FLOOR = "you", "bigram", "model", "floor"


@dataclass(frozen=True)
class Passage:
    """A text to bet on. A bet on a place knows `ids` from the start of its window up to it, and nothing else."""

    ids: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    """(start of the window, place) of each bet, in order: ids[start:place] are known, ids[place] is bet on. Tokens
    between two bets are shown without a bet."""
    document_starts: tuple[int, ...] = ()
    """Where documents begin; each knows nothing of the one before."""

    def window(self, n: int) -> tuple[int, ...]:
        """The tokens that the n-th bet knows."""
        start, place = self.places[n]
        return self.ids[start:place]


def with_choices(text: Passage, most: Sequence[float], rounds: int = ROUNDS) -> Passage:
    """The same text with at most `rounds` bets, the first a real choice. Each real choice adds the token after it.

    So at least half of the bets are real choices, if the text has enough of them.

    Args:
        most: for each place of the text, the largest probability that the best player gives a token there.
    """
    real = [i for i, share in enumerate(most) if share <= OPEN] or [0]
    wanted: list[int] = []
    for i in real:
        wanted += [j for j in (i, i + 1) if j not in wanted and j < len(text.places)]
    if len(wanted) < rounds:  # as many as there are
        wanted += [i for i in range(real[0], len(text.places)) if i not in wanted][: rounds - len(wanted)]
    places = tuple(text.places[i] for i in sorted(wanted[:rounds]))
    return replace(text, places=places, ids=text.ids[: places[-1][1] + 1 + AFTER])


AFTER = 12
"""Tokens kept after the last bet, so that its word can be read to the end."""


def passage(corpus: Corpus, context: int, seed: int) -> Passage:
    """A part of the held-out text, or a new text in a synthetic language, for a model with this context length.

    Every token after the first ones can be bet on.

    Raises ValueError if the held-out part has fewer than two tokens.
    """
    rng = np.random.default_rng(seed)
    if corpus.documents:
        return _documents(corpus, context, rng)
    char = corpus.tokenizer.kind == "char"
    shown, longest = (SHOWN_CHARACTERS, LONGEST_CHARACTERS) if char else (SHOWN_TOKENS, LONGEST_TOKENS)
    if corpus.language is not None:
        # odd seeds are never used for training text
        tokens = corpus.tokenizer.encode(corpus.language.sample(12 * (shown + longest), seed=2 * seed + 1))
    else:
        part = int(rng.integers(max(len(corpus.val) - PART, 0) + 1))
        tokens = corpus.val[part : part + PART].tolist()
    if len(tokens) < 2:
        raise ValueError("the part of the text that was held out is a single token: there is nothing to bet on")
    shown = max(min(shown, len(tokens) // 3, max(context // 2, 1)), 1)
    length = min(shown + longest, len(tokens))
    texts = [corpus.tokenizer.token_text(token) for token in tokens[: len(tokens) - length + 1]]
    # at the start of a line, with the break before it, or else of a word; the players read that break, too
    starts = [i for i, text in enumerate(texts) if "\n" in text] or [i for i, text in enumerate(texts) if " " in text]
    start = int(rng.choice(starts or range(len(texts))))
    ids = tuple(tokens[start : start + length])
    return Passage(ids, tuple((max(place - context, 0), place) for place in range(shown, length)))


def _documents(corpus: Corpus, context: int, rng: np.random.Generator) -> Passage:
    """Whole documents in random order, with bets from each one's second token on."""
    ends = [i for i, token in enumerate(corpus.val.tolist()) if token < 0]
    documents = [corpus.val[a:b].tolist() for a, b in zip([0, *(end + 1 for end in ends)], ends)]
    ids: list[int] = []
    starts: list[int] = []
    places: list[tuple[int, int]] = []
    for i in rng.permutation(len(documents)).tolist():
        start = len(ids)
        starts.append(start)
        ids += documents[i]
        places += [(max(start, place - context), place) for place in range(start + 1, len(ids))]
    if not places:
        raise ValueError("the texts that were held out have one token each: there is nothing to bet on")
    places = places[:LONGEST_TOKENS]
    return Passage(tuple(ids[: places[-1][1] + 1]), tuple(places), tuple(starts))


# ---- the visitor's bet -----------------------------------------------------------------------------------------------


def single(token: int, share: float, vocab_size: int) -> np.ndarray:
    """The probabilities (V,) in a bet on one token: the token gets `share`, and all others share the rest equally."""
    bet = np.full(vocab_size, (1 - share) / max(vocab_size - 1, 1))
    bet[token] = share
    return bet / bet.sum()


def points(bits: Any, vocab_size: int) -> Any:
    """The whole points of bets with this cost in bits: POINTS for none, 0 for the cost of a uniform guess."""
    exact = POINTS * (1 - np.asarray(bits) / math.log2(max(vocab_size, 2)))
    return exact.round(6).round() + 0.0  # to 6 digits first, so that equal bets earn the same; + 0.0 turns −0 into 0


def stakes(vocab_size: int) -> dict[str, tuple[int, int]]:
    """How sure the player is → (points if that token comes, points if another one does)."""

    def of(share: float) -> tuple[int, int]:
        right, wrong = points(-np.log2(single(0, share, vocab_size)[[0, -1]]), vocab_size)
        return int(right), int(wrong)

    return {name: of(share) for name, share in SURE.items()}


# ---- the others' bets ------------------------------------------------------------------------------------------------


@torch.inference_mode()
def model_bets(model: Transformer, window: Sequence[int]) -> np.ndarray:
    """log2 of the model's probabilities (V,) after these tokens. Raises ValueError if they are not numbers."""
    logits = model(torch.tensor([list(window)])).logits[0, -1].double()
    bets = (logits.log_softmax(0) / math.log(2)).numpy()
    if np.isnan(bets).any():
        raise ValueError("this model's scores are not numbers, so it cannot bet: choose another model")
    return bets


def counted_bets(bigram: NGram, window: Sequence[int]) -> np.ndarray:
    """log2 of the probabilities (V,) by counting what followed the last token."""
    return np.log2(bigram.next_token(window))


def exact_bets(exact: ExactModel, window: Sequence[int]) -> np.ndarray:
    """log2 of the language's own probabilities (V,) after these tokens, which may stand anywhere in a text."""
    belief = exact.anywhere
    for token in window:
        belief = exact.read(belief, token)[1]
    with np.errstate(divide="ignore"):
        return np.log2(exact.next_token(belief))


@torch.inference_mode()
def model_most(model: Transformer, ids: Sequence[int]) -> list[float]:
    """The model's largest next-token probability at each of these places; 0 at the first.

    In a long text, each place sees at least half a context of the tokens before it.
    """
    context = model.config.context_length
    most = [0.0]
    for start in range(0, len(ids) - 1, max(context // 2, 1)):
        window = torch.tensor([list(ids[start : start + context])])
        most[len(most) :] = model(window).logits[0].softmax(-1).amax(-1).tolist()[len(most) - 1 - start :]
    return most[: len(ids)]


def exact_most(exact: ExactModel, ids: Sequence[int]) -> list[float]:
    """The language's own largest next-token probability at each of these tokens, given all those before it."""
    belief, most = exact.anywhere, []
    for token in ids:
        most.append(float(exact.next_token(belief).max()))
        belief = exact.read(belief, token)[1]
    return most


# ---- the score -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bet:
    """One player's bet on a token."""

    bits: float
    """The bet's cost: −log2 of the probability of the token that came."""
    favourite: int
    """The token with the largest probability, or the first of several."""
    share: float
    """The favourite's probability."""


def cost(bets: np.ndarray, token: int) -> Bet:
    """The cost of bets (V,), given as log2 of probabilities, when this token came."""
    favourite = int(bets.argmax())
    return Bet(max(0.0, float(-bets[token])), favourite, float(2.0 ** bets[favourite]))


@dataclass(frozen=True)
class Round:
    """One round: a token that has been revealed."""

    token: int
    bets: Mapping[str, Bet]
    """The bets, by player."""


@dataclass
class Game:
    """One visitor's bets on one text."""

    passage: Passage
    vocab_size: int
    rounds: list[Round] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether the text has ended."""
        return len(self.rounds) == len(self.passage.places)

    @property
    def window(self) -> tuple[int, ...]:
        """The tokens that may be used for the next bet."""
        return self.passage.window(len(self.rounds))

    @property
    def shown(self) -> tuple[int, ...]:
        """All tokens that may be shown by now."""
        return self.passage.ids if self.over else self.passage.ids[: self.passage.places[len(self.rounds)][1]]

    def settle(self, chosen: int, share: float, others: Mapping[str, np.ndarray]) -> Round:
        """Show the next token and score the bets: the visitor's on one token, and the others' (V,) as log2."""
        token = self.passage.ids[self.passage.places[len(self.rounds)][1]]
        mine = np.log2(single(chosen, share, self.vocab_size))
        bets = {YOU: cost(mine, token)} | {name: cost(bets, token) for name, bets in others.items()}
        self.rounds.append(Round(token, bets))
        return self.rounds[-1]

    @property
    def players(self) -> list[str]:
        """The names of those who have bet."""
        return list(self.rounds[-1].bets) if self.rounds else []

    def bits(self, player: str) -> np.ndarray:
        """The cost of each of a player's bets."""
        return np.array([each.bets[player].bits for each in self.rounds])

    def points(self, player: str) -> np.ndarray:
        """The points of each of a player's bets."""
        return points(self.bits(player), self.vocab_size)
