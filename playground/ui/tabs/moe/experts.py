"""What did the experts learn: the tokens that each favours, and whether random routers sort the text as well."""

from __future__ import annotations

import html

import numpy as np

from ....data import visible
from ....inspection.favourites import Lift, favourites, own_kind, sorting
from ....inspection.routing import expert_layers, routing_of
from ....storage import Checkpoint
from ....words.experts import specialised_result
from ....words.numbers import percent
from ...panel import Slot, choice, slot
from ...theme import Cell, result, table
from .selection import At
from .texts import text_for

TITLE = "What did the experts learn?"
MOST = 6

TEMPLATE = f"""<div class="stack">{slot("experts-note")}
<div class="line">{slot("experts-layers")}</div>{slot("favourites", class_="stack")}</div>"""


def slots(at: At) -> dict[str, Slot]:
    """All slots of this fold."""
    checkpoint, layer = at.mixture, at.chosen.layer
    names = {str(each): str(each) for each in expert_layers(checkpoint.config)}
    return {
        "experts-layers": Slot((names, layer), lambda: choice("layer", "Layer", names, str(layer))),
        "favourites": Slot((*at.about, layer), lambda: favourites_of(at, checkpoint, layer), slow=True),
    }


def favourites_of(at: At, checkpoint: Checkpoint, layer: int) -> str:
    """Whether the experts of one layer specialised, and a table of their favourite tokens, as HTML.

    Raises ValueError if there is no text, or too little.
    """
    windows, what = text_for(at.page, checkpoint)
    ids = windows[:, :-1]
    routing, tokens = routing_of(checkpoint.model, ids), ids.flatten().numpy()
    E = routing.n_experts
    first = routing.experts[routing.layers.index(layer), ..., 0].flatten().numpy()  # (N,)
    visits, found = np.bincount(first, minlength=E), favourites(first, tokens, E)
    kind = own_kind(found, visits.tolist())
    shown = kind and (kind[0], [visible(checkpoint.tokenizer.token_text(lift.token)) for lift in kind[1]])
    rows = [
        (
            str(expert),
            Cell(html=_favourites(checkpoint, found[expert]), kind="words"),
            Cell(f"{100 * share:.0f} %", share),
        )
        for expert, share in enumerate((visits / len(tokens)).tolist())
    ]
    head = ("expert", Cell("favourite tokens", kind="words"), "share of tokens")
    judged = f"{len(tokens):,} tokens of {what}"
    found_out = specialised_result(sorting(checkpoint.model, ids, layer, first), shown, judged)
    return result(found_out, table(head, rows, save="favourite-tokens"))


def _favourites(checkpoint: Checkpoint, found: list[Lift]) -> str:
    words = "".join(
        f'<span class="chip" title="{f.taken:,} of {f.count:,} go to this expert: '
        f'{f.lift:.1f} times as often as an average token">'
        f"<code>{html.escape(visible(checkpoint.tokenizer.token_text(f.token)))}</code>"
        f" <small>{percent(f.taken / f.count, 0)}</small></span>"
        for f in found[:MOST]
    )
    more = f"+{len(found) - MOST}" * (len(found) > MOST)
    return f'<div class="chips">{words}{more}</div>' if found else "none"
