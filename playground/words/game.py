"""The game's result in words."""

from __future__ import annotations

import math

from ..inspection.game import BIGRAM, FLOOR, MODEL, YOU, Game

ENOUGH = 10
"""Bets from which on the players are compared."""
PLAYERS = {YOU: "you", MODEL: "the model", BIGRAM: "the bigram", FLOOR: "the floor"}


def game_summary(game: Game) -> str:
    """A fair summary of the bets so far; empty before there are enough."""
    n = len(game.rounds)
    if (n < ENOUGH and not game.over) or not n:
        return ""
    means = {player: float(game.bits(player).mean()) for player in game.players}
    each = ", ".join(f"{name} {means[player]:.2f}" for player, name in PLAYERS.items() if player in means)
    words = f"Bits per token after {n} bets: {each}. "
    guessing = math.log2(game.vocab_size)
    if means[YOU] > guessing:
        words += f"Who finds all {game.vocab_size} tokens equally likely loses {guessing:.2f}, less than you. "
    else:
        words += (
            f"With {means[YOU]:.2f} bits you were as unsure as between {2 ** means[YOU]:.1f} equally likely tokens. "
        )
    gap, margin = game.behind(MODEL)
    if abs(gap) > margin:
        less = "more" if gap > 0 else "less"
        words += f"You lose {abs(gap):.2f} ± {margin:.2f} bits {less} than the model per token: "
        words += "more than luck easily explains."
    elif math.isfinite(margin):
        words += f"You and the model differ by {abs(gap):.2f} bits per token, give or take {margin:.2f}: "
        words += f"{n} bets are too few to say who guesses better."
    below = [player for player in means if FLOOR in means and means[player] < means[FLOOR] - 0.005]
    if YOU in below and (length := game.forgotten):
        words += f" You are below the floor, which reads the last {length} tokens only: you saw more, or had luck."
    elif below:
        words += " Who is below the floor had luck: over many bets nobody stays there."
    return words
