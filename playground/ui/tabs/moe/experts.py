"""What did the experts learn: the tokens that each favours, and whether random routers sort the text as much."""

from __future__ import annotations

import html

from ....data import visible
from ....inspection.favourites import Lift, favourites, sorting
from ....inspection.routing import expert_layers, routing_of
from ....storage import Checkpoint
from ....words.experts import sorting_words
from ...panel import Slot, choice, slot
from ...theme import Cell, table
from .selection import At
from .texts import text_for

TITLE = "What did the experts learn?"
MOST = 8

TEMPLATE = f"""<div class="stack">
<div class="line"><label class="grow"><span class="sr-only">Text</span><input type="text" name="own" dir="auto"
autocomplete="off" spellcheck="false" placeholder="Your own text (optional)"></label>
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
            Cell(f"{100 * share:.1f} %", share),
            Cell(html=_favourites(checkpoint, found), kind="words"),
        )
        for expert, (share, found) in enumerate(
            zip((K * routing.load[i]).tolist(), favourites(experts, tokens, routing.n_experts, MOST))
        )
    ]
    gets = Cell("tokens that it gets clearly more often than its share", kind="words")
    headline, read = sorting_words(layer, sort.learned, sort.random, clear=sort.is_clear)
    judged = html.escape(f"{read} On {len(tokens):,} tokens of {what}.")
    shown = table(("expert", "share of tokens", gets), rows, save="favourite-tokens", classes="favourites")
    return f'<p><strong>{html.escape(headline)}</strong></p>{shown}<p class="quiet">{judged}</p>'


def _favourites(checkpoint: Checkpoint, found: list[Lift]) -> str:
    words = "".join(
        f'<span class="favourite" title="{f.taken:,} of its {f.count:,} occurrences go to this expert"><code>'
        f"{html.escape(visible(checkpoint.tokenizer.token_text(f.token)))}</code> "
        f"<small>{100 * f.taken / f.count:.0f} % · ×{f.lift:.1f}</small></span>"
        for f in found
    )
    return words or "none"
