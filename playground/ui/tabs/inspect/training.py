"""Training: one real optimizer step on the prompt, on a copy of the model; one weight by hand. Beside it moments.py."""

from __future__ import annotations

import functools
import html
from typing import Any

import numpy as np

from ....figures.attention import signed_map
from ....figures.bars import named_bars
from ....inspection import Look
from ....inspection.head_matrices import Matrix, head_matrix
from ....inspection.optimizer_step import StepReport, first_adamw_step, optimizer_step
from ....kept import Kept
from ....service.limits import STEP_PARAMETERS as MOST_PARAMETERS
from ....training import TrainConfig
from ....words.inspect import (
    ADAM,
    MUON,
    SGD,
    norms_words,
    step_headline,
    step_words,
)
from ....words.numbers import brief, signed
from ....words.parts import plain_name
from ... import theme
from ...chart import chart_place, show
from ...clicks import cell_of
from ...panel import Slot, choice, slot
from ...slips import slips
from . import moments
from .selection import At

TRAINED = "trained"
RULES = {TRAINED: "As in its training", "adamw": "AdamW", "muon": "Muon", "sgd": "Plain SGD"}
HEAD_MATRICES = {"q": "W_q of this head", "k": "W_k of this head", "v": "W_v of this head", "o": "W_o of this head"}
PICTURES = {"before": "Weights", "gradient": "Gradient", "step": "Step"}
"""The pictures of one matrix."""
SWITCH = {"step": "One optimizer step", "moments": "Through training"}
MOST_DRAWN = 64
"""Rows and columns of a matrix that a picture shows at most."""

_PICTURES = "".join(
    f"<div><h3>{title}</h3>"
    f"{chart_place(f'training-{name}', height=280, save_name=f'weights-{name}', clickable=True)}</div>"
    for name, title in PICTURES.items()
)
TEMPLATE = f"""<div class="line">{choice("training", "Show", SWITCH)}</div>
<section data-for="training:step">{slot("training-problem")}
<section data-unless="training-problem">
<div class="card">{slot("training-headline")}
<div class="line">{choice("optimizer", "Optimizer", RULES)}{slot("training-matrix")}</div>
<div class="three">{_PICTURES}</div>{slot("training-rates", tag="p", class_="quiet")}
<p class="quiet">A copy of the model predicts each token of the prompt, then takes the first step of a fresh optimizer.
The model itself does not change.</p></div>
<details class="fold"><summary>Gradient norm by part</summary>
{chart_place("training-norms", height=300, save_name="gradient-norms")}</details>
<details class="fold"><summary>One weight by hand</summary><div class="card">
{slot("training-place", class_="line tight")}{slot("training-weight")}</div></details>
{slot("training-slips")}</section></section>
{moments.TEMPLATE}"""

_steps = Kept(entries=48)


def slots(at: At) -> dict[str, Slot]:
    """One optimizer step, or the prompt through training."""
    c = at.chosen
    if c.training == "moments":
        return moments.slots(at)
    if problem := unable(at.look):
        return {"training-problem": Slot(problem, lambda: theme.notice(problem))}
    part = chosen_matrix(at.look, at.owner, c.matrix)
    rows, columns = shape_of(at.look, part)
    step = (*at.about, c.optimizer)
    place = (*step, part, c.row, c.column)

    @functools.cache
    def report() -> StepReport:
        return step_of(at.look, c.optimizer)

    def drawn(name: str) -> dict[str, Any] | None:
        return show(*picture(part, report(), name, c.row, c.column), aloud=name != "before")

    return {
        "training-problem": Slot("", lambda: ""),
        "training-matrix": Slot(at.about, lambda: choice("matrix", "Weights", matrices(at.look))),
        "training-place": Slot((rows, columns), lambda: place_fields(rows, columns)),
        "training-headline": Slot((*step, part), lambda: headline(part, report()), slow=True),
        "training-rates": Slot(step, lambda: rates(at.look, report()), slow=True),
        **{f"training-{name}": Slot(place, functools.partial(drawn, name), slow=True) for name in PICTURES},
        "training-weight": Slot(place, lambda: weight_receipt(part, report(), c.row, c.column), slow=True),
        "training-norms": Slot(step, lambda: show(*norms_picture(report()), layer=None, head=None), slow=True),
        "training-slips": Slot("", lambda: slips("padding", "dropout"), slow=True),
    }


def within(at: At) -> dict[str, Any]:
    """The fields of this view, held to what this model has."""
    c = at.chosen
    matrix = c.matrix if c.matrix in matrices(at.look) else "q"
    rows, columns = shape_of(at.look, chosen_matrix(at.look, at.owner, matrix))
    return {
        "training": c.training if c.training in SWITCH else "step",
        **(moments.within(at) if c.training == "moments" else {}),
        "optimizer": c.optimizer if c.optimizer in RULES else TRAINED,
        "matrix": matrix,
        "row": min(max(c.row, 0), rows - 1),
        "column": min(max(c.column, 0), columns - 1),
    }


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any] | None:
    """A cell of one of the pictures chooses its weight."""
    if click.get("slot") not in {f"training-{name}" for name in PICTURES}:
        return moments.clicked(at, click)
    rows, columns = shape_of(at.look, chosen_matrix(at.look, at.owner, at.chosen.matrix))
    row, column = cell_of(click, rows=min(rows, MOST_DRAWN), columns=min(columns, MOST_DRAWN))
    return {"row": row, "column": column}


def unable(look: Look) -> str:
    """The reason why no training step is possible on this prompt; empty if one is."""
    if look.length < 2:
        return "One token has nothing after it to learn from. Type at least two."
    if look.config.n_parameters > MOST_PARAMETERS:
        return (
            f"This model has {look.config.n_parameters:,} parameters; a step is shown up to {MOST_PARAMETERS:,}. "
            "Choose a smaller model."
        )
    return ""


def step_of(look: Look, rule: str) -> StepReport:
    """One training step on this prompt, computed once and cached."""
    by, config = None if rule == TRAINED else rule, look.checkpoint.training or TrainConfig()
    return _steps.get((look.ids, rule), lambda: optimizer_step(look.model, look.ids, config, by), owner=look.model)


def matrices(look: Look) -> dict[str, str]:
    """The head's four matrices, then every parameter: name in the code → name in plain words."""
    return {**HEAD_MATRICES, **{name: plain_name(name) for name, _ in look.model.named_parameters()}}


def chosen_matrix(look: Look, owner: tuple[int, int], which: str) -> Matrix:
    """The weights to watch; a name that this model lacks means the head's W_q."""
    if which in HEAD_MATRICES or which not in matrices(look):
        return head_matrix(look.config, which if which in HEAD_MATRICES else "q", *owner)
    return Matrix(plain_name(which), which)


def shape_of(look: Look, part: Matrix) -> tuple[int, int]:
    """Rows and columns of a matrix."""
    rows, columns = part.of(look.model.get_parameter(part.name)).shape
    return rows, columns


def place_fields(rows: int, columns: int) -> str:
    """Fields for the row and the column of one weight."""
    return "".join(
        f'<label class="field-label">{title}'
        f'<input type="number" name="{name}" min="0" max="{count - 1}" step="1"></label>'
        for name, title, count in (("row", "Row", rows), ("column", "Column", columns))
    )


# ---- one matrix ------------------------------------------------------------------------------------------------------


def picture(part: Matrix, report: StepReport, name: str, i: int, j: int) -> tuple[dict[str, Any], str]:
    """One of the pictures of a matrix and its sentence."""
    tensor = {"before": report.before, "gradient": report.gradients}.get(name, {part.name: report.step(part.name)})
    values = part.of(tensor[part.name]).numpy()
    drawn = values[:MOST_DRAWN, :MOST_DRAWN]
    rows, columns = ([str(n) for n in range(length)] for length in drawn.shape)
    mark = (i, j) if i < drawn.shape[0] and j < drawn.shape[1] else None
    named = {"name": name.replace("before", "weight"), "cell": "row %{y}, column %{x}"}
    figure = signed_map(drawn, rows, columns, **named, mark=mark, height=280)
    figure["layout"]["margin"] |= {"l": 28, "r": 76, "b": 28, "autoexpand": False}  # all three are as wide
    for side, length in (("yaxis", drawn.shape[0]), ("xaxis", drawn.shape[1])):
        ticks = list(range(0, length, 8 if length > 12 else 1))
        figure["layout"][side] |= {"tickvals": ticks, "ticktext": [str(n) for n in ticks], "tickangle": 0}
    words = f"{part.title}: {values.shape[0]} × {values.shape[1]}."
    if drawn.shape != values.shape:
        words += f" Shown: the first {drawn.shape[0]} × {drawn.shape[1]}."
    return figure, words


# ---- numbers and words -----------------------------------------------------------------------------------------------


def headline(part: Matrix, report: StepReport) -> str:
    """What the step does to the loss, and how far it moves the weights of one matrix."""
    before, step = part.of(report.before[part.name]), part.of(report.step(part.name))
    words = step_words(part.title, float(before.abs().max()), float(step.abs().max()))
    said = html.escape(step_headline(report.loss_before, report.loss_after))
    return f'<h2>{said}</h2><p class="num">{html.escape(words)}</p>'


def rates(look: Look, report: StepReport) -> str:
    """The gradient and what clipping did; the learning rates."""
    its = look.checkpoint.training is not None and "sgd" not in report.learning_rates
    rates = ", ".join(f"{RULES[name]} {rate:g}" for name, rate in report.learning_rates.items())
    clipped = "not clipped" if report.clipped >= 1 else f"clipped to {report.config.gradient_clip:g}"
    peak = "peak of its training" if its else "the usual one"
    return f"Gradient norm: {report.gradient_norm:.3f} ({clipped}). Learning rate: {rates} ({peak})."


def weight_receipt(part: Matrix, report: StepReport, i: int, j: int) -> str:
    """One weight's update, computed by hand in float64, beside PyTorch's result."""
    before, gradient, after = (
        part.of(x[part.name])[i, j].item() for x in (report.before, report.gradients, report.after)
    )
    rule, config = report.rules[part.name], report.config
    rate = report.learning_rates[rule]
    decay = report.decays[part.name]
    lines = [("weight before", signed(before, 8)), ("gradient, after clipping", brief(gradient, 8))]
    if rule == "adamw":
        hand = first_adamw_step(before, gradient, rate, config.beta1, config.beta2, decay)
        lines += [
            (f"m = (1 − {config.beta1:g}) · gradient, ÷ (1 − {config.beta1:g})", brief(hand["m_corrected"], 8)),
            (f"v = (1 − {config.beta2:g}) · gradient², ÷ (1 − {config.beta2:g})", brief(hand["v_corrected"], 8)),
            (f"move = −{rate:g} · m ÷ (√v + 10⁻⁸)", brief(hand["move"], 8)),
            (f"weight decay = −{rate:g} · {decay:g} · weight", brief(hand["shrink"], 8)),
        ]
        expected = hand["after"]
        note = ADAM
    elif rule == "sgd":
        expected = before - rate * gradient
        lines.append((f"move = −{rate:g} · gradient", brief(-rate * gradient, 8)))
        note = SGD
    else:
        expected = None
        lines.append((f"weight decay = −{rate:g} · {decay:g} · weight", brief(-rate * decay * before, 8)))
        lines.append(("move (from the orthogonalised matrix)", brief(after - before + rate * decay * before, 8)))
        note = MUON
    lines.append(("weight after, in the model", signed(after, 8)))
    if expected is not None:
        lines.append(("by hand − in the model", f"{expected - after:.1e}"))
    rows = [(name, value.replace("-", "−")) for name, value in lines]
    head = (f"{part.title}, row {i}, column {j}", "")
    return theme.table(head, rows, save="one-weight") + theme.quiet(note)


def norms_picture(report: StepReport) -> tuple[dict[str, Any], str]:
    """Gradient norm by part of the model."""
    values = list(report.norms.values())
    names = [plain_name(name) for name in report.norms]
    most = int(np.argmax(values))
    words = norms_words(names[most], values[most], report.gradient_norm)
    return named_bars(names, values, ""), words
