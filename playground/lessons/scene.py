"""Scene: what one visitor has on the page at one moment, for the facts of lessons."""

from __future__ import annotations

import functools
from typing import Any

from ..game.rules import Game
from ..inspection import Look
from ..inspection.edits import Edit
from ..inspection.precision import PrecisionCost
from ..inspection.replay import Appearance
from ..model import ModelConfig
from ..service.views import PairView, RunView
from ..storage import Checkpoint
from ..training import History

Value = float | int | str


class NotYet(ValueError):
    """Something that a fact needs is not there yet; the sentence says what to do."""


class Scene:
    """What one visitor has on the page at one moment. Every method raises NotYet if the page has no such thing."""

    place: tuple[int, int, int, int] = (0, 0, 0, 0)
    """The layer, head, query and key chosen in Inspect."""
    generate_prompt: str = ""
    dice: str = "thrown"
    """thrown; none if Generate is greedy, kept if it keeps its seed."""
    lesson_prompt: str = ""

    def run(self, name: str) -> tuple[RunView, Checkpoint | None]:
        """The run with this name, and its model once there is one; `chosen` for the model above all tabs."""
        return _absent()

    def checkpoint(self) -> Checkpoint:
        """The chosen model."""
        return _absent()

    def look(self) -> Look:
        """What Inspect looks at."""
        return _absent()

    def edits(self) -> list[Edit]:
        """The changes in force."""
        return _absent()

    def role(self, look: Look) -> str:
        """The chosen head's tested role."""
        return _absent()

    def appeared(self, look: Look) -> Appearance | None:
        """When the habit of looking at what followed last time appeared."""
        return _absent()

    def pair(self) -> PairView:
        """The pair that this lesson has trained with a balance loss, or else the one shown."""
        return _absent()

    def balance(self, kind: str) -> tuple[ModelConfig, History]:
        """A mixture trained "with" a balance loss, or "without": its config, and what was recorded."""
        return _absent()

    def game(self) -> Game:
        """The game of bets on the next token."""
        return _absent()

    def precision(self) -> PrecisionCost:
        """What bf16 and int8 cost the chosen model, if it was measured."""
        return _absent()

    @functools.cached_property
    def looked(self) -> tuple[Look, int, int, int, int]:
        """What Inspect looks at, with a valid layer, head, query and key. Raises NotYet."""
        look = self.look()
        ends = (look.config.n_layers, look.config.n_heads, look.length, look.length)
        return look, *(min(max(at, 0), end - 1) for at, end in zip(self.place, ends))


def _absent() -> Any:
    raise NotYet("That number is not there yet.")
