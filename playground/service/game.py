"""Games: who bets on which text, and the bets so far. The next token stays on the server until there is a bet on it."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data import Tokenizer, visible
from ..data.languages import ExactModel
from ..data.ngrams import NGram, count_ngrams, tune_strengths
from ..game.rules import (
    BIGRAM,
    FLOOR,
    MODEL,
    SURE,
    Game,
    Passage,
    counted_bets,
    exact_bets,
    exact_most,
    model_bets,
    model_most,
    passage,
    with_choices,
)
from ..kept import Kept
from ..storage import Checkpoint
from ..words.corpus import overlap_warning
from .limits import GAMES, TYPED
from .runs import LANGUAGE_CHARACTERS, Source
from .texts import Unseen, unseen

COUNTED = 2_000_000
"""How many tokens at the end of a training text the bigram counts."""
ALL_LISTED, LISTED = 100, 24
"""Up to this many different tokens, all are listed to bet on; of more, this many that followed the last most often."""


@dataclass(frozen=True, eq=False)
class Table:
    """The source of a text, and the players besides the visitor and the model."""

    unseen: Unseen
    """The corpus, without its training part."""
    bigram: NGram
    exact: ExactModel | None
    warning: str

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        parts = [self.bigram.unigram, *(a for order in self.bigram.orders for a in (order.codes, order.counts))]
        if self.exact is not None:
            parts += [self.exact.tokens, self.exact.edge, self.exact.is_last, *self.exact.anywhere]
        return sum(part.nbytes for part in parts) + self.unseen.corpus.val.numel() * 8


@dataclass
class Seat:
    """One visitor's game with one model."""

    name: str = ""
    """Unguessable name of the game; bets carry it, so that none counts for another text."""
    game: Game | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class Position:
    """A game as its visitor may see it."""

    name: str
    game: Game
    """The game with its whole text: not for the page."""
    shown: list[str]
    """The texts of the tokens so far."""
    candidates: list[tuple[int, str]]
    """(token, text) to bet on; the list does not give away the next token."""
    all_listed: bool
    words: str
    """A description of the text."""
    warning: str


class Games:
    """Each visitor's latest game with each model; safe to use from several threads.

    A slow request about the previous model may arrive after the next game was opened, so each model has its own seat.
    """

    def __init__(self) -> None:
        self._seats = Kept(entries=GAMES)
        # a language's table is shared by all its models; others leave with their model
        self._tables = Kept(entries=64, megabytes=192)

    def open(
        self, visitor: str, model_id: str, checkpoint: Checkpoint, source: Source | None, *, anew: bool = False
    ) -> Position:
        """This visitor's game with this model: the current one, or a new one. Raises ValueError if there is no text."""
        table, seat = self._table(checkpoint, source), self._seats.get((visitor, model_id), Seat)
        with seat.lock:
            if anew or seat.game is None:
                text = passage(table.unseen.corpus, checkpoint.config.context_length, secrets.randbits(31))
                text = with_choices(text, _most(table, checkpoint, text))
                seat.name, seat.game = secrets.token_urlsafe(9), Game(text, checkpoint.config.vocab_size)
            return _position(seat, table, checkpoint.tokenizer)

    def seen(self, visitor: str, model_id: str) -> Game | None:
        """This visitor's current game against this model; None before the first."""
        seat = self._seats.peek((visitor, model_id))
        return seat.game if seat else None

    def end(self, visitor: str, model_id: str | None) -> None:
        """End this visitor's game with this model: the next look opens another."""
        self._seats.drop((visitor, model_id))

    def mark(self, visitor: str, model_id: str) -> tuple[str, int] | None:
        """A value that differs whenever this visitor's game with this model looks different; None before the game."""
        seat = self._seats.peek((visitor, model_id))
        if seat is None or seat.game is None:
            return None
        return seat.name, len(seat.game.rounds)

    def bet(self, visitor: str, model_id: str, checkpoint: Checkpoint, source: Source | None, sent: Any) -> Position:
        """Settle the bet that the page sent, which anybody may have written. Raises ValueError if it is no valid bet.

        Args:
            sent: {"game": its name, "round": bets before it, "choice": token, "sure": a name in SURE}; a token is given
            by its id, or by its text as typed.
        """
        if not isinstance(sent, Mapping):
            raise ValueError(_NO_BET)
        table, seat = self._table(checkpoint, source), self._seats.get((visitor, model_id), Seat)
        with seat.lock:
            game = seat.game
            if game is None or sent.get("game") != seat.name:
                raise ValueError("this game has ended. Press Another text")
            turn = sent.get("round")
            if type(turn) is not int or not 0 <= turn <= len(game.rounds):
                raise ValueError(_NO_BET)
            if turn < len(game.rounds) or game.over:  # sent twice, or from another window: the token is already shown
                return _position(seat, table, checkpoint.tokenizer)
            if sent.get("sure") not in list(SURE):
                raise ValueError(_NO_BET)
            chosen, window = _token(sent.get("choice"), checkpoint.tokenizer), game.window
            others = {BIGRAM: counted_bets(table.bigram, window), MODEL: model_bets(checkpoint.model, window)}
            if table.exact is not None:
                unused = game.vocab_size - table.exact.vocab_size
                others[FLOOR] = np.pad(exact_bets(table.exact, window), (0, unused), constant_values=-np.inf)
            game.settle(chosen, SURE[sent["sure"]], others)
            return _position(seat, table, checkpoint.tokenizer)

    def _table(self, checkpoint: Checkpoint, source: Source | None) -> Table:
        def lay() -> Table:
            judged = unseen(source, checkpoint)
            if judged is None:
                raise ValueError(
                    "the page knows no text that is new to this model, so there is nothing fair to bet on. "
                    "Choose another model, or train one here"
                )
            return _laid(judged, checkpoint.config.vocab_size)

        if checkpoint.language is None:
            return self._tables.get("own", lay, owner=checkpoint.model)
        tokens = json.dumps(checkpoint.tokenizer.to_dict(), sort_keys=True)
        return self._tables.get((checkpoint.language.name, checkpoint.config.vocab_size, tokens), lay)


def _most(table: Table, checkpoint: Checkpoint, text: Passage) -> list[float]:
    """The largest probability that the best player, by the grammar or else the model, gives a token at each place."""
    best = exact_most(table.exact, text.ids) if table.exact is not None else model_most(checkpoint.model, text.ids)
    return [best[place] for _, place in text.places]


_NO_BET = "this bet cannot be read. Choose how sure you are, then tap what comes next"


def _laid(judged: Unseen, vocab_size: int) -> Table:
    corpus, train = judged.corpus, judged.corpus.train.numpy()
    if corpus.language is not None:
        train = np.array(corpus.tokenizer.encode(corpus.language.sample(LANGUAGE_CHARACTERS, seed=0)))
    train = train[-COUNTED:]
    bigram = count_ngrams(train, vocab_size, tune_strengths(train, vocab_size)[:1])
    held_out = replace(judged, corpus=replace(corpus, train=corpus.val[:0], val=corpus.val.clone()))
    return Table(held_out, bigram, corpus.exact_model(), overlap_warning(corpus.overlap()))


def _position(seat: Seat, table: Table, tokenizer: Tokenizer) -> Position:
    game = seat.game
    tokens, complete = candidates(table.bigram, tokenizer, game.window) if not game.over else ([], True)
    return Position(
        seat.name,
        game,
        _texts(tokenizer, game),
        [(token, visible(tokenizer.token_text(token))) for token in tokens],
        complete,
        table.unseen.words,
        table.warning,
    )


def _texts(tokenizer: Tokenizer, game: Game) -> list[str]:
    """The text of every token shown, with breaks between documents and spaces between words."""
    said: list[str] = []
    for i, token in enumerate(game.shown):
        text = tokenizer.token_text(token)
        if tokenizer.kind == "word" and said and not said[-1].endswith("\n"):
            text = tokenizer.decode([game.shown[i - 1], token])[len(tokenizer.decode([game.shown[i - 1]])) :]
        said.append("\n" + text.lstrip() if i and i in game.passage.document_starts else text)
    return said


def candidates(bigram: NGram, tokenizer: Tokenizer, known: tuple[int, ...]) -> tuple[list[int], bool]:
    """Tokens to bet on, in an order that gives nothing away, and whether these are all tokens."""
    texts = [tokenizer.token_text(token) for token in range(min(tokenizer.vocab_size, ALL_LISTED + 1))]
    if len(texts) <= ALL_LISTED:
        unknown = {"char": len(texts) - 1, "word": 0}.get(tokenizer.kind)
        return sorted((i for i in range(len(texts)) if i != unknown), key=lambda i: _order(texts[i])), True
    likely = np.argsort(-bigram.next_token(known)[: tokenizer.vocab_size], kind="stable")[:LISTED].tolist()
    return sorted(likely, key=lambda token: _order(tokenizer.token_text(token))), False


def _order(text: str) -> tuple[bool, str, str]:
    """Letters first, then everything else."""
    bare = text.strip()
    return not bare[:1].isalpha(), bare.casefold(), text


def typed_text(text: str) -> str:
    """A token's text as a visitor typed it, with the signs for white space turned back into white space."""
    return text.translate(str.maketrans("␣⏎⇥", " \n\t"))


def _token(key: Any, tokenizer: Tokenizer) -> int:
    """A token, given by its id or its text. Raises ValueError."""
    if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < tokenizer.vocab_size:
        return key
    if not isinstance(key, str) or not 0 < len(key) <= TYPED:
        raise ValueError("this model has no such token. Choose one from the list, or type one")
    text = typed_text(key)
    tried = [text.strip(" ")] if tokenizer.kind == "word" else [text, " " + text]
    for each in tried:
        ids = tokenizer.encode(each)
        if len(ids) == 1 and tokenizer.token_text(ids[0]) == each:
            return ids[0]
    begun = tokenizer.encode(text)
    said = f"; its first token is “{visible(tokenizer.token_text(begun[0]))}”" if len(begun) > 1 else ""
    raise ValueError(f"“{visible(text)}” is not one of this model's tokens{said}. Choose or type another")
