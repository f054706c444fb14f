"""Checks of a config's fields: by each field's declared type and given bounds, with the same error messages for all."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

MOST_WHOLE = 2**63 - 1
"""The largest whole number: torch counts and seeds with 64 bits."""


@dataclass(frozen=True)
class Bounds:
    """The numbers between which a field must lie."""

    least: float = -math.inf
    most: float = math.inf
    open: bool = False
    """Whether finite bounds themselves are left out."""

    def hold(self, value: float) -> bool:
        """Whether the number lies within the bounds."""
        if self.open and value in (self.least, self.most):
            return False
        return self.least <= value <= self.most

    def __str__(self) -> str:
        least, most = (f"{end:g}" if math.isfinite(end) else "" for end in (self.least, self.most))
        if self.open:
            return " and ".join(words for words in (least and f"above {least}", most and f"below {most}") if words)
        return f"from {least} to {most}" if least and most else f"of at least {least}" if least else ""


Same = TypeVar("Same", bound="Settings")


class Settings:
    """The base of all settings: dataclasses whose fields are plain values."""

    OF: ClassVar[str]
    """What the settings are for, in words."""

    def replace(self: Same, **changes: Any) -> Same:
        """A copy with some fields changed, validated again. Unknown names raise ValueError."""
        check_names(type(self), changes, self.OF)
        return dataclasses.replace(self, **changes)

    def differences(self: Same, other: Same) -> dict[str, tuple[Any, Any]]:
        """Fields in which two settings differ: name → (here, there)."""
        names = (field.name for field in dataclasses.fields(self))
        return {n: (getattr(self, n), getattr(other, n)) for n in names if getattr(self, n) != getattr(other, n)}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` is its inverse."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls: type[Same], values: dict[str, Any]) -> Same:
        """Settings from plain values; missing fields take their defaults, unknown ones raise ValueError."""
        check_names(cls, values, cls.OF)
        return cls(**values)


def check_fields(config: Any, limits: Mapping[str, Bounds | Sequence[str]] | None = None) -> None:
    """Check every field of a dataclass (its annotations are strings). Raises ValueError with a sentence.

    Args:
        limits: field → a number's bounds, or a text's allowed words.
    """
    for field in dataclasses.fields(config):
        check_value(field.name, getattr(config, field.name), str(field.type), (limits or {}).get(field.name))


def check_value(name: str, value: Any, kind: str, limit: Bounds | Sequence[str] | None = None) -> None:
    """Check one value; `kind` is int, float, bool or str, with "| None" if the value may be missing."""
    kind, _, optional = kind.partition(" | ")
    if optional and value is None:
        return
    empty = " or empty" if optional else ""
    if kind == "bool":
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be true or false, not {_shown(value)}")
    elif kind == "str":
        if not isinstance(value, str):
            raise ValueError(f"{name} must be a text, not {_shown(value)}")
        if limit is not None and value not in limit:
            raise ValueError(f"{name} is {_shown(value)}; choose one of {', '.join(limit)}")
    else:
        whole, bounds = kind == "int", limit or Bounds()
        types = int if whole else (int, float)
        right = isinstance(value, types) and not isinstance(value, bool)
        if not right or not abs(value) <= (MOST_WHOLE if whole else 1e300) or not bounds.hold(value):
            words = f"{name} must be a {'whole ' if whole else ''}number {bounds}".rstrip()
            raise ValueError(f"{words}{empty}, not {_shown(value)}")


def check_names(config: type, values: Mapping[str, Any], whose: str) -> None:
    """Raise ValueError if `values` names a field that the dataclass does not have."""
    unknown = sorted(set(values) - {field.name for field in dataclasses.fields(config)})
    if unknown:
        raise ValueError(f"{whose} has no setting called {', '.join(map(repr, unknown))}")


def _shown(value: Any) -> str:
    """The value as in a program, cut if long; a huge number would even take long to write."""
    if isinstance(value, int) and abs(value) > MOST_WHOLE:
        return "a number with too many digits"
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:60] + "…"
