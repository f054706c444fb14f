"""Training: one real optimizer step on the prompt, on a copy of the model; one weight by hand. Beside it moments.py."""

from __future__ import annotations

import functools
from typing import Any

import torch

from ....figures.attention import weights_map
from ....inspection import Look
from ....inspection.head_matrices import Matrix, head_matrix
from ....inspection.optimizer_step import StepReport, first_adamw_step, optimizer_step
from ....kept import Kept
from ....service.limits import STEP_PARAMETERS as MOST_PARAMETERS
from ....training import TrainConfig
from ....words.inspect import ADAM, framed_words, largest_words, step_headline
from ....words.numbers import brief, signed
from ....words.parts import plain_name
from ....words.result import Result
from ... import theme
from ...chart import chart_place, show
from ...clicks import number_of
from ...panel import Slot, choice, slot, switch
from ...slips import slips
from . import moments
from .selection import At

HEAD_MATRICES = {"q": "Wq of this head", "k": "Wk of this head", "v": "Wv of this head", "o": "Wo of this head"}
PICTURES = {"gradient": "Gradient", "step": "Step", "weight": "Weights"}
"""The pictures of one matrix."""
SWITCH = {"step": "One optimizer step", "moments": "Through training"}
MOST_DRAWN = 64
"""Rows and columns of a matrix that a picture shows at most: those around the framed weight."""

TEMPLATE = f"""{slot("training-problem")}
<section><section data-if="training:step">
<div class="card stack">{slot("training-headline")}{switch("picture", "Picture", PICTURES)}
{chart_place("training-picture", height=280, save_name="matrix", clickable=True)}
{slot("training-matrix")}
<details><summary>Details</summary>{slot("training-rates", tag="p", class_="quiet")}
<p class="quiet">A copy of the model predicts each token of the prompt, then takes the first step of a fresh AdamW.
The model itself does not change.</p></details></div>
<details class="fold"><summary>One weight by hand</summary><div class="card">
{slot("training-place", class_="line tight")}{slot("training-weight")}</div></details>
{slot("training-slips")}</section>
{moments.TEMPLATE}</section>"""

_steps = Kept(entries=48)


def slots(at: At) -> dict[str, Slot]:
    """One optimizer step, or the prompt through training."""
    c, kept = at.chosen, moments.are_kept(at.look)
    show = {"training-show": Slot(kept, lambda: choice("training", "Show", SWITCH) if kept else "")}
    if c.training == "moments":
        return show | moments.slots(at)
    if problem := unable(at.look):
        return show | {"training-problem": Slot(problem, lambda: theme.notice(problem))}
    part = chosen_matrix(at.look, at.owner, c.matrix)
    place = (*at.about, part, c.row, c.column)

    report = functools.partial(step_of, at.look)

    @functools.cache
    def framed() -> tuple[int, int]:
        gradient = part.of(report().gradients[part.name]).abs()  # in Adam's first step, all moves are about as large
        largest = divmod(int(gradient.argmax()), gradient.shape[1])
        return tuple(most if n is None else n for n, most in zip((c.row, c.column), largest))

    return {
        **show,
        "training-problem": Slot("", str),
        "training-matrix": Slot(at.about, lambda: choice("matrix", "Matrix", matrices(at.look), resets="row column")),
        "training-headline": Slot((*at.about, part, c.picture), lambda: headline(part, report(), c.picture), slow=True),
        "training-picture": Slot((*place, c.picture), lambda: picture(part, report(), c.picture, *framed()), slow=True),
        "training-rates": Slot(at.about, lambda: rates(report()), slow=True),
        "training-place": Slot((*at.about, part), lambda: place_fields(shape_of(at.look, part), framed()), slow=True),
        "training-weight": Slot(place, lambda: weight_receipt(part, report(), *framed()), slow=True),
        "training-slips": Slot("", lambda: slips("padding", "dropout"), slow=True),
    }


def within(at: At) -> dict[str, Any]:
    """The fields of this view, held to what this model has."""
    c = at.chosen
    matrix = c.matrix if c.matrix in matrices(at.look) else "q"
    shape = shape_of(at.look, chosen_matrix(at.look, at.owner, matrix))
    place = [None if n is None else min(max(n, 0), count - 1) for n, count in zip((c.row, c.column), shape)]
    return {
        **(moments.within(at) if c.training == "moments" and moments.are_kept(at.look) else {"training": "step"}),
        "matrix": matrix,
        **dict(zip(("row", "column"), place)),
    }


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any] | None:
    """A cell of the picture chooses its weight."""
    if click.get("slot") != "training-picture":
        return moments.clicked(at, click)
    return {"row": int(number_of(click, "y")), "column": int(number_of(click, "x"))}


def unable(look: Look) -> str:
    """The reason why no training step is possible on this prompt; empty if one is."""
    if look.length < 2:
        return "One token has nothing after it to learn from. Type at least two."
    if look.config.n_parameters > MOST_PARAMETERS:
        return (
            f"This model has {look.config.n_parameters:,} parameters; the page shows a step only for models of up "
            f"to {MOST_PARAMETERS:,}. Choose a smaller model."
        )
    return ""


def step_of(look: Look) -> StepReport:
    """One training step on this prompt, computed once and cached."""
    config = look.checkpoint.training or TrainConfig()
    return _steps.get(look.ids, lambda: optimizer_step(look.model, look.ids, config), owner=look.model)


def matrices(look: Look) -> dict[str, str]:
    """The head's four matrices, then every parameter: name in the code → name in plain words."""
    return {**HEAD_MATRICES, **{name: plain_name(name) for name, _ in look.model.named_parameters()}}


def chosen_matrix(look: Look, owner: tuple[int, int], which: str) -> Matrix:
    """The weights to watch, by their name in `matrices`."""
    return head_matrix(look.config, which, *owner) if which in HEAD_MATRICES else Matrix(plain_name(which), which)


def shape_of(look: Look, part: Matrix) -> tuple[int, int]:
    """Rows and columns of a matrix."""
    rows, columns = part.of(look.model.get_parameter(part.name)).shape
    return rows, columns


def place_fields(shape: tuple[int, int], framed: tuple[int, int]) -> str:
    """Fields for the row and the column of one weight."""
    return "".join(
        f'<label class="field-label">{title}'
        f'<input type="number" name="{title.lower()}" min="0" max="{count - 1}" step="1" value="{n}"></label>'
        for title, count, n in zip(("Row", "Column"), shape, framed)
    )


# ---- one matrix ------------------------------------------------------------------------------------------------------


def values_of(part: Matrix, report: StepReport, name: str) -> torch.Tensor:
    """The numbers (R, C) of a picture of a matrix."""
    whole = {"weight": report.before, "gradient": report.gradients}.get(name, {part.name: report.step(part.name)})
    return part.of(whole[part.name])


def picture(part: Matrix, report: StepReport, name: str, i: int, j: int) -> dict[str, Any] | None:
    """One of the pictures of a matrix, with one weight framed, and its sentence."""
    values = values_of(part, report, name).numpy()
    starts = [n - n % MOST_DRAWN for n in (i, j)]
    rows, columns = (range(n, min(n + MOST_DRAWN, count)) for n, count in zip(starts, values.shape))
    figure = weights_map(values[rows.start : rows.stop, columns.start : columns.stop], name, rows, columns, (i, j))
    words = framed_words(name, (i, j), values[i, j].item(), values.shape, (rows, columns))
    return show(figure, words, picture=name)


# ---- numbers and words -----------------------------------------------------------------------------------------------


def headline(part: Matrix, report: StepReport, name: str) -> str:
    """What the step does to the loss, and the largest number of the picture of one matrix."""
    largest = float(values_of(part, report, name).abs().max())
    words = "" if name == "weight" else largest_words(name, part.title, largest)
    return theme.result(Result(step_headline(report.loss_before, report.loss_after), words), tag="h2")


def rates(report: StepReport) -> str:
    """The gradient and what clipping did; the learning rate."""
    clipped = "not clipped" if report.clipped >= 1 else f"clipped to {report.config.gradient_clip:g}"
    return f"Gradient norm: {report.gradient_norm:.3f} ({clipped}). Learning rate: {report.config.learning_rate:g}."


def weight_receipt(part: Matrix, report: StepReport, i: int, j: int) -> str:
    """One weight's update, computed by hand in float64, beside PyTorch's result."""
    before, gradient, after = (
        part.of(x[part.name])[i, j].item() for x in (report.before, report.gradients, report.after)
    )
    config, decay = report.config, report.decays[part.name]
    rate = config.learning_rate
    hand = first_adamw_step(before, gradient, rate, config.beta1, config.beta2, decay)
    rows = [
        ("weight before", signed(before, 8)),
        ("gradient, after clipping", brief(gradient, 8)),
        (f"m = (1 − {config.beta1:g}) · gradient, ÷ (1 − {config.beta1:g})", brief(hand["m_corrected"], 8)),
        (f"v = (1 − {config.beta2:g}) · gradient², ÷ (1 − {config.beta2:g})", brief(hand["v_corrected"], 8)),
        (f"move = −{rate:g} · m ÷ (√v + 10⁻⁸)", brief(hand["move"], 8)),
        (f"weight decay = −{rate:g} · {decay:g} · weight", brief(hand["shrink"], 8)),
        ("weight after, in the model", signed(after, 8)),
        ("by hand − in the model", f"{hand['after'] - after:.1e}".replace("-", "−")),
    ]
    return theme.table((f"{part.title}, row {i}, column {j}", ""), rows, save="one-weight") + theme.quiet(ADAM)
