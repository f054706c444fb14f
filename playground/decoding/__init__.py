"""Decoding: generate(model, prompt, …) yields a DecodeStep per token; sampling rules turn scores into choices."""

from .comparison import with_and_without_cache
from .decoder import DecodeStep, count_projections, generate
from .sampling import SAMPLING_PRESETS, ExplainedToken, SamplingConfig, explain
from .stream import Spelling, Streamed, stream

__all__ = [
    "SAMPLING_PRESETS",
    "DecodeStep",
    "ExplainedToken",
    "SamplingConfig",
    "Spelling",
    "Streamed",
    "count_projections",
    "explain",
    "generate",
    "stream",
    "with_and_without_cache",
]
