"""Training: one real optimizer step on the prompt, on a copy of the model; one weight by hand. Beside it moments.py."""

from __future__ import annotations

import functools
from typing import Any

from ....figures.attention import weights_map
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
    framed_words,
    step_headline,
    step_words,
)
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

TRAINED = "trained"
RULES = {TRAINED: "As in its training", "adamw": "AdamW", "muon": "Muon", "sgd": "Plain SGD"}
HEAD_MATRICES = {"q": "Wq of this head", "k": "Wk of this head", "v": "Wv of this head", "o": "Wo of this head"}
PICTURES = {"step": "Step", "gradient": "Gradient", "weight": "Weights"}
"""The pictures of one matrix."""
SWITCH = {"step": "One optimizer step", "moments": "Through training"}
MOST_DRAWN = 64
"""Rows and columns of a matrix that a picture shows at most: those around the framed weight."""

TEMPLATE = f"""{slot("training-problem")}
<section data-unless="training-problem"><section data-for="training:step">
<div class="card stack">{slot("training-headline")}{switch("picture", "Picture", PICTURES)}
{chart_place("training-picture", height=280, save_name="matrix", clickable=True)}
<div class="line">{choice("optimizer", "Optimizer", RULES, resets="row column")}{slot("training-matrix")}</div>
<details><summary>Details</summary>{slot("training-rates", tag="p", class_="quiet")}
<p class="quiet">A copy of the model predicts each token of the prompt, then takes the first step of a fresh optimizer.
The model itself does not change.</p></details></div>
<details class="fold"><summary>One weight by hand</summary><div class="card">
{slot("training-place", class_="line tight")}{slot("training-weight")}</div></details>
{slot("training-slips")}</section>
{moments.TEMPLATE}</section>"""

_steps = Kept(entries=48)


def slots(at: At) -> dict[str, Slot]:
    """One optimizer step, or the prompt through training."""
    c = at.chosen
    if c.training == "moments":
        return moments.slots(at)
    if problem := unable(at.look):
        return {"training-problem": Slot(problem, lambda: theme.notice(problem))}
    part = chosen_matrix(at.look, at.owner, c.matrix)
    step = (*at.about, c.optimizer)
    place = (*step, part, c.row, c.column)

    @functools.cache
    def report() -> StepReport:
        return step_of(at.look, c.optimizer)

    @functools.cache
    def framed() -> tuple[int, int]:
        moves = part.of(report().step(part.name)).abs()
        largest = divmod(int(moves.argmax()), moves.shape[1])
        return tuple(most if n is None else n for n, most in zip((c.row, c.column), largest))

    return {
        "training-problem": Slot("", lambda: ""),
        "training-matrix": Slot(at.about, lambda: choice("matrix", "Matrix", matrices(at.look), resets="row column")),
        "training-headline": Slot((*step, part), lambda: headline(part, report()), slow=True),
        "training-picture": Slot(
            (*place, c.picture),
            lambda: show(*picture(part, report(), c.picture, *framed()), picture=c.picture),
            slow=True,
        ),
        "training-rates": Slot(step, lambda: rates(at.look, report()), slow=True),
        "training-place": Slot((*step, part), lambda: place_fields(shape_of(at.look, part), framed()), slow=True),
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
        "training": c.training if c.training in SWITCH else "step",
        **(moments.within(at) if c.training == "moments" else {}),
        "optimizer": c.optimizer if c.optimizer in RULES else TRAINED,
        "picture": c.picture if c.picture in PICTURES else "step",
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


def place_fields(shape: tuple[int, int], framed: tuple[int, int]) -> str:
    """Fields for the row and the column of one weight."""
    return "".join(
        f'<label class="field-label">{title}'
        f'<input type="number" name="{title.lower()}" min="0" max="{count - 1}" step="1" value="{n}"></label>'
        for title, count, n in zip(("Row", "Column"), shape, framed)
    )


# ---- one matrix ------------------------------------------------------------------------------------------------------


def picture(part: Matrix, report: StepReport, name: str, i: int, j: int) -> tuple[dict[str, Any], str]:
    """One of the pictures of a matrix, with one weight framed, and its sentence."""
    whole = {"weight": report.before, "gradient": report.gradients}.get(name, {part.name: report.step(part.name)})
    values = part.of(whole[part.name]).numpy()
    starts = [n - n % MOST_DRAWN for n in (i, j)]
    rows, columns = (range(n, min(n + MOST_DRAWN, count)) for n, count in zip(starts, values.shape))
    figure = weights_map(values[rows.start : rows.stop, columns.start : columns.stop], name, rows, columns, (i, j))
    return figure, framed_words(name, (i, j), values[i, j].item(), values.shape, (rows, columns))


# ---- numbers and words -----------------------------------------------------------------------------------------------


def headline(part: Matrix, report: StepReport) -> str:
    """What the step does to the loss, and how far it moves the weights of one matrix."""
    before, step = part.of(report.before[part.name]), part.of(report.step(part.name))
    words = step_words(part.title, float(before.abs().max()), float(step.abs().max()))
    return theme.result(Result(step_headline(report.loss_before, report.loss_after), words), tag="h2")


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
