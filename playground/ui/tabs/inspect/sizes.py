"""What it costs: parameters by component beside known models, memory of a training step, operations per token."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ....inspection import Look
from ....inspection.sizes import COMPARED, activations, compute
from ....model import PRESETS, ModelConfig
from ....words.numbers import percent
from ... import theme
from ...slips import slips
from .frame import Frame, Place

TITLE = "What it costs"
BATCH = 32
LARGE = ("S3", PRESETS["s3"], 512)
"""A model of GPT-2's size for comparison, and the tokens it reads."""


def build(frame: Frame) -> None:
    """Three tables, each with the slips that belong to it."""
    tables = []
    for title, text, names in (
        ("Where the weights are", "Trainable numbers by component; of a tied output layer none are its own.",
         ("size", "words")),
        ("What a training step keeps in memory", f"The largest parts of one block, for {BATCH} texts, in 32 bits.",
         ("bytes",)),
        ("What one token costs to compute", "Operations (a multiplication and an addition count as two) for the last "
         "of so many tokens.", ("compute",)),
    ):  # fmt: skip
        with gr.Column(elem_classes="card"):
            gr.HTML(theme.heading(title, text), padding=False)
            tables.append(gr.HTML(padding=False))
            gr.HTML(slips(*names), padding=False)

    def draw(look: Look, place: Place) -> dict[Any, Any]:
        here = (look.checkpoint.name or "this model", look.config, look.config.context_length)
        return dict(
            zip(tables, (components({here[0]: look.config, **COMPARED}), memory(here, LARGE), operations(here, LARGE)))
        )

    frame.follow(draw, tables)


def components(models: dict[str, ModelConfig]) -> str:
    """Parameters by component, a column per model."""
    counted = [config.parameters_by_component() for config in models.values()]
    names = [name for name in counted[0] if any(each[name] for each in counted)]
    rows = [[name, *(f"{each[name]:,}" if each[name] else "–" for each in counted)] for name in names]
    rows.append(["in all", *(f"{config.n_parameters:,}" for config in models.values())])
    table = theme.table(["", *models], rows, total=True, save="parameters-beside-others")
    dense, mixed = COMPARED["S5, dense"], COMPARED["S5, eight experts"]
    return table + theme.quiet(
        f"S5 sets {dense.n_parameters:,} beside {mixed.n_parameters:,}: {mixed.n_parameters / dense.n_parameters:.2f} "
        f"times the weights, of which a token uses {mixed.n_active_parameters:,}. Dense vs MoE compares models of "
        "equal cost instead."
    )


def memory(*models: tuple[str, ModelConfig, int]) -> str:
    """Numbers and bytes that a block keeps, by part."""
    kept = [activations(config, BATCH, length) for _, config, length in models]
    rows = [[name, *(_numbers_and_bytes(each[name]) for each in kept)] for name in kept[0]]
    rows.append(["in all", *(_numbers_and_bytes(sum(each.values())) for each in kept)])
    head = ["", *(f"{name}, {length} tokens" for name, _, length in models)]
    words = []
    for (name, _, _), each in zip(models, kept):
        most = max(each, key=each.__getitem__)
        take = "the hidden layer takes" if most == "hidden layer" else f"{most} take"
        words.append(f"In {name}, {take} {percent(each[most] / sum(each.values()), 0)}.")
    return theme.table(head, rows, total=True, save="memory") + theme.quiet(
        f"{' '.join(words)} Scores grow with the square of the tokens, all else with their number; a fused kernel "
        "never stores them."
    )


def _numbers_and_bytes(count: int) -> str:
    return f"{count:,} · {4 * count / 1e6:,.1f} MB"


def operations(*models: tuple[str, ModelConfig, int]) -> str:
    """Operations per token, by part."""
    shares = [compute(config, length) for _, config, length in models]
    names = list(dict.fromkeys(name for each in shares for name in each))
    names.sort(key=lambda name: name == "output layer")
    rows = [
        [
            name,
            *(
                f"{each[name]:,} · {percent(each[name] / sum(each.values()), 0)}" if name in each else "–"
                for each in shares
            ),
        ]
        for name in names
    ]
    rows.append(["in all", *(f"{sum(each.values()):,}" for each in shares)])
    return theme.table(
        ["", *(f"{name}, {length} tokens" for name, _, length in models)], rows, total=True, save="operations"
    )
