"""Games of many visitors: what is no bet is refused in words, nothing is told before its time, all play at once."""

import math
import re

import numpy as np
import pytest

from playground.data import build_tokenizer, corpus_from_language
from playground.game.rules import BIGRAM, FLOOR, MODEL, YOU, Passage
from playground.model import Transformer
from playground.service.game import Games
from playground.service.limits import TYPED
from playground.storage import Checkpoint
from playground.training import History
from playground.ui.tabs.generate.game import all_bets, board_value, latest, scores
from tests.model.configs import TINY
from tests.ui.runs import ANNA, BERT, TEXT, small_spec

SOURCE = small_spec(text=TEXT).source


def checkpoint(kind: str = "char", language: str | None = None, seed: int = 1) -> Checkpoint:
    tokenizer = build_tokenizer(kind, TEXT, vocab_size=300 if kind == "bpe" else None)
    if language:
        tokenizer = corpus_from_language(language, n_characters=500, n_validation=500, unit=kind).tokenizer
    config = TINY.replace(vocab_size=tokenizer.vocab_size + 3, context_length=16)
    return Checkpoint(Transformer(config, seed=seed), tokenizer, History(), "tried", {"language": language})


def a_bet(at, turn: int = 0, choice: object = 1, sure: str = "think") -> dict:
    """What the page sends."""
    return {"game": at.name, "round": turn, "choice": choice, "sure": sure}


@pytest.mark.parametrize("kind", ["char", "word", "bpe"])
def test_a_game_on_ones_own_text(kind):
    games, made = Games(), checkpoint(kind)
    at = games.open(ANNA, "mine", made, SOURCE)
    assert "last tenth" in at.words and at.all_listed == (kind != "bpe")
    assert "".join(at.shown) == made.tokenizer.decode(at.game.shown)
    while not at.game.over:
        turn, comes = len(at.game.rounds), at.game.passage.ids[at.game.passage.places[len(at.game.rounds)][1]]
        choice, sure = (comes, "sure") if turn % 2 else (at.candidates[0][0], "guess")
        sent = a_bet(at, turn, choice, sure)
        at = games.bet(ANNA, "mine", made, SOURCE, sent)
        assert at.game.rounds[-1].token == comes and at.game.players == [YOU, BIGRAM, MODEL]
        assert len(games.bet(ANNA, "mine", made, SOURCE, sent).game.rounds) == turn + 1, "sent twice, it counts once"
        assert "came" in latest(at, made.tokenizer) and ("game-words" in scores(at, made.tokenizer)) == at.game.over
    saved = all_bets(at, made.tokenizer)  # the table that its button saves
    assert 'data-csv="bets"' in saved
    rows = [re.findall('data-value="([^"]+)"', row) for row in saved.split("<tr>")[2:]]
    mine, models = (np.array([float(row[i]) for row in rows]) for i in (0, 1))
    assert mine.tolist() == at.game.bits(YOU).tolist() and models.tolist() == at.game.bits(MODEL).tolist()
    assert all(math.isfinite(x) and x >= 0 for player in at.game.players for x in at.game.bits(player))
    assert games.open(ANNA, "mine", made, SOURCE).game is at.game, "a reload finds it again"
    assert games.open(ANNA, "mine", made, SOURCE, anew=True).game is not at.game


def test_what_is_not_shown_yet_changes_nothing_that_is_told_or_bet():
    games, made = Games(), checkpoint("char", "stories")
    at = games.open(ANNA, "it", made, None)
    game, told = at.game, board_value(at)
    first = game.passage.places[0][1]
    assert sum(map(len, told["shown"])) == first
    others = tuple(reversed(game.passage.ids[first + 1 :]))
    game.passage = Passage((*game.passage.ids[: first + 1], *others), game.passage.places)
    assert board_value(games.open(ANNA, "it", made, None)) == told
    bets = games.bet(ANNA, "it", made, None, a_bet(at)).game.rounds[0].bets
    game.rounds.clear()
    game.passage = Passage((*game.passage.ids[: first + 1], *others[::-1]), game.passage.places)
    again = games.bet(ANNA, "it", made, None, a_bet(at)).game.rounds[0].bets
    assert bets == again and set(bets) == {YOU, BIGRAM, MODEL, FLOOR}
    chance = 0.6 if game.rounds[0].token == 1 else 0.4 / (made.config.vocab_size - 1)
    assert bets[YOU].bits == pytest.approx(-math.log2(chance))


NO_BETS = [
    None, 7, "x", [], {}, {"choice": "a"},
    *({"round": turn, "choice": 1, "sure": "sure"} for turn in (-1, 5, 1.0, True, None, "0", 1e9)),
    *({"round": 0, "sure": "guess", "choice": token}
      for token in (-1, 10**9, 1.5, math.nan, True, None, [], "", "ß", "cat", "x" * (TYPED + 1))),
    *({"round": 0, "choice": 1, "sure": sure} for sure in (None, "", "very", 1, [], {}, True)),
    {"round": 0, "choice": 1}, {"round": 0, "sure": "sure"},
]  # fmt: skip


@pytest.mark.parametrize("sent", NO_BETS, ids=lambda sent: str(sent)[:40])
def test_what_is_no_bet_is_refused_in_words_and_shows_nothing(sent):
    games, made = Games(), checkpoint()
    at = games.open(ANNA, "mine", made, SOURCE)
    sent = {"game": at.name, **sent} if isinstance(sent, dict) else sent
    with pytest.raises(ValueError) as refused:
        games.bet(ANNA, "mine", made, SOURCE, sent)
    assert len(str(refused.value)) > 20 and not at.game.rounds


def test_a_bet_belongs_to_one_visitor_and_one_text_and_tokens_can_be_typed():
    games, made = Games(), checkpoint()
    at = games.open(ANNA, "mine", made, SOURCE)
    for visitor, model_id, name in ((BERT, "mine", at.name), (ANNA, "other", at.name), (ANNA, "mine", "")):
        with pytest.raises(ValueError, match="has ended"):
            games.bet(visitor, model_id, made, SOURCE, a_bet(at) | {"game": name})
    with pytest.raises(ValueError, match="nothing fair"):
        Games().open(ANNA, "strange", made, None)
    games.open(ANNA, "the one before", made, SOURCE)
    played = games.bet(ANNA, "mine", made, SOURCE, a_bet(at, 0, at.candidates[0][0])).game
    assert len(played.rounds) == 1 and games.seen(ANNA, "mine") is played
    assert games.seen(ANNA, "other") is None and not games.seen(ANNA, "the one before").rounds
    games, made = Games(), checkpoint("bpe")
    at = games.open(ANNA, "mine", made, SOURCE)
    bet = games.bet(ANNA, "mine", made, SOURCE, a_bet(at, 0, "␣cat", "sure")).game.rounds[0].bets[YOU]
    assert (bet.favourite, bet.share) == (made.tokenizer.encode(" cat")[0], pytest.approx(0.9))
    with pytest.raises(ValueError, match="first token"):
        games.bet(ANNA, "mine", made, SOURCE, a_bet(at, 1, "sat on"))
