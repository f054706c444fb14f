"""Cost: which parts hold the parameters, and which do the arithmetic; what the KV cache saves."""

from __future__ import annotations

from typing import Any

from ....figures.candidates import next_tokens
from ....inspection.sizes import parts
from ....words.inspect import cost_words, sizes_words
from ... import theme
from ...chart import chart_place, show
from ...panel import Slot, slot
from ...slips import slips
from . import kv_cache
from .selection import At

TEMPLATE = f"""<div class="card">{slot("cost-headline")}
{chart_place("cost-parts", height=252, save_name="cost-by-part")}</div>
{kv_cache.TEMPLATE}{slot("cost-slips")}"""


def slots(at: At) -> dict[str, Slot]:
    """The part that counts most, the picture of all parts, and what textbooks get wrong about cost."""
    about = (at.look.config, at.look.length)
    return {
        "cost-headline": Slot(about, lambda: headline(at)),
        "cost-parts": Slot(about, lambda: picture(at)),
        "cost-slips": Slot("", lambda: slips("size", "bytes", "compute")),
        **kv_cache.slots(at),
    }


def headline(at: At) -> str:
    """The part with the most parameters, and how much of the arithmetic it does."""
    config = at.look.config
    found = parts(config, at.look.length)
    return theme.result(cost_words(found, config.experts_per_token, config.n_experts), tag="h2")


def picture(at: At) -> dict[str, Any]:
    """Each part's share of the parameters and of the arithmetic, and both totals."""
    config, length = at.look.config, at.look.length
    found, totals = parts(config, length), (config.n_parameters, config.flops_per_token(length))
    stored, computed = [part.parameters / totals[0] for part in found], [part.operations / totals[1] for part in found]
    figure = next_tokens([part.name for part in found], computed, stored, names=("parameters", "arithmetic"))
    return show(figure, sizes_words(*totals, next(at.look.model.parameters()).element_size()))
