"""Fine-tuning: what a model learned of its new text, what it forgot of its old one, and how its writing changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..data import Baselines
from ..studies.finetune import Measured, named_parts
from ..studies.scores import Score
from ..training.verdict import CERTAINTY
from .numbers import estimate
from .result import Result

INTERVAL = f"Each ± is a {CERTAINTY} % interval of the change, estimated from pieces of the text."
ORIGINS = {"run": "The run", "old": "Old text", "new": "New text"}
"""Where a prompt comes from, by its name in `Measured`."""
LACKING = "The model chose “\N{REPLACEMENT CHARACTER}”, its token for unknown characters."


def lacking_words(name: str, lacking: Sequence[str], kind: str) -> str:
    """Which characters or words of a new text a model has no token for; `kind` is its tokenizer's."""
    count, unit, named = len(lacking), "word" if kind == "word" else "character", named_parts(lacking)
    these = f"{count:,} {unit}s" if count > 1 else f"one {unit}"
    return f"“{name}” has no token for {these} of this text ({named}) and writes “\N{REPLACEMENT CHARACTER}” instead."


def needed_words(name: str, tokens: int, kind: str) -> str:
    """How long a text must be to train this model further; `kind` is its tokenizer's."""
    unit = "characters" if kind == "char" else "tokens"
    return f"To train “{name}” further, you need about {tokens:,} {unit} of text."


def tuning_result(before: Measured, after: Measured, baselines: Baselines | None = None) -> Result:
    """What training on another text changed, on text of both kinds that it did not learn from; the `baselines` of the
    old text, where they are known, say how much it forgot."""
    new, old = _change(before.new, after.new), before.old and _change(before.old, after.old)
    if new == 0 and not old:
        headline = "Nothing has changed."
    else:
        learned = {-1: "predicts the new text better", 0: "learned nothing new", 1: "predicts the new text worse"}
        much = _forgotten(before, after, baselines) if old == 1 else ""
        forgot = {-1: "predicts the old text better", 0: "forgot nothing measurable", 1: f"forgot {much} of the old"}
        headline = f"It {learned[new]}{'' if old is None else f' and {forgot[old]}'}."
        headline = "It predicts both texts better." if new == old == -1 else headline
    number = f"New text: {_losses(before.new, after.new)}."
    number += f"\nOld text: {_losses(before.old, after.old)}." if before.old else ""
    details = f"Both losses are in nats per token, on unseen text. {INTERVAL}"
    if not before.old:
        details = f"{details.replace('Both losses', 'Losses')} Its old text is missing, so forgetting was not measured."
    if any("\N{REPLACEMENT CHARACTER}" in text for text in after.samples):
        details += f" {LACKING}"
    return Result(headline, number, details)


def _forgotten(before: Measured, after: Measured, baselines: Baselines | None) -> str:
    """How much of its old text a model forgot that now predicts it worse."""
    ahead = baselines and baselines.ahead(after.old.loss)
    if not ahead or baselines.ahead(before.old.loss) == ahead:
        return "some"
    return "most" if baselines.passed(after.old.loss) in (None, "uniform") else "much"


def noted_result(tuning: dict[str, Any]) -> Result:
    """The same of a checkpoint's notes."""
    before, after = (Measured.from_dict(tuning[when]) for when in ("before", "after"))
    ladder = tuning.get("ladder")
    return tuning_result(before, after, Baselines.from_dict(ladder) if ladder else None)


def tuning_lines(tuning: dict[str, Any]) -> list[str]:
    """The same for a shell, with the prompts' continuations side by side."""
    before, after = (Measured.from_dict(tuning[when]) for when in ("before", "after"))
    lines = str(noted_result(tuning)).splitlines()
    for one, other in zip(before.samples, after.samples):
        lines += [f"  before | {_one_line(one)}", f"  after  | {_one_line(other)}"]
    return lines


def _change(before: Score, after: Score) -> int:
    """-1 where the loss clearly fell, 1 where it clearly rose, 0 where neither can be said."""
    difference, margin = after.loss_minus(before)
    return 0 if abs(difference) <= margin else -1 if difference < 0 else 1


def _losses(before: Score, after: Score) -> str:
    difference, margin = after.loss_minus(before)
    return f"loss {before.loss:.4f} → {after.loss:.4f} ({'+' * (difference > 0)}{estimate(difference, margin, 3)})"


def _one_line(text: str) -> str:
    return text.replace("\n", "⏎")
