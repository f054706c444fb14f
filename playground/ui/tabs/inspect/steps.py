"""Step by step: one layer's way from tokens to probabilities, a picture and its words at a time; below it the lens."""

from __future__ import annotations

import functools
import html
import re
from typing import Any

from ....inspection.walk import STEPS, Step, step, step_names
from ....model import ModelConfig
from ....words.walk import Described, describe
from ...chart import chart_place, show
from ...clicks import cell_of, index_of
from ...panel import Slot, choice, move_button, slot
from ...slips import slips
from . import lens
from .drawn import clicked_cell, window_words
from .pictures import HEIGHT, MAPS, VECTORS, part_drawn, picture, reading
from .selection import At

LABELS = {
    "embed": "embed", "arrive": "earlier layers", "norm": "norm", "project": "Q K V", "split": "heads",
    "qk_norm": "QK-norm", "rotate": "rotate", "share": "share K V", "scores": "scores", "mask": "mask",
    "softmax": "softmax", "mix": "mix values", "output": "project", "add": "add", "mlp": "MLP", "predict": "predict",
}  # fmt: skip
"""Each step in a word or two, for the row of steps."""
WITHOUT_LAYER = ("embed", "predict")
"""Steps that are the same for every layer."""
WITHOUT_HEAD = (*WITHOUT_LAYER, "arrive", "norm", "project", "add", "mlp")
"""Steps that are the same for every head."""
_ROLE = re.compile(r"\{([qkvs]):([^{}]*)\}")
_QUOTED = re.compile("“([^”]*)”")
SLIPS = {"split": ("counts",), "mask": ("mask",), "add": ("placement",), "mlp": ("compute",)}
"""What textbooks get wrong at a step."""

TEMPLATE = f"""<div class="card"><div class="line step-bar">
<button type="button" class="ghost" data-step="-1" data-of="step">← Back</button>
{slot("step-heading", class_="step grow", aria_live="polite")}{slot("step-head", class_="line tight")}
<button type="button" class="primary" data-step="1" data-of="step">Next →</button></div>
{slot("step-row", class_="seg many", role="radiogroup", aria_label="Step")}
<div class="two">
<div class="step-picture">{chart_place("step-chart", height=HEIGHT, save_name="step", clickable=True)}</div>
{slot("step-how", class_="how")}</div></div>
{lens.TEMPLATE}"""


def slots(at: At) -> dict[str, Slot]:
    """The row of steps, the chosen step's picture and its words; the lens where it is open."""
    look, c = at.look, at.chosen
    names, experts = step_names(look, c.layer), look.config.has_experts(c.layer)
    place = (*at.about, c.step, c.layer, c.head, c.query, c.key)

    @functools.cache
    def here() -> tuple[Step, Described]:
        made = step(look, c.step, c.layer, c.head, c.query, c.key)
        return made, describe(made)

    return {
        "step-row": Slot(names, lambda: row(names)),
        "step-head": Slot(pickers(look.config, c.step), lambda: pickers(look.config, c.step)),
        "step-heading": Slot((*at.about, c.step, c.layer), lambda: heading(here()[1], c.step, names)),
        "step-chart": Slot(place, lambda: chart(at, *here())),
        "step-how": Slot(place, lambda: words(here()[1], c.step, experts)),
        **lens.slots(at),
    }


def within(at: At) -> dict[str, Any]:
    """The fields of this view, limited to values that exist for this model and prompt."""
    return {"step": nearest(at.chosen.step, step_names(at.look, at.chosen.layer))}


def nearest(name: str, names: tuple[str, ...]) -> str:
    """The step asked for; where this layer has none of that name, the one that comes next."""
    order = list(STEPS)
    if name not in STEPS:
        return names[0]
    return next((each for each in order[order.index(name) :] if each in names), names[-1])


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any] | None:
    """What a click in the step's picture chooses: a cell, a token or a head."""
    if click.get("slot") != "step-chart":
        return lens.clicked(at, click)
    name, config = within(at)["step"], at.look.config
    part = part_drawn(name, at)
    if name in MAPS:
        return clicked_cell(click, part)
    if name in VECTORS:
        row = cell_of(click, rows=part.stop - part.start, columns=config.d_model)[0]
        return {"query": part.start + row, "key": None}
    if name == "add":
        return {"query": index_of(click, at.look.length), "key": None}
    if name in ("output", "share"):
        columns = config.d_model if name == "output" else config.d_head
        head = cell_of(click, rows=config.n_heads + (name == "output"), columns=columns)[0]
        return {"head": head, "key": None} if head < config.n_heads else {}
    return {}


def row(names: tuple[str, ...]) -> str:
    """A radio button per step."""
    return "".join(
        f'<label><input type="radio" name="step" value="{name}"><span>{i} {LABELS[name]}</span></label>'
        for i, name in enumerate(names, start=1)
    )


def pickers(config: ModelConfig, name: str) -> str:
    """Controls to choose the layer and the head that a step shows, as HTML."""
    layers, heads = ({str(i): str(i) for i in range(count)} for count in (config.n_layers, config.n_heads))
    layer = "" if name in WITHOUT_LAYER else choice("layer", "Layer", layers, resets="key")
    return layer if name in WITHOUT_HEAD else layer + choice("head", "Head", heads, resets="key")


def heading(here: Described, name: str, names: tuple[str, ...]) -> str:
    """The step's number and title."""
    number = f'<span class="step-number">Step {names.index(name) + 1} of {len(names)}</span>'
    return f"{number} <h3>{html.escape(here.title)}</h3>"


def chart(at: At, made: Step, here: Described) -> dict[str, Any] | None:
    """The step's picture and how to read it."""
    name = at.chosen.step
    part = window_words(at.look, part_drawn(name, at)) if name in (*VECTORS, *MAPS) else ""
    return show(picture(made, here.labels, at), reading(name, at) + part)


def words(here: Described, name: str, experts: bool) -> str:
    """The step's purpose and what to look for, with formula and code folded, and textbook mistakes."""
    more = ""
    if name in MAPS:
        more = move_button("Why this weight?", {"view": "heads", "why": True}, kind="link", data_visit="")
    elif name == "mlp" and experts:
        more = '<button type="button" class="link" data-open-tab="moe">Where do tokens go?</button>'
    return (
        f'<p class="why"><b>Why</b> {coloured(here.why)}</p>'
        f'<p class="see"><b>Look</b> {coloured(here.sentence)}</p>{more}'
        f'<details><summary>Formula and code</summary><p class="formula">{coloured(here.formula)}</p>'
        f'<pre class="code"><code>{html.escape(code(here))}</code></pre></details>'
        f"{slips(*SLIPS.get(name, ()))}"
    )


def code(here: Described) -> str:
    """The step's lines of PyTorch, and which of their values the picture shows."""
    shown = [re.sub(r"\[\d+(?:, \d+){4,}\]", "[…]", expression) for expression in here.expressions.values()]
    return f"{here.code}\n# shown: {', '.join(e for e in dict.fromkeys(shown) if len(e) <= 60)}"


def coloured(text: str) -> str:
    """Escaped HTML in which `{q:Q}` is a Q in the colour of queries, and “token” keeps its own writing direction."""
    isolated = _QUOTED.sub(r"“<bdi>\1</bdi>”", html.escape(text, quote=False))
    return _ROLE.sub(r'<span class="\1">\2</span>', isolated)
