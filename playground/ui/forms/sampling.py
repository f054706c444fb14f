"""Sampling: every setting as a table, and from there to a SamplingConfig, for tabs and endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...engine import SAMPLING_PRESETS, SamplingConfig
from ...service.limits import Limits
from .fields import Field, whole

FIELDS: tuple[Field, ...] = (
    Field("temperature", "Temperature", "Below 1 safer, above 1 more even; 0 is greedy.", least=0.0, most=3, step=0.05),
    Field("new_tokens", "New tokens", "How much to write.", least=1, most="new_tokens", step=1),
    Field("top_k", "Top-k", "Keep the k likeliest; 0 keeps all.", least=0, most=2**31),
    Field("top_p", "Top-p", "Keep the likeliest that together have this probability; 1 keeps all.", least=0.01, most=1,
          step=0.01),
    Field("min_p", "Min-p", "Drop tokens whose probability is less than this share of the likeliest token's.",
          least=0.0, most=1, step=0.01),
    Field("repetition_penalty", "Repetition penalty", "Above 1, tokens that have already occurred become less likely.",
          least=0.5, most=2, step=0.05),
    Field("samples", "Samples", "Several continuations of the same prompt at once.", least=1, most="samples", step=1),
    Field("seed", "Seed", "Changes with every text, unless it is kept.", least=0, most=2**53),
)  # fmt: skip
BY_NAME = {field.name: field for field in FIELDS}
RULES = tuple(name for name in SamplingConfig.__dataclass_fields__ if name in BY_NAME)
"""The fields of a SamplingConfig that a form sets."""
_NAMES = tuple(SamplingConfig.__dataclass_fields__)
FIRST_PRESET = "balanced"


def first_values(limits: Limits) -> dict[str, Any]:
    """The values with which the form opens."""
    rules = SAMPLING_PRESETS[FIRST_PRESET].to_dict()
    values = {name: rules[name] for name in RULES} | {"top_k": rules["top_k"] or 0}
    return values | {"new_tokens": min(200, limits.new_tokens), "samples": 1, "seed": 0}


def sampling(values: Mapping[str, Any], **changes: Any) -> SamplingConfig:
    """The rules in these values, as far as given. Raises ValueError if a number makes no sense."""
    given = {name: values[name] for name in _NAMES if name in values}
    if "top_k" in given:
        given["top_k"] = whole("top-k", given["top_k"]) or None
    if "seed" in given:
        given["seed"] = whole("seed", given["seed"])
    return SamplingConfig(**{**given, **changes})
