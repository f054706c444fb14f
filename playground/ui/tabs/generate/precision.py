"""What precision costs: the model in fp32, bf16 and int8, side by side, and one weight's way to a level and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr
import numpy as np

from ....figures.precision import level_counts
from ....inspection.precision import InPrecision, PrecisionCost
from ....service.precision import measured, seen
from ....words.numbers import bytes_text, signed
from ....words.precision import above_fp32, describe_level_counts, precision_summary
from ....words.verdict import loss_in_words
from ... import theme
from ...chart import Chart, show
from ...page import UNSEEN, Page
from ...quoted import model_facts, quoted
from ...refusals import sentence

WHY = """
A weight is held as 32 bits (**fp32**), rounded to 16 (**bf16**: the same range, 8 binary digits in place of 24), or
rounded to a whole number from −127 to 127 with one scale for its whole row (**int8**). A token's way through a large
model takes as long as reading the weights from memory, so fewer bytes mean more tokens a second; small matrices stay in
the processor's caches, and are rounded but multiplied in fp32. The model itself is left as it is.
"""
_HEAD = (
    "",
    "weights",
    "tokens/s",
    "loss (nats a token)",
    "above fp32",
    "scores off by at most",
    "greedy text parts at",
)
_WAITING = "() => ['<p class=\"quiet-line\" role=\"status\">Waiting for its turn …</p>', '', null, '']"


def build(page: Page) -> None:
    """A button; then a sentence, a table, the histogram and the receipt."""
    gr.Markdown(WHY)
    start = gr.Button("Measure this model in all three", elem_id="measure-precision")
    said = gr.HTML(padding=False, elem_id="precision-said")
    table = gr.HTML(padding=False, elem_id="precision-table")
    levels = Chart(height=260, save_name="levels", elem_id="precision-levels")
    receipt = gr.HTML(padding=False, elem_id="precision-receipt")
    shown = [said, table, levels, receipt]

    def measure(visitor: Any, model_id: Any) -> Iterator[tuple]:
        try:
            checkpoint = page.registry.get(model_id, visitor)
            if seen(checkpoint) is None:
                yield theme.quiet("Measuring: three times the same text, then a text from each …"), "", None, ""
            cost, words = measured(page.board.source_of(checkpoint), checkpoint, page.limits.new_tokens)
        except ValueError as problem:
            yield theme.notice(sentence(str(problem)), "error"), "", None, ""
            return
        matrix = cost.matrix
        about = describe_level_counts(matrix.name, matrix.shape, matrix.counts, matrix.middle_half)
        answer = (
            theme.notice(precision_summary(cost)),
            _table(cost, words, checkpoint.tokenizer.decode(list(cost.prompt)).replace("\n", " ⏎ ")),
            show(level_counts(matrix.counts, matrix.worst.level), about[:1].upper() + about[1:]),
            _receipt(cost),
        )
        yield quoted(answer, **model_facts(page.registry, visitor, model_id))

    start.click(None, None, shown, js=_WAITING, api_visibility="private")
    start.click(measure, [page.visitor, page.model], shown, **UNSEEN)
    # what was measured with another model does not stay under this one's name
    page.model.change(None, None, shown, js="() => ['', '', null, '']", api_visibility="private")


def _table(cost: PrecisionCost, words: str, prompt: str) -> str:
    rows = [_row(way, cost.written) for way in cost.ways]
    by = f"Judged by {cost.tokens:,} tokens, {words}. ± is a 95 % interval. "
    by += f"The greedy text, {cost.written} tokens, goes on from “{prompt}”."
    return theme.table(_HEAD, rows, save="precision") + theme.quiet(by)


def _row(way: InPrecision, written: int) -> list[Any]:
    if way.parts_at is not None:
        parts = theme.Cell(f"token {way.parts_at + 1}", way.parts_at + 1)
    else:
        parts = theme.Cell("–" if way.name == "fp32" else f"not in {written} tokens")
    return [
        way.name,
        theme.Cell(bytes_text(way.nbytes), way.nbytes),
        theme.Cell(f"{way.tokens_per_second:,.0f}", way.tokens_per_second),
        theme.Cell(loss_in_words(way.loss, way.margin), way.loss),
        "–" if way.name == "fp32" else theme.Cell(above_fp32(way), way.more),
        theme.Cell(f"{way.logit_difference:.3g}", way.logit_difference),
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
        ("what comes back: level · scale", _exact(one.back)),
        ("off by", f"{abs(one.back - one.value):.3g}, {abs(one.back - one.value) / one.scale:.2f} of a level"),
        ("what comes back from bf16", _exact(one.back_bf16)),
    ]
    which = f"Row {one.row}, column {one.column} of {cost.matrix.name}: of all its weights the one furthest off."
    return theme.heading("The receipt of one number", which) + theme.table((), rows, save="precision-receipt")


def _exact(number: float) -> str:
    """In the digits that an fp32 number has: the fewest that mean it."""
    return str(np.float32(number)).replace("-", "−", 1) if number < 0 else str(np.float32(number))
