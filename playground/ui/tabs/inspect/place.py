"""Place: the layer, head, query and key looked at, and where it goes when a prompt or a head is chosen."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....inspection import Look
from ....inspection.heads import flops_of_moves, head_scores, moves, ranked
from ....kept import Kept
from ....service.limits import HEADS_AT_ONCE_FLOPS


@dataclass(frozen=True)
class Place:
    """Where the visitor looks: all counted from 0."""

    layer: int = 0
    head: int = 0
    query: int = 0
    """The token that asks."""
    key: int = 0
    """The token that it looks at."""

    @property
    def owner(self) -> tuple[int, int]:
        """Layer and head."""
        return self.layer, self.head

    def at(self, **changes: int) -> Place:
        """The same place with some of its numbers changed."""
        return dataclasses.replace(self, **changes)

    def within(self, look: Look) -> Place:
        """The nearest place that this prompt and model have; under a causal mask no key after its query."""
        layer = min(max(self.layer, 0), look.config.n_layers - 1)
        head = min(max(self.head, 0), look.config.n_heads - 1)
        query = min(max(self.query, 0), look.length - 1)
        return Place(layer, head, query, min(max(self.key, 0), look.length - 1))


_moved = Kept(entries=64, megabytes=4)


def moved(look: Look) -> np.ndarray | None:
    """How far the prediction after this prompt moves without each head (L, H), in nats; None for too large a model."""
    if flops_of_moves(look) > HEADS_AT_ONCE_FLOPS:
        return None
    return _moved.get("moved", lambda: moves(look), owner=look)


def ranking(look: Look) -> list[tuple[int, int]]:
    """(layer, head) of all heads, first the one without which the prediction after this prompt changes most.

    Of a model too large to try that, the one whose pattern shows most.
    """
    found = moved(look)
    return head_scores(look).ranking() if found is None else ranked(found)


def best(found: Look, place: Place) -> Place:
    """The head that this prompt's prediction owes most, its last token, and what that one watches most."""
    layer, head = ranking(found)[0]
    return last(found, place.at(layer=layer, head=head))


def last(found: Look, place: Place) -> Place:
    """The same head, the last token, and what that one watches most."""
    return watched(found, place.within(found).at(query=found.length - 1))


def at_link(linked: Mapping[str, int], found: Look, place: Place) -> Place:
    """The numbers that a link gives; the others as the view opens by itself."""
    opened = best(found, place) if not linked.keys() >= {"layer", "head"} else place
    return last(found, opened.at(**linked)).at(**linked)


def watched(found: Look, place: Place) -> Place:
    """The same head and query, and the key that it watches most."""
    return place.at(key=int(found.pattern(place.layer)[place.head, place.query].argmax()))


def whole(value: Any) -> int:
    """A number that a page sent; 0 for anything that is none."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
