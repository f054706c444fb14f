"""What did the experts learn: the tokens that each favours, and whether random routers sort the text as much."""

from __future__ import annotations

import html

from ....data import visible
from ....inspection.favourites import Lift, favourites, sorting
from ....inspection.routing import expert_layers, routing_of
from ....storage import Checkpoint
from ....words.experts import FAVOURITES, sorting_words
from ....words.numbers import percent
from ...panel import Slot, choice, slot
from ...theme import Cell, table
from .selection import At
from .texts import text_for

TITLE = "What did the experts learn?"
MOST = 6

TEMPLATE = f"""<div class="stack">
<div class="line"><label class="grow"><span class="sr-only">Text to sort</span><input type="text" name="own" dir="auto"
autocomplete="off" spellcheck="false" placeholder="Another text to sort (optional)"></label>
{slot("experts-layers")}</div>
{slot("favourites")}</div>"""


def slots(at: At) -> dict[str, Slot]:
    """All slots of this fold."""
    checkpoint, layer = at.mixture, at.chosen.layer
    names = {str(each): str(each) for each in expert_layers(checkpoint.config)}
    return {
        "experts-layers": Slot((names, layer), lambda: choice("layer", "Layer", names, str(layer))),
        "favourites": Slot((*at.about, layer, at.chosen.own), lambda: favourites_of(at, checkpoint, layer), slow=True),
    }


def favourites_of(at: At, checkpoint: Checkpoint, layer: int) -> str:
    """One layer's headline, and a table of its experts with their shares and favourite tokens, as HTML.

    Raises ValueError if there is no text, or too little.
    """
    windows, what = text_for(at.page, checkpoint, at.chosen.own)
    ids = windows[:, :-1]
    routing, tokens = routing_of(checkpoint.model, ids), ids.flatten().numpy()
    i, K = routing.layers.index(layer), checkpoint.config.experts_per_token
    experts = routing.experts[i].flatten(0, 1).numpy()  # (N, K)
    sort = sorting(checkpoint.model, ids, layer, experts[:, 0])
    rows = [
        (
            str(expert),
            Cell(f"{100 * share:.0f} %", share),
            Cell(html=_favourites(checkpoint, found), kind="words"),
        )
        for expert, (share, found) in enumerate(
            zip((K * routing.load[i]).tolist(), favourites(experts, tokens, routing.n_experts, MOST))
        )
    ]
    headline, read = sorting_words(layer, sort.learned, sort.random, K, clear=sort.is_clear)
    judged = html.escape(f"{read} {FAVOURITES} On {len(tokens):,} tokens of {what}.")
    shown = table(
        ("expert", "share of tokens", Cell("favourite tokens", kind="words")),
        rows,
        save="favourite-tokens",
    )
    return f'<h3>{html.escape(headline)}</h3>{shown}<p class="quiet">{judged}</p>'


def _favourites(checkpoint: Checkpoint, found: list[Lift]) -> str:
    words = "".join(
        f'<span class="favourite" title="{f.taken:,} of {f.count:,} go to this expert: {f.lift:.1f} times its share">'
        f"<code>{html.escape(visible(checkpoint.tokenizer.token_text(f.token)))}</code>"
        f"{f' <small>{percent(f.taken / f.count, 0)}</small>' * (f.taken < f.count)}</span>"
        for f in found
    )
    return words or "none"
