"""A choice, opened again: a token's candidates, how its score became a probability, and other ways to continue."""

from __future__ import annotations

import html
import json
from typing import Any

import torch

from ....data import Tokenizer, visible
from ....data.byte_pairs import ByteTokenizer
from ....engine import ExplainedToken, SamplingConfig, explain
from ....engine.inference_model import inference_model
from ....engine.request import default_slide, window_start
from ....model import Transformer
from ....service.limits import Limits
from ....storage import Checkpoint
from ....words.numbers import listed, percent, signed
from ... import theme
from .kept import Beginning, rules_in_words

TABLE_ROWS, BARS = 12, 6
BEFORE = 24
"""How many characters are shown before the token."""
LEAST = 0.0005
"""The least share of all other tokens that is shown: 0.1 %."""
HOW = {
    "drawn": "{label} was sampled at",
    "greedy": "{label} is the likeliest, so it has",
    "chosen": "You chose {label}; these settings give it",
}
_SCALED = theme.Cell("after penalty, ÷ T", title="T is the temperature")
_HEAD = ("token", "score", "probability", _SCALED, "new probability", "sampled at")


def opened(checkpoint: Checkpoint, sent: Any, limits: Limits) -> tuple[str, str]:
    """The open token with its alternatives, and their scores as a table, as HTML. Raises ValueError for what no page
    sends."""
    text = Beginning.read(sent, limits, checkpoint)
    if not text.tokens:
        raise ValueError("There is no token to open. Tap one in the text")
    rows, token = rows_of(checkpoint, text), text.tokens[-1]
    chosen = next(row for row in rows if row.token == token)
    shown = rows[:BARS] if chosen in rows[:BARS] else [*rows[: BARS - 1], chosen]
    tokenizer = checkpoint.tokenizer
    label = html.escape(label_of(tokenizer, token))
    how = HOW["chosen" if text.chosen else "greedy" if text.rules.greedy else "drawn"]
    heading = f"<h2>{how.format(label=f'“<bdi>{label}</bdi>”')} {percent(chosen.probability)}</h2>"
    was, now = percent(chosen.raw_probability), percent(chosen.probability)
    raw = f"The model gave it {was}; {changed_by(text.rules)} made that {now}." if was != now else ""
    before = tokenizer.decode([*text.prompt, *text.tokens[:-1]])[-BEFORE:].replace("\n", "⏎")
    others = max(0.0, round(1 - sum(row.probability for row in shown), 6))
    bars = "".join(_bar(tokenizer, row, chosen=row is chosen) for row in shown)
    rest = f'<p class="alternative others"><span>others</span>{_track(others)}<span>{percent(others)}</span></p>'
    rest *= others >= LEAST
    table = theme.table(_HEAD, [_row(tokenizer, row, chosen=row is chosen) for row in rows], save="choice")
    return (
        f'{heading}<p class="num">{raw} <span class="quiet">After '
        f'<samp dir="auto">… {html.escape(before)}</samp></span></p>'
        f'<div class="alternatives" data-arrows>{bars}</div>{rest}<p class="quiet">Tap one to continue.</p>'
    ), table


def rows_of(checkpoint: Checkpoint, text: Beginning) -> list[ExplainedToken]:
    """The candidates for the last token of a text, including that token, the likeliest first."""
    logits, ids = scores_of(checkpoint.model, text)
    size = checkpoint.tokenizer.vocab_size
    found = explain(logits, ids, text.rules, rows=TABLE_ROWS, always=(text.tokens[-1],))
    return [row for row in found if row.token < size or row.token == text.tokens[-1]]


@torch.inference_mode()
def scores_of(model: Transformer, text: Beginning) -> tuple[torch.Tensor, torch.Tensor]:
    """The scores (V,) from which the last token was chosen, recomputed, and the ids (T,) before it."""
    ids, T = torch.tensor([*text.prompt, *text.tokens[:-1]]), model.config.context_length
    window = ids[window_start(len(text.prompt) + text.start, len(ids), T, default_slide(T)) :]
    return inference_model(model, text.precision).prefill(window[None])[0].float(), ids


def changed_by(rules: SamplingConfig) -> str:
    """The rules that change a model's probabilities, in words."""
    return "always taking the likeliest" if rules.greedy else listed(rules_in_words(rules) or ["the rules"])


def label_of(tokenizer: Tokenizer, token: int) -> str:
    """A token's text; of a byte-level tokenizer's that is not a whole character, its bytes in hexadecimal."""
    if token >= tokenizer.vocab_size:
        return f"#{token}"
    text = tokenizer.token_text(token)
    if "\N{REPLACEMENT CHARACTER}" in text and isinstance(tokenizer, ByteTokenizer):
        return tokenizer.token_bytes(token).hex(" ").upper()
    return visible(text)


def _bar(tokenizer: Tokenizer, row: ExplainedToken, *, chosen: bool) -> str:
    label, said = html.escape(label_of(tokenizer, row.token)), _chance(row)
    more = html.escape(json.dumps({"id": row.token, "chance": float(f"{row.raw_probability:.5g}")}), quote=True)
    return (
        f'<button type="button" class="alternative{" chosen" * chosen}" data-instead="{more}" '
        f'tabindex="{0 if chosen else -1}" aria-label="Continue with {label}, {said}">'
        f"<b><bdi>{label}</bdi></b>{_track(row.probability)}<span>{said}</span></button>"
    )


def _chance(row: ExplainedToken) -> str:
    """The probability with which a candidate was sampled, or why it could not be."""
    if row.removed_by == "greedy":
        return "not the likeliest"
    return f"cut off by {row.removed_by}" if row.removed_by else percent(row.probability)


def _track(share: float) -> str:
    """A bar on a scale from 0 to 100 %."""
    return f'<span class="track"><i style="width:{100 * share:.2f}%"></i></span>'


def _row(tokenizer: Tokenizer, row: ExplainedToken, *, chosen: bool) -> list[Any]:
    label = label_of(tokenizer, row.token)
    numbers = (
        theme.Cell(signed(row.logit), row.logit),
        theme.Cell(percent(row.raw_probability), row.raw_probability),
        theme.Cell(signed(row.score), row.score),
        theme.Cell(percent(row.tempered_probability), row.tempered_probability),
        theme.Cell(_chance(row), row.probability),
    )
    return [theme.Cell(label, kind="chosen" if chosen else ""), *numbers]
