"""Scene: what one visitor has on the page at one moment, for the facts of lessons."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..game.rules import Game
from ..inspection import Look
from ..inspection.edits import Edit
from ..inspection.precision import PrecisionCost
from ..inspection.receipts import Receipt, receipt
from ..inspection.replay import Appearance
from ..model import ModelConfig
from ..service.views import PairView, RunView
from ..storage import Checkpoint
from ..training import History

Value = float | int | str


class NotYet(ValueError):
    """Something that a fact is about is not there yet; the sentence says what to do."""


class Unsettled(NotYet):
    """What stands on the page just now is not what a step is about: nothing of it is said before it is."""


def _absent(*_: Any) -> Any:
    raise NotYet("That number is not there yet.")


@dataclass
class Scene:
    """What one visitor has on the page at one moment. Each is asked for only where a fact needs it."""

    run: Callable[[str], tuple[RunView, Checkpoint | None]] = _absent
    """The run of this name, and its model once there is one; `chosen` for the model above all tabs."""
    checkpoint: Callable[[], Checkpoint] = _absent
    """The chosen model."""
    look: Callable[[], Look] = _absent
    place: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Layer, head, query and key that are chosen in Inspect."""
    edits: Callable[[], list[Edit]] = _absent
    """The changes in force."""
    held_out: Callable[[Look], Any] = _absent
    """Windows and targets to judge a change by."""
    role: Callable[[Look], str] = _absent
    """The chosen head's tested role."""
    appeared: Callable[[Look], Appearance | None] = _absent
    """When the habit of looking at what followed last time came up."""
    pair: Callable[[], PairView] = _absent
    balance: Callable[[str], tuple[ModelConfig, History]] = _absent
    """A mixture trained "with" a balance loss, or "without": its config, and what was recorded."""
    game: Callable[[], Game] = _absent
    """Of bets on the next token."""
    precision: Callable[[], PrecisionCost] = _absent
    """What bf16 and int8 cost the chosen model, if it was measured."""
    generate_prompt: str = ""
    dice: str = "thrown"
    """none where Generate is greedy, kept where it keeps its seed."""
    lesson_prompt: str = ""
    visitor: str = ""
    """Whose page it is: the order of choices hangs on it."""

    @functools.cached_property
    def looked(self) -> tuple[Look, int, int, int, int]:
        """What Inspect looks at, with a layer, a head, a query and a key that are there. Raises NotYet."""
        look = self.look()
        ends = (look.config.n_layers, look.config.n_heads, look.length, look.length)
        return look, *(min(max(at, 0), end - 1) for at, end in zip(self.place, ends))

    @functools.cached_property
    def receipt(self) -> Receipt:
        """The arithmetic of the chosen cell. Raises NotYet."""
        return receipt(*self.looked)
