"""Cost: parameters by component beside known models, memory of a training step, operations per token."""

from __future__ import annotations

from ....inspection.sizes import COMPARED, activations, compute
from ....model import PRESETS, ModelConfig
from ....words.inspect import MEMORY, sizes_words
from ....words.numbers import percent
from ... import theme
from ...panel import Slot, slot
from ...slips import slips
from . import kv_cache
from .selection import At

BATCH = 32
LARGE = ("Post-norm GPT", PRESETS["s3"], 512)
"""A model of GPT-2's size for comparison, and the tokens it reads."""

TEMPLATE = f"""<div class="card"><h3>Parameters by component</h3>{slot("cost-parameters")}</div>
<details class="fold"><summary>Memory of a training step</summary>
<p class="quiet">The largest parts of one block, for {BATCH} texts, in 32 bits.</p>{slot("cost-memory")}</details>
<details class="fold"><summary>Operations per token</summary>
<p class="quiet">For the last of these tokens. A multiplication and an addition count as two.</p>
{slot("cost-operations")}</details>
{kv_cache.TEMPLATE}{slot("cost-slips")}"""


def slots(at: At) -> dict[str, Slot]:
    """Three tables, what the KV cache saves, and what textbooks get wrong about cost."""
    look = at.look
    name = look.checkpoint.name or "this model"
    about = (name, look.config)
    here = (name, look.config, look.config.context_length)
    return {
        "cost-parameters": Slot(about, lambda: components({name: look.config, **COMPARED})),
        "cost-memory": Slot(about, lambda: memory(here, LARGE)),
        "cost-operations": Slot(about, lambda: operations(here, LARGE)),
        "cost-slips": Slot("", lambda: slips("size", "bytes", "compute")),
        **kv_cache.slots(at),
    }


def components(models: dict[str, ModelConfig]) -> str:
    """Parameters by component, a column per model."""
    counted = [config.parameters_by_component() for config in models.values()]
    names = [name for name in counted[0] if any(each[name] for each in counted)]
    rows = [[name, *(f"{each[name]:,}" if each[name] else "–" for each in counted)] for name in names]
    rows.append(["total", *(f"{config.n_parameters:,}" for config in models.values())])
    table = theme.table(["", *models], rows, total=True, save="parameters-beside-others")
    dense, mixed = COMPARED["Word walkthrough"], COMPARED["Word walkthrough, eight experts"]
    return table + theme.quiet(sizes_words(dense.n_parameters, mixed.n_parameters, mixed.n_active_parameters))


def memory(*models: tuple[str, ModelConfig, int]) -> str:
    """Numbers and bytes that a block keeps, by part."""
    kept = [activations(config, BATCH, length) for _, config, length in models]
    rows = [[name, *(_numbers_and_bytes(each[name]) for each in kept)] for name in kept[0]]
    rows.append(["total", *(_numbers_and_bytes(sum(each.values())) for each in kept)])
    head = ["", *(f"{name}, {length} tokens" for name, _, length in models)]
    return theme.table(head, rows, total=True, save="memory") + theme.quiet(MEMORY)


def _numbers_and_bytes(count: int) -> str:
    return f"{count:,} · {4 * count / 1e6:,.1f} MB"


def operations(*models: tuple[str, ModelConfig, int]) -> str:
    """Operations per token, by part."""
    shares = [compute(config, length) for _, config, length in models]
    names = list(dict.fromkeys(name for each in shares for name in each))
    names.sort(key=lambda name: name == "output layer")

    def cell(each: dict[str, int], name: str) -> str:
        return f"{each[name]:,} · {percent(each[name] / sum(each.values()), 0)}" if name in each else "–"

    rows = [[name, *(cell(each, name) for each in shares)] for name in names]
    rows.append(["total", *(f"{sum(each.values()):,}" for each in shares)])
    head = ["", *(f"{name}, {length} tokens" for name, _, length in models)]
    return theme.table(head, rows, total=True, save="operations")
