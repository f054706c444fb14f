"""Fields: one setting of a form as a line of a table: its name, a reason to change it, its allowed values.

The line determines its component, its check, and how its values are worded. A form is a tuple of fields; `read` turns
what a page or a program sent into settings, `draw` makes components that hold them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from ...service.limits import Limits

FOLLOWS = 0
"""Stands for None, if a number follows from others."""


@dataclass(frozen=True)
class Field:
    """One setting. A number is whole if `least` is."""

    name: str
    label: str
    why: str
    group: str = ""
    """The part of the form that contains it."""
    choices: tuple[tuple[str, Any], ...] = ()
    """(title, value) of each choice; empty for switches and numbers."""
    least: float | None = None
    most: str | float | None = None
    """The largest number, or the name of the limit that gives it."""
    step: float | None = None
    """The slider's step; None makes a free number field."""

    @property
    def is_switch(self) -> bool:
        """Whether the field is a switch, on or off."""
        return not self.choices and self.least is None

    def upper(self, limits: Limits) -> float:
        """The largest number allowed here."""
        return getattr(limits, self.most) if isinstance(self.most, str) else self.most

    def read(self, value: Any, limits: Limits) -> Any:
        """Read the setting: a choice, a switch's position, or a number within bounds. Raises ValueError."""
        if self.choices:
            fits, allowed = value in [v for _, v in self.choices], "one of " + ", ".join(t for t, _ in self.choices)
        elif self.is_switch:
            fits, allowed = isinstance(value, bool), "on or off"
        else:
            most, whole = self.upper(limits), isinstance(self.least, int)
            fits = is_number(value) and self.least <= value <= most and not (whole and value != int(value))
            low, high = said(self.least), said(most)
            allowed = f"a whole number from {low} to {high}" if whole else f"between {low} and {high}"
            if value is None:
                raise ValueError(f"{self.label} is empty: give {'' if whole else 'a number '}{allowed}")
            value = int(value) if fits and whole else value
        if not fits:
            raise ValueError(f"{self.label} must be {allowed}, not {said(value)}")
        return value

    def build(self, limits: Limits, value: Any, **looks: Any) -> gr.components.Component:
        """The field's component, holding this value."""
        looks = {"label": self.label, "info": self.why, "value": value, **looks}
        if self.choices:
            return gr.Dropdown(list(self.choices), **looks)
        if self.is_switch:
            return gr.Checkbox(**looks)
        if self.step is None:
            return gr.Number(**looks)
        return gr.Slider(self.least, self.upper(limits), step=self.step, **{"buttons": ["reset"], **looks})

    def shown(self, value: Any) -> str:
        """A value as the page writes it."""
        return next((title for title, v in self.choices if v == value), None) or shown(value)


def titled(values: Iterable[str], **titles: str) -> tuple[tuple[str, str], ...]:
    """Choices: each value with its title, or itself as the title."""
    return tuple((titles.get(value, value), value) for value in values)


def read(fields: Iterable[Field], values: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """All settings of a form by name, each read by its field. Raises ValueError for the first that does not fit."""
    return {field.name: field.read(values[field.name], limits) for field in fields}


def draw(fields: Iterable[Field], limits: Limits, values: Mapping[str, Any]) -> dict[str, gr.components.Component]:
    """Components by their fields' names, one below the other, holding these values."""
    return {field.name: field.build(limits, values[field.name]) for field in fields}


def is_number(value: Any) -> bool:
    """Whether a value is a finite number and not a switch."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**53


def whole(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """A whole number, within any bounds, read from what a page or a program sent. Raises ValueError."""
    fits = is_number(value) and value == int(value)
    bounds = "" if least is None or most is None else f" from {said(least)} to {said(most)}"
    if value is None:
        raise ValueError(f"{name} is empty: give a whole number{bounds}")
    if fits and most is None and least is not None and value < least:
        raise ValueError(f"{name} must be at least {said(least)}")
    if not fits or (least is not None and value < least) or (most is not None and value > most):
        raise ValueError(f"{name} must be a whole number{bounds}, not {said(value)}")
    return int(value)


def said(value: Any) -> str:
    """A value in a sentence: numbers with separators and without powers of ten, others as in code."""
    if not is_number(value):
        return f"{value!r}"[:60]
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.8f}".rstrip("0") if abs(value) >= 1e-6 else f"{value:g}"


def shown(value: Any) -> str:
    """A setting's value as the page writes it, if it is none of a field's choices."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "empty" if value is None else said(value) if is_number(value) else str(value)


def same(a: Any, b: Any) -> bool:
    """Whether two values of a field are equal; a page turns 0.0 into 0."""
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1e-9)
    return a == b
