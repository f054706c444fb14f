"""Guess the next letter: the visitor bets on what comes next in a text that the model has not seen either."""

from __future__ import annotations

import html
from typing import Any

import gradio as gr

from ....data import Tokenizer, visible
from ....figures.game import bits_curve, describe_bits
from ....inspection.game import CHIPS, SPREAD, Bet
from ....service.game import Games, Position
from ....service.limits import TYPED
from ....storage import Checkpoint
from ....words.game import ENOUGH, PLAYERS, game_summary
from ....words.numbers import percent
from ... import theme
from ...chart import ASSETS, Chart, show
from ...page import QUIETLY, Page
from ...quoted import model_facts, quoted
from ...refusals import sentence
from .writing import NO_MASK

TITLE = "Guess the next letter: you, your model, and what is possible"

_RULES = f"""
A bet gives every token a probability. When the token has come, it costs **−log₂** of what it had been given, in *bits*:
nothing for a certainty, 1 bit for a half, 2 for a quarter. Nobody does better on this score than by betting what they
believe.

- **One choice** counts as much as your choices have come true so far: a half at first, after r right ones of n
  (r + ½) / (n + 1). The other tokens share the rest evenly.
- **{CHIPS} chips**: those on a token are its per cent. Those that you keep, and always {SPREAD}, lie evenly on all
  tokens, so that nothing can cost infinitely much. Placing none is a bet, too: no idea.

You and the model read the same text, the model no more than its last tokens, as many as its context holds. The
*bigram* knows only what came how often after the last token. The *floor*, on a language of ours, is what those bets
cost that know its grammar and read what the model reads.
"""

_TEMPLATE = """<div class="bet"><p class="bet-text" aria-live="polite"></p><div class="bet-desk" hidden>
<fieldset class="bet-how"><legend>How to bet</legend>
<label><input type="radio" name="bet-how" value="choice" checked> One choice</label>
<label><input type="radio" name="bet-how" value="chips"> CHIPS chips</label></fieldset>
<div class="bet-tokens" role="group" aria-label="Tokens to bet on"></div><p class="bet-listed quiet-line"></p>
<label class="bet-typed">Or type it <input type="text" autocomplete="off" autocapitalize="off" spellcheck="false"
maxlength="LONGEST" aria-describedby="bet-state"></label>
<div class="bet-stakes" role="group" aria-label="Your chips"></div>
<div class="bet-go"><button type="button" class="bet-button">Bet</button>
<p id="bet-state" class="bet-state quiet-line"></p></div></div></div>"""


def build(page: Page, fold: gr.Accordion) -> None:
    """The board with its bets, what each has cost, the curve; nothing is worked out before the fold is opened."""
    games = Games()
    page.share("generate.games", games)
    template = _TEMPLATE.replace("CHIPS", str(CHIPS)).replace("LONGEST", str(TYPED))
    script = (ASSETS / "game.js").read_text(encoding="utf-8")
    with gr.Row(equal_height=False):
        with gr.Column(scale=3, min_width=300):
            note = gr.HTML(padding=False, elem_id="game-note")
            board = gr.HTML(
                None, html_template=template, js_on_load=script, apply_default_css=False, elem_id="game-board"
            )
            with gr.Row():
                another = gr.Button("Another text", size="sm", scale=0, min_width=120, elem_id="game-another")
        with gr.Column(scale=2, min_width=300):
            result = gr.HTML(padding=False, elem_id="game-result")
            chart = Chart(height=240, save_name="bits", elem_id="game-chart")
            summary = gr.HTML(padding=False, elem_id="game-summary")
    with gr.Accordion("How bets are scored", open=False):
        gr.Markdown(_RULES)
    opened = gr.Textbox("", visible=False)
    outputs = [note, board, result, chart, summary]

    def seen(visitor: str, model_id: str, act: str, sent: Any = None) -> dict:
        try:
            checkpoint = page.registry.get(model_id, visitor)
            about = page.known(visitor), model_id, checkpoint, page.board.source_of(checkpoint)
            position = games.bet(*about, sent) if act == "bet" else games.open(*about, anew=act == "another")
        except ValueError as problem:
            said = sentence(str(problem))
            if act == "bet":  # the board, and what lies on it, stay
                return {board: {"refused": said, "bet": sent.get("sent") if isinstance(sent, dict) else None}}
            return {note: theme.notice(said, "error"), board: None, result: "", chart: None, summary: ""}
        known = model_facts(page.registry, visitor, model_id)
        return quoted(_shown(position, checkpoint), **known)

    def _shown(position: Position, checkpoint: Checkpoint) -> dict:
        game, tokenizer = position.game, checkpoint.tokenizer
        bits = {player: game.bits(player) for player in PLAYERS if player in game.players}
        kind = "moe" if checkpoint.config.n_experts else "dense"
        notes = [theme.quiet(f"What comes next in a text that is new to the model: {position.words}.")]
        notes += [theme.notice(said, "warning") for said in (position.warning, _mask(checkpoint)) if said]
        return {
            note: "".join(notes),
            board: board_value(position),
            result: result_table(position, tokenizer),
            chart: show(bits_curve(bits, kind=kind), describe_bits(bits)) if bits else None,
            summary: _summary(position),
        }

    def begin(visitor, model_id):
        # a fold that was opened before the page knew its visitor is filled by `follow`
        return seen(visitor, model_id, "open") if visitor else gr.skip()

    def begin_again(visitor, model_id):
        return seen(visitor, model_id, "another")

    def settle(visitor, model_id, event: gr.EventData):
        return seen(visitor, model_id, "bet", event._data)

    def follow(visitor, model_id, is_open):
        return seen(visitor, model_id, "open") if is_open else gr.skip()

    asked = [page.visitor, page.model]
    # first, so that whoever asks next whether it is open is told so
    fold.expand(None, None, opened, js="() => 'open'", api_visibility="private")
    fold.expand(begin, asked, outputs, **QUIETLY)
    fold.collapse(None, None, opened, js="() => ''", api_visibility="private")
    another.click(begin_again, asked, outputs, **QUIETLY)
    board.bet(settle, asked, outputs, **QUIETLY)
    page.on_load(follow, [*asked, opened], outputs)
    page.model.change(follow, [*asked, opened], outputs, **QUIETLY)


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
        return theme.quiet("What comes, and what it costs you and the others, is told here after your first bet.")
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


def _mask(checkpoint: Checkpoint) -> str:
    return "" if checkpoint.config.causal else NO_MASK


def _label(tokenizer: Tokenizer, token: int) -> str:
    return visible(tokenizer.token_text(token)) or "∅"
