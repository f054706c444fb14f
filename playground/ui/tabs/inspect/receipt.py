"""The receipt of one cell: q · k term by term, ÷ √D, mask, exp, share, × v, through W_o."""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np

from ....figures.bars import signed_bars
from ....figures.shapes import FIXED, axis
from ....inspection import Look
from ....inspection.receipts import Receipt, receipt
from ....words.heads import weight_words
from ....words.inspect import receipt_proof
from ....words.numbers import signed
from ... import theme
from ...chart import chart_place, show
from ...panel import Slot, move_button, slot
from .selection import At

_CLOSE = move_button("×", {"why": False}, kind="link close", aria_label="Close")
TEMPLATE = f"""<div class="card" data-if="why"><div class="line"><h3 class="grow">Why this weight?</h3>{_CLOSE}</div>
{slot("receipt-why", tag="p", class_="num")}
{chart_place("receipt-products", height=150, save_name="products", toolbar=False)}
{slot("receipt", class_="receipt-paper")}</div>"""


def slots(at: At) -> dict[str, Slot]:
    """The receipt of the chosen cell, where it is open."""
    if not at.chosen.why:
        return {}
    c = at.chosen
    about = (*at.about, c.layer, c.head, c.query, c.key)

    def made() -> Receipt:
        return receipt(at.look, c.layer, c.head, c.query, c.key)

    return {
        "receipt-why": Slot(about, lambda: html.escape(weight_words(made(), at.look.tokens))),
        "receipt-products": Slot(about, lambda: products_picture(made())),
        "receipt": Slot(about, lambda: receipt_html(made(), at.look)),
    }


def products_picture(r: Receipt) -> dict[str, Any] | None:
    """Bars of the products that sum to q · k, one per number."""
    along = axis("number of the vector", nticks=9, automargin=False, **FIXED)
    return show(signed_bars(r.products, along, "q × k", 150), "")


def receipt_html(r: Receipt, look: Look) -> str:
    """The receipt as HTML; tokens are escaped."""
    query = html.escape(f"{r.query} {look.tokens[r.query]}")
    title = f"Head {r.layer}.{r.head}: “{r.query} {look.tokens[r.query]}” attends to “{r.key} {look.tokens[r.key]}”"
    lines = [
        ("the products above, added up (<b class=q>q</b> · <b class=k>k</b>)", _row(r.dot)),
        (f"divided by √{len(r.q)} = {_row(math.sqrt(len(r.q)))}: the <b class=s>score</b>", _score(r.score)),
    ]
    if r.visible:
        more = [
            ("mask: this key is the query itself or comes before it", "visible") if look.config.causal
            else ("mask: this model has none", "visible"),
            (f"exp(score − the row's largest, {_score(r.row_maximum)})", _row(r.exponential)),
            (f"divided by {_row(r.exponential_sum)}, the row's sum: the <b class=s>weight</b>", _row(r.weight)),
        ]  # fmt: skip
    else:
        more = [("mask: this key comes after the query, so its score becomes −∞ and its weight 0", "hidden")]
    seen = r.query + 1 if look.config.causal else look.length
    value = [
        ("length of the <b class=v>value</b> times the weight", _row(np.linalg.norm(r.part))),
        (f"length of the sum over {seen} visible token{'s' * (seen > 1)}", _row(np.linalg.norm(r.z))),
        (
            f"length of the vector that this cell adds to “{query}” (through the output matrix)",
            _row(np.linalg.norm(r.part_out)),
        ),
    ]
    worst = max(r.differences, key=r.differences.__getitem__)
    sums, to_value = (
        theme.table((), [(theme.Cell(html=what), theme.Cell(html=value)) for what, value in rows])
        for rows in (lines + more, value)
    )
    proof = receipt_proof(r.largest_difference, worst, 8 * look.trace["attn_in", r.layer].element_size())
    return (
        f"{theme.heading(title)}"
        f'<div class="receipt">{sums}'
        f"<details><summary>From weight to value</summary>{to_value}"
        f'<div class="receipt-proof">{theme.notice(proof, "good")}</div>'
        f"</details><details><summary>All {len(r.q)} numbers</summary>"
        f'<div class="receipt-terms">{_terms(r)}</div></details></div>'
    )


def _terms(r: Receipt) -> str:
    turned = r.q_unturned is not None
    heads = ["number", *(["q", "q turned", "k", "k turned"] if turned else ["q", "k"]), "q · k", "v", "weight × v", "z"]
    columns: list[np.ndarray] = [r.q_unturned, r.q, r.k_unturned, r.k] if turned else [r.q, r.k]
    columns += [r.products, r.v, r.part, r.z]
    body = [(i, *(theme.Cell(_full(column[i]), column[i]) for column in columns)) for i in range(len(r.q))]
    return theme.table([theme.Cell(name, kind=_role(name)) for name in heads], body, save="receipt")


def _role(column: str) -> str:
    """Which of the four roles a column belongs to."""
    return {"q · k": "s", "weight × v": "v", "number": ""}.get(column, column[0])


def _score(value: float) -> str:
    # a lesson covers it until it was worked out by hand, and the row's largest, which may be the same
    return f'<span class="receipt-score">{_row(value)}</span>'


def _row(value: float) -> str:
    """A number of a row as HTML: four decimals, and all eight on hover."""
    return f'<span title="{_full(value)}">{signed(value, 4)}</span>'


def _full(value: float) -> str:
    return signed(value, 8)
