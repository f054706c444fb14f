"""Step by step: one step of the walk on one screen; below it all heads as small pictures, and a receipt."""

from __future__ import annotations

import html
import re
from typing import Any

import gradio as gr

from ....inspection import Look
from ....inspection.walk import STEPS, step, step_names
from ....words.walk import Described, describe
from ...chart import Chart, show
from ...gradio_fixes.lenient import LenientRadio
from ...slips import slips
from ...widgets.clicks import cell_of, index_of
from . import receipt, thumbnails
from .drawn import window_words
from .frame import Frame, Place
from .pictures import HEIGHT, VECTORS, part_drawn, picture, reading
from .words import coloured

TITLE = "Step by step"
SHORT = {
    "embed": "tokens", "arrive": "arrive", "norm": "norm", "project": "Q K V", "split": "heads", "qk_norm": "QK-norm",
    "rotate": "turn", "share": "share", "scores": "scores", "mask": "mask", "softmax": "softmax", "mix": "blend",
    "output": "project", "add": "add", "mlp": "think", "predict": "predict",
}  # fmt: skip
"""Each step in a word, for the row of steps."""
CLICKABLE = ("scores", "mask", "softmax")
"""Steps whose picture is token against token."""

SLIPS = {"split": ("counts",), "mask": ("mask",), "add": ("placement",), "mlp": ("compute",)}
"""What teaching texts get wrong at a step."""

# The row of steps keeps the chosen one in sight. One listener per page: where no field wants the arrows for itself,
# they press Back and Next.
_ON_LOAD = """watch("value", () => setTimeout(() => {
  const chosen = document.querySelector("#inspect-steps input:checked")?.closest("label"), row = chosen?.parentElement;
  if (row) row.scrollLeft = chosen.offsetLeft - row.offsetLeft - (row.clientWidth - chosen.clientWidth) / 2;
}, 50));
if (!window.playgroundArrows) {
  window.playgroundArrows = true;
  const TAKEN = "input, textarea, select, [contenteditable], [role=tablist], [role=radiogroup], [role=listbox]";
  document.addEventListener("keydown", (event) => {
    const id = { ArrowLeft: "inspect-back", ArrowRight: "inspect-next" }[event.key];
    if (!id || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.defaultPrevented) return;
    if (event.target.closest?.(TAKEN)) return;
    const button = document.getElementById(id);
    if (!button || button.disabled || !button.offsetParent) return;
    event.preventDefault();
    button.click();
  });
}"""


def build(frame: Frame) -> None:
    """A bar that stays, the row of steps, picture beside words; then heads and receipt."""
    with gr.Column(elem_classes="card", elem_id="inspect-step-card"):
        with gr.Row(elem_id="inspect-bar", equal_height=True):
            back = gr.Button("← Back", size="md", min_width=84, elem_id="inspect-back")
            heading = gr.HTML(padding=False, elem_id="inspect-step", js_on_load=_ON_LOAD)
            onward = gr.Button("Next →", variant="primary", size="md", min_width=84, elem_id="inspect-next")
        steps = LenientRadio(  # another model's steps may be others
            [(f"{i + 1} {SHORT[name]}", name) for i, name in enumerate(STEPS)],
            value="embed",
            label="Step",
            show_label=False,
            container=False,
            elem_classes="pills",
            elem_id="inspect-steps",
        )
        with gr.Row(equal_height=False, elem_id="inspect-step-row"):
            with gr.Column(scale=11, min_width=320):
                chart = Chart(height=HEIGHT, save_name="step", clickable=True, elem_id="inspect-step-chart")
            with gr.Column(scale=9, min_width=320):
                how = gr.HTML(padding=False, elem_id="inspect-how")
    with gr.Row(equal_height=False):
        with gr.Column(scale=2, min_width=300, elem_classes="card"):
            thumbnails.build(frame)
        with gr.Column(scale=3, min_width=320):
            receipt.build(frame)

    def draw(look: Look, place: Place, name: str) -> dict[Any, Any]:
        names = step_names(look, place.layer)
        name = nearest(name, names)
        here, number = step(look, name, place.layer, place.head, place.query, place.key), names.index(name)
        described = describe(here)
        figure, part = picture(here, described.labels, look, place)
        return {
            steps: gr.Radio(choices=[(f"{i + 1} {SHORT[n]}", n) for i, n in enumerate(names)], value=name),
            heading: headline(described, number, len(names)),
            chart: show(figure, reading(look, name, place.layer) + (window_words(look, part) if part else "")),
            how: words(described, name),
            back: gr.Button(interactive=number > 0),
            onward: gr.Button(interactive=number + 1 < len(names)),
        }

    frame.follow(draw, [steps, heading, chart, how, back, onward], extra=[steps])
    frame.redraws(steps.input, of=steps)

    def moved(by: int) -> Any:
        def alter(look: Look, place: Place, values: dict, event: gr.EventData) -> dict:
            names = step_names(look, place.layer)
            at = names.index(nearest(values[steps], names))
            return {steps: names[min(max(at + by, 0), len(names) - 1)]}

        return alter

    frame.redraws(back.click, moved(-1))
    frame.redraws(onward.click, moved(1))

    frame.moves(chart.select, clicked_cell, extra=[steps])
    frame.page.share("inspect.step", steps)


def nearest(name: Any, names: tuple[str, ...]) -> str:
    """The step asked for; where this model or layer has none of that name, the one that comes next."""
    known = list(STEPS)
    if not isinstance(name, str) or name not in STEPS:
        return names[0]
    return next((n for n in known[known.index(name) :] if n in names), names[-1])


def clicked_cell(look: Look, place: Place, event: gr.EventData, name: str) -> Place:
    """Where a click on a step's picture leads: a cell of a token map, the token of a bar, the head of a row."""
    part, d_model = part_drawn(name, look, place), look.config.d_model
    drawn = part.stop - part.start
    if name in CLICKABLE:
        row, column = cell_of(event, rows=drawn, columns=drawn)
        return place.at(query=part.start + row, key=part.start + column)
    if name in VECTORS:
        return place.at(query=part.start + cell_of(event, rows=drawn, columns=d_model)[0])
    if name == "add":
        return place.at(query=index_of(event, look.length))
    if name == "output":
        row = cell_of(event, rows=look.config.n_heads + 1, columns=d_model)[0]
        return place.at(head=row) if row < look.config.n_heads else place
    if name == "share":
        return place.at(head=cell_of(event, rows=look.config.n_heads, columns=look.config.d_head)[0])
    return place


def headline(here: Described, number: int, count: int) -> str:
    """Where on the way, and the step's title."""
    return (
        f'<div class="step" aria-live="polite"><span class="step-number">Step {number + 1} of {count}</span> '
        f"<h3>{html.escape(here.title)}</h3></div>"
    )


def words(here: Described, name: str) -> str:
    """Why it is done, what to look for in this picture, the formula, lines that compute it, and where texts slip."""
    return (
        f'<div class="how"><p class="why"><b>Why</b> {coloured(here.why)}</p>'
        f'<p class="see"><b>Look</b> {coloured(here.sentence)}</p>'
        f'<p class="formula">{coloured(here.formula)}</p>'
        f'<pre class="code" tabindex="0" aria-label="PyTorch"><code>{html.escape(code(here))}</code></pre>'
        f"{slips(*SLIPS.get(name, ()))}</div>"
    )


def code(here: Described) -> str:
    """The step's lines, and what of them is drawn."""
    shown = [re.sub(r"\[\d+(?:, \d+){4,}\]", "[…]", expression) for expression in here.expressions.values()]
    return f"{here.code}\n# drawn: {', '.join(e for e in dict.fromkeys(shown) if len(e) <= 60)}"
