"""Guess the next letter: the visitor bets on what comes next in a text that the model has not seen either."""

from __future__ import annotations

import html
from typing import Any

from ....data import Tokenizer, visible
from ....figures.game import bits_curve, describe_bits
from ....inspection.game import CHIPS, SPREAD, Bet
from ....service.game import Games, Position
from ....service.limits import TYPED
from ....storage import Checkpoint
from ....words.game import ENOUGH, PLAYERS, game_summary
from ....words.numbers import percent
from ... import theme
from ...chart import chart_place, show
from ...page import Page
from ...panel import Asked, Slot, slot
from .selection import Selection
from .writing import no_mask

TITLE = "Play: guess the next letter"

_RULES = f"""<p>A bet gives every token a probability. When the token has come, it costs <b>−log₂</b> of what it was
given, in <i>bits</i>: nothing for a certainty, 1 bit for a half, 2 for a quarter. Betting what you believe is best.</p>
<ul><li><b>One choice</b> counts as much as your choices have come true so far: a half at first, after r right ones of n
(r + ½) / (n + 1). The other tokens share the rest evenly.</li>
<li><b>{CHIPS} chips</b>: those on a token are its per cent. Those that you keep, and always {SPREAD}, lie evenly on all
tokens, so that nothing can cost infinitely much. Placing none is a bet, too: no idea.</li></ul>
<p>You and the model read the same text, the model no more than its last tokens, as many as its context holds. The
<i>bigram</i> knows only how often each token came after the last one. The <i>floor</i>, on a language of ours, is what
those bets cost that know its grammar and read what the model reads.</p>"""

_BOARD = """<div class="bet"><p class="bet-text" aria-live="polite"></p><div class="bet-desk" hidden>
<fieldset class="bet-how"><legend>How to bet</legend>
<label><input type="radio" name="bet-how" value="choice" checked> One choice</label>
<label><input type="radio" name="bet-how" value="chips"> CHIPS chips</label></fieldset>
<div class="bet-tokens" role="group" aria-label="Tokens to bet on"></div><p class="bet-listed quiet-line"></p>
<label class="bet-typed">Or type it <input type="text" autocomplete="off" autocapitalize="off" spellcheck="false"
maxlength="LONGEST" aria-describedby="bet-state"></label>
<div class="bet-stakes" role="group" aria-label="Your chips"></div>
<div class="bet-go"><button type="button" class="bet-button">Bet</button>
<p id="bet-state" class="bet-state quiet-line"></p></div></div></div>"""

TEMPLATE = f"""<div class="two"><div class="card">{slot("game-note")}
<div data-slot="game-board" data-own>{_BOARD.replace("CHIPS", str(CHIPS)).replace("LONGEST", str(TYPED))}</div>
<button type="button" class="ghost" data-do="another-text">Another text</button></div>
<div class="card">{slot("game-result")}{chart_place("game-chart", height=240, save_name="bits")}{slot("game-summary")}
</div></div><details><summary>How bets are scored</summary>{_RULES}</details>"""


class Game:
    """The games of this page."""

    def __init__(self, page: Page):
        self._page, self.games = page, Games()
        page.share("generate.games", self.games)
        page.panels.act("bet", self.bet)
        page.panels.act("another-text", lambda asked: self._position(asked, anew=True) and None)

    def bet(self, asked: Asked) -> dict[str, Any]:
        """Settle a bet. Raises ValueError where it is none."""
        chosen = Selection.read(asked.selection)
        checkpoint = self._page.registry.get(chosen.model, asked.visitor)
        source = self._page.board.source_of(checkpoint)
        self.games.bet(asked.visitor, chosen.model, checkpoint, source, asked.selection.get("bet"))
        return {}

    def _position(self, asked: Asked, *, anew: bool = False) -> Position:
        chosen = Selection.read(asked.selection)
        checkpoint = self._page.registry.get(chosen.model, asked.visitor)
        source = self._page.board.source_of(checkpoint)
        return self.games.open(asked.visitor, chosen.model, checkpoint, source, anew=anew)

    def slots(self, asked: Asked, checkpoint: Checkpoint, chosen: Selection) -> dict[str, Slot]:
        """The game, where its fold is open; its first text is looked for when the rest of the panel is there."""
        if not chosen.game:
            return {}
        mark = self.games.mark(asked.visitor, chosen.model)

        def made(show: Any) -> Any:
            return lambda: show(self._position(asked))

        def none_without(show: Any, nothing: Any) -> Any:
            """Why there is no game is said once."""

            def make() -> Any:
                try:
                    position = self._position(asked)
                except ValueError:
                    return nothing
                return show(position)

            return make

        makes = {
            "game-note": made(lambda position: _note(position, checkpoint)),
            "game-board": none_without(board_value, None),
            "game-result": none_without(lambda position: result_table(position, checkpoint.tokenizer), ""),
            "game-chart": none_without(lambda position: _curve(position, checkpoint), None),
            "game-summary": none_without(_summary, ""),
        }
        return {name: Slot((chosen.model, mark), make, slow=mark is None) for name, make in makes.items()}


def _note(position: Position, checkpoint: Checkpoint) -> str:
    notes = [theme.quiet(f"What comes next in a text that is new to the model: {position.words}.")]
    notes += [theme.notice(said, "warning") for said in (position.warning, no_mask(checkpoint)) if said]
    return "".join(notes)


def _curve(position: Position, checkpoint: Checkpoint) -> dict[str, Any] | None:
    game = position.game
    bits = {player: game.bits(player) for player in PLAYERS if player in game.players}
    kind = "moe" if checkpoint.config.n_experts else "dense"
    return show(bits_curve(bits, kind=kind), describe_bits(bits)) if bits else None


def board_value(position: Position) -> dict[str, Any]:
    """What the browser is told: the text so far and what can be bet on, never what comes next."""
    game = position.game
    return {
        "game": position.name,
        "round": len(game.rounds),
        "of": len(game.passage.places),
        "shown": position.shown,
        "candidates": [list(each) for each in position.candidates],
        "all": position.all_listed,
        "trust": round(game.trust, 4),
        "most": CHIPS - SPREAD,
        "over": game.over,
    }


def result_table(position: Position, tokenizer: Tokenizer) -> str:
    """What came last, and what it has cost whom; folded below, what every bet has."""
    game = position.game
    if not game.rounds:
        return theme.quiet("After your first bet: what came, and what it cost you and the others.")
    latest, rows = game.rounds[-1], []
    for player, name in PLAYERS.items():
        if player not in latest.bets:
            continue
        bet = latest.bets[player]
        favourite = _favourite(bet, game.vocab_size, tokenizer)
        mean = float(game.bits(player).mean())
        rows.append([name, percent(2.0**-bet.bits), f"{bet.bits:.2f}", favourite, f"{mean:.2f}"])
    came = {True: "you chose it", False: "you chose another"}.get(latest.right, "")
    heading = theme.heading(f"“{_label(tokenizer, latest.token)}” came{f': {came}' if came else ''}")
    head = ("", "gave it", "bits", "favourite", "bits per token so far")
    return f"{heading}{theme.table(head, rows)}{_all_bets(position, tokenizer)}"


def _favourite(bet: Bet, vocab_size: int, tokenizer: Tokenizer) -> str:
    if bet.alike == vocab_size:
        return "all alike"
    if bet.alike > 1:  # as all others, where a choice of one counts for less than they share
        return f"{bet.alike:,} tokens, {percent(bet.share)} each"
    return f"{_label(tokenizer, bet.favourite)} {percent(bet.share)}"


def _all_bets(position: Position, tokenizer: Tokenizer) -> str:
    """All bits of this text so far, from which the comparison below can be made again."""
    rounds, players = position.game.rounds, [player for player in PLAYERS if player in position.game.players]
    rows = []
    for n, each in enumerate(rounds, start=1):
        bits = [each.bets[player].bits for player in players]
        rows.append([n, _label(tokenizer, each.token), *(theme.Cell(f"{cost:.2f}", cost) for cost in bits)])
    head = ("bet", "came", *(f"{PLAYERS[player]}, bits" for player in players))
    told = f"All {len(rounds)} bets, in bits" if len(rounds) > 1 else "This bet, in bits"
    return f'<details class="more-columns"><summary>{told}</summary>{theme.table(head, rows, save="bets")}</details>'


def _summary(position: Position) -> str:
    game = position.game
    said = game_summary(game)
    if not said:
        left = ENOUGH - len(game.rounds)
        return theme.quiet(f"{left} more bet{'s' if left > 1 else ''} until a first comparison.")
    ended = "The text has ended: Another text goes on. " if game.over else ""
    return f'<p class="game-words" role="status">{html.escape(ended + said)}</p>'


def _label(tokenizer: Tokenizer, token: int) -> str:
    return visible(tokenizer.token_text(token)) or "∅"
