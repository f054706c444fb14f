"""Guess the next letter: the visitor bets on what comes next in a text."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from ....data import Tokenizer, visible
from ....figures.courses import bits_curve
from ....game import rules
from ....game.rules import SURE, YOU, stakes
from ....service.game import Games, Position
from ....service.limits import TYPED
from ....service.runs import Source
from ....storage import Checkpoint
from ....words.game import PLAYERS, luck, result
from ....words.numbers import percent, signed
from ....words.pictures import bits_words
from ... import theme
from ...chart import chart_place, show
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
<details><summary>Details</summary>{chart_place("game-chart", height=220, save_name="bits")}{slot("game-bits")}{_RULES}
</details></div><div class="card">{slot("game-result")}{slot("game-summary")}</div></div>"""


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
            "game-chart": lambda position: _curve(position, checkpoint),
            "game-bits": lambda position: all_bets(position, tokenizer),
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


def _curve(position: Position, checkpoint: Checkpoint) -> dict[str, Any] | None:
    game = position.game
    bits = {player: game.bits(player) for player in PLAYERS if player in game.players}
    kind = "moe" if checkpoint.config.n_experts else "dense"
    return show(bits_curve(bits, kind=kind), bits_words(bits)) if bits else None


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
        words = " ".join(filter(None, (result(game, lambda n: _word(position, tokenizer, n)), luck(game))))
        said = f'<p class="game-words" role="status">{html.escape(words)}</p>'
    came = _label(tokenizer, game.rounds[-1].token)
    possible = f"of {rules.POINTS * len(game.rounds)} points"
    return said + theme.table(("", possible, "this round", f"gave “{came}”", "favourite"), rows)


def all_bets(position: Position, tokenizer: Tokenizer) -> str:
    """All bits for this text so far, from which the points can be recomputed."""
    game, rows = position.game, []
    players = [player for player in PLAYERS if player in game.players]
    for n, each in enumerate(game.rounds, start=1):
        bits = [each.bets[player].bits for player in players]
        rows.append([n, _label(tokenizer, each.token), *(theme.Cell(f"{cost:.2f}", cost) for cost in bits)])
    if not rows:
        return ""
    head = ("bet", "came", *(f"{PLAYERS[player]}, bits" for player in players))
    return theme.table(head, rows, save="bets")


def _word(position: Position, tokenizer: Tokenizer, n: int) -> str:
    """The word that holds a round's token, or the token itself if it is in none."""
    game, at = position.game, position.game.passage.places[n][1]
    texts = [tokenizer.token_text(token) for token in game.passage.ids]
    if not texts[at].strip().isalpha() or tokenizer.kind == "word":
        return _label(tokenizer, game.passage.ids[at])
    start, end = at, at + 1
    while start > 0 and texts[start - 1].isalpha() and not texts[start][:1].isspace():
        start -= 1
    while end < len(texts) and texts[end].isalpha():
        end += 1
    return "".join(texts[start:end]).strip()


def _label(tokenizer: Tokenizer, token: int) -> str:
    return visible(tokenizer.token_text(token)) or "∅"
