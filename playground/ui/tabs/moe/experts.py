"""What did the experts learn: measured against the true source of every token, and by the tokens they take most."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from ....data import visible
from ....figures.specialisation import information_bars, lift_of, source_map
from ....inspection.favourites import favourites
from ....inspection.routing import RoutedText, expert_layers, routing_of
from ....storage import Checkpoint
from ....words.experts import information_details, information_words, sources_words
from ...chart import chart_place, show
from ...panel import Slot, choice, slot
from ...theme import Cell, notice, table
from .expert_text import expert_badge
from .measured import Found, found_in, has_sources
from .selection import At
from .texts import text_for

TITLE = "What did the experts learn?"

WHY = """Four speakers take turns in <i>Dialects</i>, and only this page knows who speaks. <b>Mutual information</b> is
how many bits a token's expert tells about its speaker: 0 is nothing, 2 would identify the speaker. Even an untrained
router can encode something, because attention has gathered it already. So each bar has four baselines without learned
routing: random routers, routers before training, random experts for every place, and speakers of other sentences."""

TEMPLATE = f"""<div class="stack">{slot("experts-note")}
<details><summary>How is this measured?</summary><p class="quiet">{WHY}</p>
{slot("bits-details", tag="p", class_="quiet")}</details>
{chart_place("bits", height=320, save_name="bits-per-layer")}
<div class="line">{slot("experts-layers")}</div>
{chart_place("sources", height=320, save_name="experts-by-source")}
<h3>Favourite tokens of each expert</h3>
<label><span class="sr-only">Text</span><input type="text" name="own" dir="auto" autocomplete="off" spellcheck="false"
placeholder="Any text; empty: text that the model has not seen"></label>
{slot("favourites")}</div>"""


def slots(at: At) -> dict[str, Slot]:
    """All slots of this fold; those that need known sources are left out if there are none."""
    checkpoint = at.mixture
    layers = expert_layers(checkpoint.config)
    known = has_sources(checkpoint)
    layer = at.chosen.layer
    why = "The speakers in this model's text are unknown. Choose an MoE model trained on Dialects to measure this."
    names = {str(each): str(each + 1) for each in layers}
    slots = {
        "experts-note": Slot(known, lambda: "" if known else notice(why)),
        "experts-layers": Slot((layers, layer), lambda: choice("layer", "Layer", names, str(layer))),
        "favourites": Slot((*at.about, layer, at.chosen.own), lambda: _favourites(at, checkpoint, layer), slow=True),
    }
    pictures = {"bits": at.about, "sources": (*at.about, layer)}
    if not known:
        return slots | {name: Slot(None, lambda: None) for name in pictures}
    return slots | {
        "bits": Slot(pictures["bits"], lambda: _bars(found_in(checkpoint)), slow=True),
        "bits-details": Slot(at.about, lambda: _details(found_in(checkpoint)), slow=True),
        "sources": Slot(pictures["sources"], lambda: _sources(found_in(checkpoint), layer), slow=True),
    }


def _favourites(at: At, checkpoint: Checkpoint, layer: int) -> str:
    windows, what = text_for(at.page, checkpoint, at.chosen.own)
    ids = windows[:, :-1]
    return favourites_table(checkpoint, routing_of(checkpoint.model, ids), ids.flatten().numpy(), layer, what)


def favourites_table(checkpoint: Checkpoint, routing: RoutedText, tokens: np.ndarray, layer: Any, what: str) -> str:
    """Each expert's share of visits and its favourite tokens in one layer, as an HTML table."""
    layer = layer if layer in routing.layers else routing.layers[-1]
    i, rows = routing.layers.index(layer), []
    experts = routing.experts[i].flatten(0, 1).numpy()
    found, looked = favourites(experts, tokens, routing.n_experts, most=8)
    for expert, liked in enumerate(found):
        words = "".join(
            f'<span class="favourite" title="{f.taken:,} of its {f.count:,} occurrences go to this expert"><code>'
            f"{html.escape(visible(checkpoint.tokenizer.token_text(f.token)))}</code> "
            f"<small>×{f.lift:.2f}</small></span>"
            for f in liked
        )
        share, heard = routing.load[i, expert], routing.weight[i, expert]
        nothing = "nothing more often than chance" if share else "nothing: no token goes there"
        rows.append(
            (
                Cell(str(expert), html=expert_badge(expert)),
                Cell(f"{100 * share:.1f} %", share),
                Cell(f"{100 * heard:.1f} %", heard),
                Cell(html=words or nothing, kind="words"),
            )
        )
    takes = Cell("tokens that it gets more often than chance: lift", kind="words")
    shown = table(("expert", "share of tokens", "of weight", takes), rows, save="favourite-tokens")
    words = (
        f"Layer {layer + 1}, {len(tokens):,} tokens of {html.escape(what)}. Lift ×3: the expert gets this token three "
        f"times as often as tokens in general. All listed pairs are jointly significant at 95 % ({looked:,} pairs)."
    )
    return f'<p class="quiet">{words}</p>{shown}'


def _bars(found: Found) -> Any:
    given = found.layers, found.judgements
    return show(information_bars(*given), information_words(*given))


def _details(found: Found) -> str:
    return html.escape(information_details(found.layers, found.judgements, found.token_bits))


def _sources(found: Found, layer: int) -> Any:
    table = found.tables[found.layers.index(layer)]
    return show(source_map(table, found.names), sources_words(table, lift_of(table), found.names))
