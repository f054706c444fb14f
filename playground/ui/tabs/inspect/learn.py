"""How Q, K and V are trained: one real optimizer step on the prompt, on a copy, and the arithmetic of one weight."""

from __future__ import annotations

from typing import Any

import gradio as gr
import numpy as np
import torch

from ....figures.attention import signed_map
from ....figures.bars import named_bars
from ....inspection import Look
from ....inspection.head_matrices import Matrix, head_matrix
from ....inspection.optimizer_step import StepReport, first_adamw_step, optimizer_step
from ....kept import Kept
from ....service.limits import STEP_PARAMETERS as MOST_PARAMETERS
from ....training import TrainConfig
from ....words.numbers import brief, signed
from ... import theme
from ...chart import Chart, show
from ...gradio_fixes.lenient import LenientDropdown, LenientNumber, SteadyRadio
from ...slips import slips
from ...widgets.clicks import cell_of
from .frame import Frame, Place

TITLE = "How it learns"
TRAINED = "trained"
RULES = {TRAINED: "as it was trained", "adamw": "AdamW", "muon": "Muon", "sgd": "plain gradient (SGD)"}
HEAD_MATRICES = {"q": "W_q of this head", "k": "W_k of this head", "v": "W_v of this head", "o": "W_o of this head"}
MOST_DRAWN = 64
"""Rows and columns of a matrix that are drawn at most."""
MOST_ROWS = 160
ROUNDING = 1e-6
"""A gradient this small beside those of all weights is what 32-bit numbers leave of a sum that comes to nothing."""


def build(frame: Frame) -> None:
    """The step on top, four pictures of one matrix, one weight by hand, and every parameter in a table."""
    with gr.Column(elem_classes="card"):
        gr.HTML(
            theme.heading(
                "One real training step on this prompt",
                "A copy of the model reads the prompt, is told at every token what really came next, and takes one "
                "optimizer step. The model you chose stays as it is.",
            ),
            padding=False,
        )
        with gr.Row():
            rule = SteadyRadio(
                [(title, name) for name, title in RULES.items()], value=TRAINED, label="Optimizer",
                elem_classes="pills", elem_id="learn-rule",
            )  # fmt: skip
            matrix = LenientDropdown(
                [(title, name) for name, title in HEAD_MATRICES.items()], value="q", label="Weights to watch",
                info="Layer and head are chosen above.", filterable=False, elem_id="learn-matrix",
            )  # fmt: skip
        cards = gr.HTML(padding=False, elem_id="learn-cards")
    with gr.Row(equal_height=True):
        with gr.Column(min_width=300, elem_classes="card"):
            before = Chart(height=260, save_name="before", clickable=True, elem_id="learn-before")
        with gr.Column(min_width=300, elem_classes="card"):
            gradient = Chart(height=260, save_name="gradient", clickable=True, elem_id="learn-gradient")
    with gr.Row(equal_height=True):
        with gr.Column(min_width=300, elem_classes="card"):
            difference = Chart(height=260, save_name="weight-step", clickable=True, elem_id="learn-step")
        with gr.Column(min_width=300, elem_classes="card"):
            after = Chart(height=260, save_name="after", clickable=True, elem_id="learn-after")
    with gr.Row(equal_height=False):
        with gr.Column(scale=3, min_width=320, elem_classes="card"):
            with gr.Row():
                row = LenientNumber(0, label="Row", precision=0, minimum=0, min_width=90, elem_id="learn-row")
                column = LenientNumber(
                    0, label="Column", precision=0, minimum=0, min_width=90, info="Or click a cell above.",
                    elem_id="learn-column",
                )  # fmt: skip
            weight = gr.HTML(padding=False, elem_id="learn-weight")
        with gr.Column(scale=2, min_width=300, elem_classes="card"):
            gr.HTML(theme.heading("Who is pushed hardest", "Length of the gradient, part by part."), padding=False)
            norms = Chart(height=300, save_name="gradient-norms", elem_id="learn-norms")
    textbooks = gr.HTML(padding=False, elem_id="learn-slips")
    with gr.Accordion("Every parameter: shape, share, gradient, step", open=False):
        table = gr.HTML(padding=False, elem_id="learn-table")

    def draw(look: Look, place: Place, by: str, which: str, i: Any, j: Any) -> dict[Any, Any]:
        report = step_of(look, by)
        part = chosen_matrix(look, place, which, report)
        i, j, shape = within(part, report, i, j)
        pictures = {name: picture(part, report, name, i, j) for name in ("before", "gradient", "step", "after")}
        return {
            matrix: gr.Dropdown(choices=matrices(report), value=which if which in HEAD_MATRICES else part.name),
            cards: step_cards(look, report),
            before: show(*pictures["before"]),
            gradient: show(*pictures["gradient"]),
            difference: show(*pictures["step"]),
            after: show(*pictures["after"]),
            row: gr.Number(i, maximum=shape[0] - 1),
            column: gr.Number(j, maximum=shape[1] - 1),
            weight: weight_receipt(part, report, i, j),
            norms: show(*norms_picture(report)),
            table: parameter_table(report),
        }

    outputs = [matrix, cards, before, gradient, difference, after, row, column, weight, norms, table]
    frame.follow(draw, outputs, extra=[rule, matrix, row, column], slow=True)
    frame.follow(
        lambda look, place: {textbooks: slips("padding", "loops", "dropout")}, [textbooks], per="head", slow=True
    )
    for event, of in ((rule.input, rule), (matrix.input, matrix), (row.submit, row), (column.submit, column)):
        frame.redraws(event, of=of)

    def to_weight(look: Look, place: Place, values: dict, event: gr.EventData) -> dict:
        i, j = cell_of(event, rows=MOST_DRAWN, columns=MOST_DRAWN)
        return {row: i, column: j}

    for chart in (before, gradient, difference, after):
        frame.redraws(chart.select, to_weight)


def step_of(look: Look, rule: str) -> StepReport:
    """One step on this prompt. Raises ValueError where it cannot be taken."""
    if look.config.n_parameters > MOST_PARAMETERS:
        raise ValueError(
            f"this model has {look.config.n_parameters:,} parameters; a step is taken here for models of up to "
            f"{MOST_PARAMETERS:,}"
        )
    by, config = None if rule == TRAINED else rule, settings_of(look)
    return _steps.get((look.ids, rule), lambda: optimizer_step(look.model, look.ids, config, by), owner=look.model)


_steps = Kept(entries=48)


def settings_of(look: Look) -> TrainConfig:
    """How the model was trained, as far as its record says; else the usual settings."""
    noted = look.checkpoint.about.get("training")
    try:
        return TrainConfig.from_dict(noted) if isinstance(noted, dict) else TrainConfig()
    except (TypeError, ValueError):
        return TrainConfig()


def matrices(report: StepReport) -> list[tuple[str, str]]:
    """The head's four matrices, then every parameter by name."""
    return [*((title, name) for name, title in HEAD_MATRICES.items()), *((name, name) for name in report.before)]


def chosen_matrix(look: Look, place: Place, which: str, report: StepReport) -> Matrix:
    """The numbers to watch; a name that this model lacks means the head's W_q."""
    if which in report.before:
        return Matrix(which, which)
    return head_matrix(look.config, which if which in HEAD_MATRICES else "q", place.layer, place.head)


def within(part: Matrix, report: StepReport, i: Any, j: Any) -> tuple[int, int, tuple[int, int]]:
    """Row and column of a weight that exists, nearest to those asked for, and the matrix's shape."""
    rows, columns = part.of(report.before[part.name]).shape
    found = []
    for asked, most in ((i, rows), (j, columns)):
        asked = asked if isinstance(asked, (int, float)) and asked == asked else 0
        found.append(int(min(max(asked, 0), most - 1)))
    return found[0], found[1], (rows, columns)


def picture(part: Matrix, report: StepReport, name: str, i: int, j: int) -> tuple[dict[str, Any], str]:
    """One of the four pictures and its sentence."""
    tensors = {
        "before": report.before[part.name],
        "gradient": report.gradients[part.name],
        "step": report.step(part.name),
        "after": report.after[part.name],
    }
    values = part.of(tensors[name]).numpy()
    drawn = values[:MOST_DRAWN, :MOST_DRAWN]
    rows, columns = ([str(n) for n in range(length)] for length in drawn.shape)
    mark = (i, j) if i < drawn.shape[0] and j < drawn.shape[1] else None
    limit = float(part.of(tensors["before"]).abs().max()) if name in ("before", "after") else None
    figure = signed_map(drawn, rows, columns, name=name, mark=mark, limit=limit or None, height=280)
    for side, length in (("yaxis", drawn.shape[0]), ("xaxis", drawn.shape[1])):
        ticks = list(range(0, length, 8 if length > 12 else 1))
        figure["layout"][side] |= {"tickvals": ticks, "ticktext": [str(n) for n in ticks], "tickangle": 0}
    typical = float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))
    usual, pulled = rounding_beside(part, report), part.of(tensors["gradient"])
    nearly = "rounding, nearly nothing" if pulled.any() else "nothing"
    small = f" That is {nearly}: those of all weights are typically ±{brief(usual)}." if usual else ""
    words = {
        "before": f"{part.title} before: {values.shape[0]} × {values.shape[1]} weights, typically "
        f"±{brief(typical, 3)}.",
        "gradient": f"Its gradient: none before the backward pass, one number for every weight after it, typically "
        f"±{brief(typical)}." + small,
        "step": f"The difference, after − before: typically ±{brief(typical)}, "
        f"{_percent(typical, part.of(tensors['before']).numpy())} of a weight."
        + (" It was made of a gradient that is rounding, and leads nowhere." if usual and pulled.any() else "")
        if values.any()
        else "The difference, after − before: nothing moved.",
        "after": f"After the step{_seen(part, report)}.",
    }[name]
    if drawn.shape != values.shape:
        words += f" Drawn: the first {drawn.shape[0]} × {drawn.shape[1]}."
    return figure, words


def rounding_beside(part: Matrix, report: StepReport) -> float:
    """The typical gradient of all weights, where that of this part is only rounding beside it; else 0."""
    count = sum(tensor.numel() for tensor in report.before.values())
    usual = report.gradient_norm * report.clipped / count**0.5
    own = part.of(report.gradients[part.name])
    return usual if own.double().square().mean().sqrt().item() < ROUNDING * usual else 0.0


def _seen(part: Matrix, report: StepReport) -> str:
    """Whether a step shows on the scale of the weights that it changes."""
    before, moved = part.of(report.before[part.name]), part.of(report.step(part.name))
    largest, farthest = float(before.abs().max()), float(moved.abs().max())
    if not farthest:
        return ": nothing moved"
    if not largest:
        return f": all weights were 0, and none is now further from it than {brief(farthest)}"
    share = farthest / largest
    words = (
        f", on the scale of the first picture: of all {before.numel():,} weights, the one that moved farthest did so "
        f"by {brief(farthest)}, {brief(100 * share)} % of the largest weight before ({brief(largest)})"
    )
    return f"{words}, which no eye sees: training takes many steps" if share < 0.05 else f"{words}, which can be seen"


def _percent(step: float, before: np.ndarray) -> str:
    size = float(np.sqrt(np.mean(np.square(before, dtype=np.float64))))
    return f"{brief(100 * step / size)} %" if size else "and they were all 0: no share"


def step_cards(look: Look, report: StepReport) -> str:
    """The loss before and after, the gradient, what clipping did, the rates."""
    its = isinstance(look.checkpoint.about.get("training"), dict) and "sgd" not in report.learning_rates
    fell = report.loss_before - report.loss_after
    rates = ", ".join(f"{RULES.get(name, name)} {rate:g}" for name, rate in report.learning_rates.items())
    clipped = (
        "not clipped" if report.clipped >= 1 else f"clipped to {report.config.gradient_clip:g}: × {report.clipped:.3f}"
    )
    peak = "peak by the run's settings" if its else "not the run's, but the usual one"
    return theme.stat_cards(
        [
            ("loss before", f"{report.loss_before:.4f}", "nats per token of this prompt"),
            ("loss after", f"{report.loss_after:.4f}", f"{'fell' if fell >= 0 else 'rose'} by {abs(fell):.4f}"),
            ("gradient's length", f"{report.gradient_norm:.3f}", clipped),
            ("learning rate", rates, f"{peak}; a fresh optimizer's first step"),
        ]
    )


def weight_receipt(part: Matrix, report: StepReport, i: int, j: int) -> str:
    """One weight's way through the step, by hand in float64, beside what PyTorch did."""
    before, gradient, after = (
        part.of(x[part.name])[i, j].item() for x in (report.before, report.gradients, report.after)
    )
    rule, config = report.rules[part.name], report.config
    rate = report.learning_rates[rule]
    decay = report.decays[part.name]
    lines = [("weight before", signed(before, 8)), ("gradient (as the optimizer saw it)", brief(gradient, 8))]
    if rule == "adamw":
        hand = first_adamw_step(before, gradient, rate, config.beta1, config.beta2, decay)
        lines += [
            (f"m = (1 − {config.beta1:g}) · gradient, ÷ (1 − {config.beta1:g})", brief(hand["m_corrected"], 8)),
            (f"v = (1 − {config.beta2:g}) · gradient², ÷ (1 − {config.beta2:g})", brief(hand["v_corrected"], 8)),
            (f"move = −{rate:g} · m ÷ (√v + 10⁻⁸)", brief(hand["move"], 8)),
            (f"weight decay = −{rate:g} · {decay:g} · weight", brief(hand["shrink"], 8)),
        ]
        expected = hand["after"]
        note = "Adam divides by the gradient's own size, so in its first step every weight moves by about the rate."
        if abs(hand["move"]) < rate / 2:
            note += " This one does not: beside the 10⁻⁸ that is added, its gradient is small."
    elif rule == "sgd":
        expected = before - rate * gradient
        lines.append((f"move = −{rate:g} · gradient", brief(-rate * gradient, 8)))
        note = "Plain gradient descent moves large gradients far and small ones hardly at all."
    else:
        expected = None
        lines.append((f"weight decay = −{rate:g} · {decay:g} · weight", brief(-rate * decay * before, 8)))
        lines.append(("move (from the orthogonalised matrix)", brief(after - before + rate * decay * before, 8)))
        note = muon_note(part, report, i)
    lines.append(("weight after, in the model", signed(after, 8)))
    if expected is not None:
        lines.append(("by hand − in the model", f"{expected - after:.1e}"))
    rows = [(name, value.replace("-", "−")) for name, value in lines]
    head = (f"{part.title}, row {i}, column {j}", "")
    return theme.table(head, rows, save="one-weight") + theme.quiet(note)


def muon_note(part: Matrix, report: StepReport, row: int) -> str:
    """What Muon does to the matrix of a part's row that it turns as one, from its singular values."""
    shape = report.before[part.name].shape
    heads, experts = part.name.endswith("qkv.weight"), len(shape) > 2
    turned = "each head's matrix" if heads else "each expert's matrix" if experts else "the whole matrix"
    above = row - row % shape[-2]  # experts lie below one another
    shown = part if heads else Matrix(part.title, part.name, above, above + shape[-2])
    gradient, step, by = report.gradients[part.name], report.step(part.name), report.rules[part.name]
    decay = report.decays[part.name] * report.learning_rates[by]
    pulled = torch.linalg.svdvals(shown.of(gradient).float())
    moved = torch.linalg.svdvals(shown.of(step + decay * report.before[part.name]).float())
    count = int((pulled > 1e-6 * pulled[0]).sum())  # the gradient has no more directions
    rule = (
        f"Muon has no formula for one weight: it turns the gradient of {turned} into one whose directions are nearer "
        "to equally strong."
    )
    if count == 0:
        return f"{rule} This gradient is nothing, so there is no direction to go."
    if rounding_beside(shown, report):
        return (
            f"{rule} It does not ask how strong they are together: this gradient is rounding, nearly nothing beside "
            "the others, and becomes a step of full size."
        )
    if count == 1:
        return f"{rule} This gradient has a single direction (singular value), so there is nothing to even out."

    def spread(strengths: torch.Tensor) -> str:
        middle, weakest = (float(strengths[0] / strengths[i].clamp(min=1e-12)) for i in (count // 2, count - 1))
        middle, weakest = (f"{factor:,.0f}" if factor >= 10 else f"{factor:.1f}" for factor in (middle, weakest))
        if count == 2:
            return f"{weakest} times as strong as the other"
        return f"{middle} times as strong as the middle one and {weakest} times as the weakest"

    words = (
        f"{rule} Of the gradient's {count} directions (singular values), the strongest is "
        f"{spread(pulled)}; of the step's {count} strongest, weight decay apart, it is {spread(moved)}."
    )
    if not (rest := len(pulled) - count):
        return words
    return (
        f"{words} Of the {len(pulled)} singular values that a matrix of this shape has, the other {rest} "
        f"{'is' if rest == 1 else 'are'} below a millionth of the strongest, which is rounding."
    )


def norms_picture(report: StepReport) -> tuple[dict[str, Any], str]:
    """Gradient length by part of the model."""
    names, values = list(report.norms), list(report.norms.values())
    most = int(np.argmax(values))
    names = [f"layer {name}" if name[:1].isdigit() else name for name in names]
    names = [name.replace("feedforward", "feed-forward").replace("_", " ") for name in names]
    return (
        named_bars(names, values, "length of the gradient"),
        f"The prompt pulls hardest on {names[most]} ({values[most]:.3f} of {report.gradient_norm:.3f} in all, before "
        "any clipping; lengths add as squares).",
    )


def parameter_table(report: StepReport) -> str:
    """Every parameter with its shape, its share and what the step did."""
    count = sum(weights.numel() for weights in report.before.values())
    body = []
    for name, weights in list(report.before.items())[:MOST_ROWS]:
        share = weights.numel() / count
        norms = [tensor.norm().item() for tensor in (weights, report.gradients[name], report.step(name))]
        numbers = [theme.Cell(f"{norm:{form}}", norm) for norm, form in zip(norms, (".4f", ".4g", ".4g"))]
        shares = theme.Cell(f"{100 * share:.2f} %", share)
        body.append((name, tuple(weights.shape), f"{weights.numel():,}", shares, RULES[report.rules[name]], *numbers))
    heads = ("parameter", "shape", "numbers", "share", "moved by", "‖weights‖", "‖gradient‖, clipped", "‖step‖")
    total = f"{count:,} trainable numbers in {len(report.before)} parameters."
    more = f" The first {MOST_ROWS} are shown." if len(report.before) > MOST_ROWS else ""
    return theme.table(heads, body, save="parameters-stepped") + theme.quiet(total + more)
