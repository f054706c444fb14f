"""What the Inspect panel selects (model, prompt, head, tokens, edits, open folds), and what a view gets of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, Field

from ....inspection import Look
from ....inspection.edits import Edit, from_dict
from ....inspection.heads import flops_of_moves, head_scores, moves, ranked
from ....interventions.patching import Donor
from ....kept import Kept
from ....service.limits import EDITS, HEADS_AT_ONCE_FLOPS, PATCHES
from ...page import Page
from ...selected import Selected

MODEL = "model"
"""The subject that is no worked example: the chosen model."""
VIEWS = {"steps": "Step by step", "heads": "Heads", "training": "Training", "cost": "Cost"}


class Cell(BaseModel, frozen=True):
    """A part of the model at one token, which takes the other prompt's value."""

    part: str
    layer: int
    index: int | None
    """Of the head or expert."""
    place: int


class Selection(Selected):
    """All that the browser keeps of this tab. Tokens, layers and heads count from 0."""

    model: str = ""
    subject: str = MODEL
    prompt: str | None = None
    """None stands for the model's own suggestion."""
    typed: bool = False
    """Whether the visitor typed it: then it stays when a model is chosen that can read it."""
    read_by: str = ""
    """The model that last read it."""
    view: Literal["steps", "heads", "training", "cost"] = "heads"
    step: str = "embed"
    layer: int | None = None
    head: int | None = None
    suggested: tuple[int, int] | None = None
    """The layer and head that the page chose; while they are selected, another prompt brings its own."""
    query: int | None = None
    """The token that looks; None stands for the last."""
    key: int | None = None
    """The token that it looks at; None stands for the one with the largest weight."""
    strip: Literal["head", "all"] = "head"
    """Whose weights shade the prompt: the chosen head's, or the mean over all heads."""
    edits: tuple[dict[str, Any], ...] = ()
    """Edits in force, as `inspection.edits.to_dict` writes them."""
    why: bool = False
    """Whether the receipt is open."""
    compare: bool = False
    with_model: str = ""
    with_layer: int | None = None
    with_head: int | None = None
    """The head to compare with; by itself the most important other one of the same model."""
    roles: bool = False
    change: bool = False
    worth: bool = False
    lens: bool = False
    kv: bool = False
    """Whether the measurement of the KV cache is open."""
    patch: bool = False
    steer: bool = False
    circuit: bool = False
    other: str | None = None
    """The second prompt, from whose run parts are patched; None stands for a suggestion."""
    part: Literal["residual", "head", "mlp", "expert"] = "residual"
    path: Literal["total", "direct"] = "total"
    """Which effect of a patch: through all later layers, or straight to the logits."""
    donor: Donor = Donor.OTHER
    kept: tuple[Cell, ...] = Field((), max_length=PATCHES)
    """Patches that stay."""
    towards: str | None = None
    """Prompts, one a line, from whose mean the steering direction leads; None stands for a suggestion."""
    away: str | None = None
    steered: str | None = ""
    """The two prompts for which the sides, layer and strength were suggested; None if the visitor wrote the sides."""
    steer_on: str | None = None
    """The prompt on which steering is shown, where it does not work on the visitor's."""
    steer_layer: int | None = None
    strength: float = 1.0
    edit: Literal["head", "attention", "feed-forward", "layer", "uniform", "previous", "set", "mask", "mask here"] = (
        "head"
    )
    edit_value: float = 0.5
    training: Literal["step", "moments"] = "step"
    matrix: str = "q"
    picture: Literal["gradient", "step", "weight"] = "gradient"
    """Of a matrix."""
    row: int | None = None
    column: int | None = None
    """Of the framed weight; None stands for the one with the largest gradient."""
    look_at: str = ""
    """The habit whose appearance through training is drawn; empty stands for the one that grew most."""
    moment: int | None = None
    """Which of the run's snapshots; None stands for the last."""


@dataclass(frozen=True, eq=False)
class At:
    """What a view of the tab draws from."""

    page: Page
    visitor: str
    chosen: Selection
    """Within what there is: layer, head, query and key are numbers that this look has."""
    look: Look
    weights: Any
    """Tells the model's weights from those that training will put in their place."""

    @property
    def owner(self) -> tuple[int, int]:
        """The chosen layer and head."""
        return self.chosen.layer, self.chosen.head

    @property
    def about(self) -> tuple:
        """The values on which every picture of this prompt depends."""
        return self.chosen.model, self.chosen.subject, self.weights, self.look.ids

    @functools.cached_property
    def edits(self) -> list[Edit]:
        """The edits in force. Raises ValueError for what is none."""
        return parsed(self.chosen.edits)


def parsed(edits: tuple[Mapping[str, Any], ...]) -> list[Edit]:
    """Edits from what a browser sent. Raises ValueError."""
    try:
        if len(edits) > EDITS:
            raise ValueError
        return [from_dict(each) for each in edits]
    except (TypeError, ValueError, RecursionError, KeyError):
        raise ValueError("This list of edits cannot be read. Press “Restore all”") from None


def within(selection: Selection, look: Look) -> Selection:
    """The nearest selection that this model and prompt have.

    Unless the visitor chose a head, it goes to the one that matters most; without a query to the last token, without a
    key to the token that gets the largest weight.
    """
    config = look.config
    if None in (owner := (selection.layer, selection.head)) or owner == selection.suggested:
        layer, head = suggested = ranking(look)[0]
        selection = selection.moved(layer=layer, head=head, suggested=suggested)
    layer, head = _clamped(selection.layer, config.n_layers), _clamped(selection.head, config.n_heads)
    if selection.steer_layer is not None:
        selection = selection.moved(steer_layer=_clamped(selection.steer_layer, config.n_layers))
    query = look.length - 1 if selection.query is None else _clamped(selection.query, look.length)
    key = selection.key
    key = strongest_key(look, layer, head, query) if key is None else _clamped(key, look.length)
    return selection.moved(layer=layer, head=head, query=query, key=key)


def strongest_key(look: Look, layer: int, head: int, query: int) -> int:
    """The token with the largest weight."""
    return int(look.pattern(layer)[head, query].argmax())


def _clamped(value: int, count: int) -> int:
    return min(max(value, 0), count - 1)


_moved = Kept(entries=64, megabytes=4)


def importance(look: Look) -> np.ndarray | None:
    """How far the next-token prediction moves without each head (L, H), in nats; None for too large a model."""
    if flops_of_moves(look) > HEADS_AT_ONCE_FLOPS:
        return None
    return _moved.get("moved", lambda: moves(look), owner=look)


def ranking(look: Look) -> list[tuple[int, int]]:
    """(layer, head) of all heads, the largest effect first; in a model too large for that, the clearest pattern."""
    found = importance(look)
    return head_scores(look).ranking() if found is None else ranked(found)
