"""Decoding: generate(model, prompt, …) yields a DecodeStep per token; sampling rules turn scores into choices."""

from ..model.kernels.packed import PRECISIONS
from .comparison import with_and_without_cache
from .continuation import DecodeStep
from .decoder import count_projections, generate
from .sampling import SAMPLING_PRESETS, ExplainedToken, SamplingConfig, explain
from .stream import Spelling, Streamed, stream
from .together import Together, passes_of, writers_with

__all__ = [
    "PRECISIONS",
    "SAMPLING_PRESETS",
    "DecodeStep",
    "ExplainedToken",
    "SamplingConfig",
    "Spelling",
    "Streamed",
    "Together",
    "count_projections",
    "explain",
    "generate",
    "passes_of",
    "stream",
    "with_and_without_cache",
    "writers_with",
]
