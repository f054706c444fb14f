"""The game's result in words: it names who won and by what, whatever came."""

import itertools

import pytest

from playground.game.rules import BIGRAM, FLOOR, MODEL, YOU
from playground.words.game import in_bits, luck, result
from tests.game.test_rules import played


@pytest.mark.parametrize(("you", "model", "bigram"), itertools.product((0.5, 1.0, 1.5), repeat=3))
def test_the_result_says_who_beat_whom(you, model, bigram):
    game = played([you] * 9 + [you + 0.2], [model] * 9 + [model + 0.2], bigram)
    said = result(game, lambda n: f"word {n}")
    totals = {player: game.points(player).sum() for player in game.players}
    assert ("You beat the bigram" in said) == (totals[YOU] > totals[BIGRAM] + 0.5)
    assert ("The bigram beat you" in said) == (totals[YOU] < totals[BIGRAM] - 0.5)
    assert ("You beat the model" in said) == (you < model)
    assert ("The model beat you" in said) == (you > model)
    if you != model:
        assert "word 0" in said and str(round(abs(totals[YOU] - totals[MODEL]))) in said


def test_it_names_the_word_that_made_the_difference_luck_and_chance():
    game = played([1.0] * 4 + [3.0] + [1.0] * 5, [1.0] * 10)
    assert "it knew “word 4”" in result(game, lambda n: f"word {n}")
    game = played([2.0] * 7 + [0.1] + [1.0] * 2, [3.0] * 10)
    assert "you knew “word 7”" in result(game, lambda n: f"word {n}")
    game = played([0.5] * 10, [1.0] * 10)
    assert not luck(game)
    for each in game.rounds:
        each.bets[FLOOR] = each.bets[MODEL]
    assert luck(game).startswith("You were lucky")
    assert "may be chance" in in_bits(played([1.0, 2.0] * 5, [2.0, 1.0] * 5))
    assert "may be chance" not in in_bits(played([3.0, 3.1] * 5, [1.0, 1.2] * 5))
    assert "±" not in in_bits(played([1.0], [2.0]))
