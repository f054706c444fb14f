"""Place: the layer, head, query and key looked at, and where it goes when a prompt or a head is chosen."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from ....inspection import Look
from ....inspection.heads import head_scores


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


def best(found: Look, place: Place) -> Place:
    """The most telling head of this prompt, its last token, and what that one watches most."""
    layer, head = head_scores(found).ranking()[0]
    return last(found, place.at(layer=layer, head=head))


def last(found: Look, place: Place) -> Place:
    """The same head, the last token, and what that one watches most."""
    return watched(found, place.within(found).at(query=found.length - 1))


def watched(found: Look, place: Place) -> Place:
    """The same head and query, and the key that it watches most."""
    return place.at(key=int(found.pattern(place.layer)[place.head, place.query].argmax()))


def whole(value: Any) -> int:
    """A number that a page sent; 0 for anything that is none."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
