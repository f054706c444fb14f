"""Guess the next letter: the visitor bets on what comes next in a text."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from ....data import Tokenizer, visible
from ....game import rules
from ....game.rules import SURE, YOU, stakes
from ....service.game import Games, Position
from ....service.limits import TYPED
from ....service.runs import Source
from ....storage import Checkpoint
from ....words.game import PLAYERS, luck, result
from ....words.numbers import percent, signed
from ... import theme
from ...page import Page
from ...panel import Asked, Slot, slot
from .selection import Selection
from .writing import no_mask

TITLE = "Play: guess the next letter"
HOW_SURE = {"guess": "Just a guess", "think": "I think so", "sure": "I'm sure"}
"""The names in SURE → their words on the page."""

_RULES = f"""<p>“{HOW_SURE["sure"]}” gives your token {percent(SURE["sure"], 0)}, “{HOW_SURE["think"]}”
{percent(SURE["think"], 0)}, “{HOW_SURE["guess"]}” {percent(SURE["guess"], 0)}; the other tokens share the rest. A token
that had probability p costs <b>−log₂ p</b> bits. Points put the cost on a scale: 10 for no bits, 0 for rating
all tokens equally likely.</p>
<p>The model reads the same text. The <i>bigram</i> only knows how often each token follows the last one. The best
possible player knows the grammar behind the text, if there is one.</p>"""

_SURE = "".join(
    f'<label><input type="radio" name="bet-how" value="{name}"{" checked" * (name == "think")}><span>{said} '
    f'<small data-stake="{name}"></small></span></label>'
    for name, said in HOW_SURE.items()
)
_BOARD = f"""<div class="bet"><p class="bet-text" aria-live="polite" dir="auto"></p><div class="bet-desk" hidden>
<p class="bet-state" role="status"></p>
<fieldset class="bet-how seg"><legend class="sr-only">How sure are you?</legend>{_SURE}</fieldset>
<div class="bet-tokens" role="group" data-arrows aria-label="What comes next?"></div>
<label class="bet-typed" hidden>Another one <input type="text" autocomplete="off" autocapitalize="off"
spellcheck="false" maxlength="{TYPED}"></label></div></div>"""

TEMPLATE = f"""<div class="two"><div class="card">{slot("game-note")}
<div data-slot="game-board" data-own>{_BOARD}</div>
<button type="button" class="ghost play-again" data-do="another-text">Another text</button>
<details><summary>Details</summary>{_RULES}</details></div>
<div class="card">{slot("game-result")}{slot("game-summary")}</div></div>"""


class Game:
    """The games of this page."""

    def __init__(self, page: Page):
        self._page, self.games = page, Games()
        page.share("generate.games", self.games)
        page.panels.act("bet", self.bet)
        page.panels.act("another-text", lambda asked: self._position(asked, anew=True) and None)

    def bet(self, asked: Asked) -> None:
        """Settle a bet. Raises ValueError if it is not a valid bet."""
        self.games.bet(*self._table(asked), asked.selection.get("bet"))

    def _position(self, asked: Asked, *, anew: bool = False) -> Position:
        return self.games.open(*self._table(asked), anew=anew)

    def _table(self, asked: Asked) -> tuple[str, str, Checkpoint, Source | None]:
        """The visitor, the model's id, the model, and the source of its text."""
        model_id = Selection.read(asked.selection).model
        checkpoint = self._page.registry.get(model_id, asked.visitor)
        return asked.visitor, model_id, checkpoint, self._page.board.source_of(checkpoint)

    def slots(self, asked: Asked, checkpoint: Checkpoint, chosen: Selection) -> dict[str, Slot]:
        """The game, if its fold is open; its first text is chosen once the rest of the panel is drawn."""
        if not chosen.game:
            return {}
        mark, tokenizer = self.games.mark(asked.visitor, chosen.model), checkpoint.tokenizer

        def slot_of(name: str, show: Callable[[Position], Any]) -> Slot:
            shown = lambda: show(self._position(asked))  # noqa: E731
            return Slot((chosen.model, mark), shown, slow=mark is None, echoes=name != "game-note")

        makes: dict[str, Callable[[Position], Any]] = {
            "game-note": lambda position: _note(position, checkpoint),
            "game-board": board_value,
            "game-result": lambda position: latest(position, tokenizer),
            "game-summary": lambda position: scores(position, tokenizer),
        }
        return {name: slot_of(name, show) for name, show in makes.items()}


def _note(position: Position, checkpoint: Checkpoint) -> str:
    rounds = len(position.game.passage.places)
    notes = [
        theme.quiet(f"The text: {position.words}."),
        theme.quiet(
            f"{rounds} rounds, {rules.POINTS * rounds} points at most. "
            "Each button shows your points if you are right, and if you are wrong."
        ),
    ]
    notes += [theme.notice(said, "warning") for said in (position.warning, no_mask(checkpoint)) if said]
    return "".join(notes)


def board_value(position: Position) -> dict[str, Any]:
    """The values for the browser: the text so far and the possible bets, never the next token."""
    game = position.game
    return {
        "game": position.name,
        "round": len(game.rounds),
        "of": len(game.passage.places),
        "shown": position.shown,
        "candidates": [list(each) for each in position.candidates],
        "all": position.all_listed,
        "stakes": stakes(game.vocab_size),
        "over": game.over,
    }


def latest(position: Position, tokenizer: Tokenizer) -> str:
    """The last token, and the points it earned each player."""
    game = position.game
    if not game.rounds:
        return ""
    last = game.rounds[-1]
    came = f"“{_label(tokenizer, last.token)}” came"
    return f'<h3 role="status">{html.escape(came)}: {signed(game.points(YOU)[-1], 0, plus=True)}</h3>'


def scores(position: Position, tokenizer: Tokenizer) -> str:
    """All players' points, and the probability each gave the last token; at the end also the result."""
    game, rows = position.game, []
    if not game.rounds:
        return ""
    for player, name in PLAYERS.items():
        if player in game.players:
            bet, earned = game.rounds[-1].bets[player], game.points(player)
            total = int(earned.sum())
            favourite = "" if player == YOU else f"{_label(tokenizer, bet.favourite)} {percent(bet.share, 0)}"
            gave = theme.Cell(percent(2.0**-bet.bits, 0), 2.0**-bet.bits)
            who = theme.Cell(name, kind=f"of-{player}")
            rows.append([who, theme.Cell(signed(total, 0), total), signed(earned[-1], 0, plus=True), gave, favourite])
    said = ""
    if game.over:
        words = f"{result(game)} {luck(game)}".strip()
        said = f'<p class="game-words" role="status">{html.escape(words)}</p>'
    came = _label(tokenizer, game.rounds[-1].token)
    possible = f"of {rules.POINTS * len(game.rounds)} points"
    return said + theme.table(("", possible, "this round", f"gave “{came}”", "favourite"), rows)


def _label(tokenizer: Tokenizer, token: int) -> str:
    return visible(tokenizer.token_text(token)) or "∅"
