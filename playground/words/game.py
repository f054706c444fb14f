"""The game's result in words."""

from __future__ import annotations

from collections.abc import Callable

from ..game.rules import BIGRAM, FLOOR, MODEL, YOU, Game

PLAYERS = {YOU: "you", MODEL: "the model", BIGRAM: "the bigram", FLOOR: "the best possible player"}


def result(game: Game, word: Callable[[int], str]) -> str:
    """The result of a finished game and its reason. `word` returns the word that holds a round's token."""
    gaps = {player: int((game.points(YOU) - game.points(player)).sum()) for player in (BIGRAM, MODEL)}
    if not gaps[BIGRAM]:
        said = "You and the bigram are level. "
    else:
        said = "You beat the bigram. " if gaps[BIGRAM] > 0 else "The bigram beat you, although it only counts pairs. "
    gap = gaps[MODEL]
    if not gap:
        return said + f"You and the model are level{', too' * (not gaps[BIGRAM])}."
    lead = (game.bits(MODEL) - game.bits(YOU)).round(6)
    most = int(lead.argmax() if gap > 0 else lead.argmin())
    who = "You beat the model" if gap > 0 else "The model beat you"
    return f"{said}{who} by {abs(gap)} point{'s' * (abs(gap) != 1)}. “{word(most)}” made the largest difference."


def luck(game: Game) -> str:
    """A note on a score above the best possible one; empty if there is none."""
    if FLOOR not in game.players:
        return ""
    best = game.points(FLOOR).sum()
    lucky = [player for player in (YOU, MODEL, BIGRAM) if game.points(player).sum() > best]
    if not lucky:
        return ""
    names = " and ".join(PLAYERS[player] for player in lucky)
    were = "were" if len(lucky) > 1 or lucky == [YOU] else "was"
    return f"{names[:1].upper()}{names[1:]} {were} lucky. In the long run, no one beats the best possible player."
