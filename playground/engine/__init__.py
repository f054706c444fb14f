"""The inference engine: `generate` continues a text token by token, `ContinuousBatch` writes many at once.

generate.py         the loop: prefill, then one token after the other
inference_model.py  InferenceModel: prefill, decode_one
request.py          Request: a text to be written, and its state so far; choose: its next token
batch.py            ContinuousBatch: all requests of one model share its forward passes
sampling.py         the rules that turn scores into a choice, and the table that explains one
spelling.py         the text of tokens that come one by one; stop strings
stream.py           a request's tokens with their texts, for page, endpoints and shell
"""

from ..model.kernels.packed import PRECISIONS
from .batch import ContinuousBatch, shared_batch, writers_with
from .generate import count_projections, generate
from .inference_model import InferenceModel
from .request import DecodeStep, Request
from .sampling import SAMPLING_PRESETS, ExplainedToken, SamplingConfig, explain
from .spelling import Spelling
from .stream import Streamed, stream

__all__ = [
    "PRECISIONS",
    "SAMPLING_PRESETS",
    "ContinuousBatch",
    "DecodeStep",
    "ExplainedToken",
    "InferenceModel",
    "Request",
    "SamplingConfig",
    "Spelling",
    "Streamed",
    "count_projections",
    "explain",
    "generate",
    "shared_batch",
    "stream",
    "writers_with",
]
