"""Where the parameters are: bars by component, beside GPT-2 small's 124,439,808."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GPT2_SMALL = 124_439_808


def parameter_bars(components: Mapping[str, int]) -> dict[str, Any]:
    """One horizontal bar per component that has parameters (`ModelConfig.parameters_by_component()`)."""
    raise NotImplementedError


def parameter_rows(components: Mapping[str, int]) -> list[list[str]]:
    """The table beside the bars: component, parameters, share of this model, % of GPT-2 small; the total last."""
    raise NotImplementedError


def describe_parameters(components: Mapping[str, int]) -> str:
    """The largest component, and the size beside GPT-2 small."""
    raise NotImplementedError
