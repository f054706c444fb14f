"""Decoding: generate(model, prompt, …) yields a DecodeStep per token; sampling rules turn scores into choices."""

from .comparison import with_and_without_cache
from .decoder import DecodeStep, count_projections, generate
from .sampling import SAMPLING_PRESETS, ExplainedToken, SamplingConfig, explain

__all__ = [
    "SAMPLING_PRESETS",
    "DecodeStep",
    "ExplainedToken",
    "SamplingConfig",
    "count_projections",
    "explain",
    "generate",
    "with_and_without_cache",
]
