"""--set NAME=VALUE: read model and training settings by name and type, with a suggestion for a misspelt one."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ..model import ModelConfig
from ..training import TrainConfig

_MODEL = {field.name: field.type for field in dataclasses.fields(ModelConfig)}
_TRAINING = {field.name: field.type for field in dataclasses.fields(TrainConfig)}
_KINDS = {
    "bool": (bool, "true or false"),
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "str": (str, "text"),
}


def parse_settings(pairs: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(model settings, training settings) from strings such as "d_model=128". Raises ValueError with a sentence."""
    model: dict[str, Any] = {}
    training: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"--set needs NAME=VALUE, not {pair!r}")
        if name in {**model, **training}:
            raise ValueError(f"--set gives {name} twice: leave one of the two out")
        if name in _MODEL:
            model[name] = _value(name, text, _MODEL[name])
        elif name in _TRAINING:
            training[name] = _value(name, text, _TRAINING[name])
        else:
            close = difflib.get_close_matches(name, [*_MODEL, *_TRAINING], n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(f"there is no setting called {name!r}{hint}")
    return model, training


def _value(name: str, text: str, type_name: str) -> Any:
    kind, noun = _KINDS[type_name.split(" ")[0]]
    if "None" in type_name and text.lower() in ("", "none"):
        return None
    try:
        return TypeAdapter(kind).validate_strings(text)
    except ValidationError:
        raise ValueError(f"{name} must be {noun}, not {text!r}") from None
