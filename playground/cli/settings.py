"""--set NAME=VALUE: read model and training settings by name and type, with a suggestion for a misspelt one."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from typing import Any

from ..model import ModelConfig
from ..training import TrainConfig

_MODEL = {field.name: field.type for field in dataclasses.fields(ModelConfig)}
_TRAINING = {field.name: field.type for field in dataclasses.fields(TrainConfig)}


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
    optional = "None" in type_name
    if optional and text.lower() in ("", "none"):
        return None
    if "bool" in type_name:
        if text.lower() in ("true", "yes", "on", "1"):
            return True
        if text.lower() in ("false", "no", "off", "0"):
            return False
        raise ValueError(f"{name} must be true or false, not {text!r}")
    for kind, convert, noun in (("int", int, "a whole number"), ("float", float, "a number")):
        if kind in type_name:
            try:
                return convert(text)
            except ValueError:
                raise ValueError(f"{name} must be {noun}, not {text!r}") from None
    return text
