"""The game's result in words."""

import numpy as np

from playground.inspection.game import FLOOR, MODEL, Passage
from playground.words.game import ENOUGH, game_summary
from tests.inspection.test_game import played


def test_the_summary_is_fair_to_few_bets():
    rng = np.random.default_rng(0)
    unclear = played(rng.uniform(0.5, 4, 12).tolist(), rng.uniform(0.5, 4, 12).tolist())
    assert "12 bets are too few to say who guesses better" in game_summary(unclear)
    clearly = game_summary(played([3.0] * 11, [1.0, 1.2] * 5 + [1.0]))
    assert "more than the model per token: more than luck easily" in clearly
    below = played([0.5] * 11, [1.0] * 11)
    for each in below.rounds:
        each.bets[FLOOR] = each.bets[MODEL]
    assert "had luck" in game_summary(below)
    below.passage = Passage(below.passage.ids, tuple((max(i - 7, 0), i + 1) for i in range(11)))
    assert "reads the last 8 tokens only" in game_summary(below)
    unfinished = played([1.0] * 9, [1.0] * 9)
    unfinished.passage = Passage(tuple([0] * 30), tuple((0, i + 1) for i in range(29)))
    assert len(unfinished.rounds) < ENOUGH and not game_summary(unfinished)
