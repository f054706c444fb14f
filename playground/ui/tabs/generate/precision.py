"""What precision costs: the model in fp32, bf16 and int8, side by side, and one weight's way to a level and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....figures.precision import level_counts
from ....inspection.precision import InPrecision, PrecisionCost
from ....service.precision import measured, seen
from ....storage import Checkpoint
from ....words.numbers import bytes_text, signed
from ....words.precision import above_fp32, describe_level_counts, precision_summary
from ....words.verdict import loss_in_words
from ... import theme
from ...chart import chart_place, show
from ...page import Page
from ...panel import Slot, move_button, slot
from .selection import Selection

TEMPLATE = f"""<div class="card"><h3>Precision</h3>
<p class="quiet">Weights in 32 bits (fp32), rounded to 16 (bf16), or to one of 255 levels per row (int8).</p>
{move_button("Measure this model in all three", {"bits": True}, kind="ghost measure-precision")}
<div data-if="bits">{slot("bits-said")}{slot("bits-table")}{chart_place("bits-levels", height=260, save_name="levels")}
{slot("bits-receipt")}</div></div>"""
_HEAD = ("", "weights", "tokens/s", "loss (nats per token)", "above fp32", "greedy text differs at")


def slots(page: Page, checkpoint: Checkpoint, chosen: Selection) -> dict[str, Slot]:
    """A sentence, a table, the histogram and the receipt, if they were requested."""
    if not chosen.bits:
        return {}

    def found() -> tuple[PrecisionCost, str]:
        return measured(page.board.source_of(checkpoint), checkpoint, page.limits.new_tokens)

    def table() -> str:
        cost, words = found()
        return _table(cost, words, checkpoint.tokenizer.decode(list(cost.prompt)).replace("\n", " ⏎ "))

    def levels() -> dict[str, Any] | None:
        matrix = found()[0].matrix
        about = describe_level_counts(matrix.name, matrix.shape, matrix.middle_half)
        return show(level_counts(matrix.counts, matrix.worst.level), about[:1].upper() + about[1:])

    makes = {
        "bits-said": lambda: theme.notice(precision_summary(found()[0])),
        "bits-table": table,
        "bits-levels": levels,
        "bits-receipt": lambda: _receipt(found()[0]),
    }
    about, slow = (chosen.model, checkpoint.history.last_step), seen(checkpoint) is None
    return {name: Slot(about, make, slow, echoes=name != "bits-said") for name, make in makes.items()}


def _table(cost: PrecisionCost, words: str, prompt: str) -> str:
    rows = [_row(way, cost.written) for way in cost.ways]
    by = f"Measured on {cost.tokens:,} tokens, {words}. ± is a 95 % interval. "
    by += f"The greedy text, {cost.written} tokens, continues “{prompt}”."
    return theme.table(_HEAD, rows, save="precision") + theme.quiet(by)


def _row(way: InPrecision, written: int) -> list[Any]:
    if way.parts_at is not None:
        parts = theme.Cell(f"token {way.parts_at + 1}", way.parts_at + 1)
    else:
        parts = theme.Cell("–" if way.name == "fp32" else f"nowhere in {written} tokens")
    return [
        way.name,
        theme.Cell(bytes_text(way.nbytes), way.nbytes),
        theme.Cell(f"{way.tokens_per_second:,.0f}", way.tokens_per_second),
        theme.Cell(loss_in_words(way.loss, way.margin), way.loss),
        "–" if way.name == "fp32" else theme.Cell(above_fp32(way), way.more),
        parts,
    ]


def _receipt(cost: PrecisionCost) -> str:
    one = cost.matrix.worst
    rows = [
        ("the weight, in fp32", _exact(one.value)),
        ("the largest of its row", _exact(one.largest)),
        ("the row's scale: that ÷ 127", _exact(one.scale)),
        ("weight ÷ scale", signed(one.value / one.scale, 4)),
        ("its level: rounded", signed(one.level, 0)),
        ("decoded: level · scale", _exact(one.back)),
        ("off by", f"{abs(one.back - one.value):.3g}, {abs(one.back - one.value) / one.scale:.2f} of a level"),
        ("decoded from bf16", _exact(one.back_bf16)),
    ]
    which = f"Row {one.row}, column {one.column} of {cost.matrix.name}: the weight with the largest error."
    return theme.heading("The receipt of one number", which) + theme.table((), rows, save="precision-receipt")


def _exact(number: float) -> str:
    """An fp32 number in the fewest digits that identify it."""
    return str(np.float32(number)).replace("-", "−", 1) if number < 0 else str(np.float32(number))
