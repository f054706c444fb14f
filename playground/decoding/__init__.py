"""Decoding: generate(model, prompt, …) yields a DecodeStep per token; sampling rules turn scores into choices."""

from .comparison import with_and_without_cache
from .continuation import DecodeStep
from .decoder import count_projections, generate
from .sampling import SAMPLING_PRESETS, ExplainedToken, SamplingConfig, explain
from .together import Together, together

__all__ = [
    "SAMPLING_PRESETS",
    "DecodeStep",
    "ExplainedToken",
    "SamplingConfig",
    "Together",
    "count_projections",
    "explain",
    "generate",
    "together",
    "with_and_without_cache",
]
