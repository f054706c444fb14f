"""The model: its config, its one forward pass, and the ways to watch, edit and cache it. Needs only torch."""

from .cache import KVCache
from .config import GPT2_SMALL_PARAMETERS, ModelConfig
from .forward_pass import Pass, trace
from .presets import PRESETS
from .trace import Recorder, Tap, TextTap, Trace, chain, no_tap
from .transformer import Block, ModelOutput, Transformer

__all__ = [
    "GPT2_SMALL_PARAMETERS",
    "PRESETS",
    "Block",
    "KVCache",
    "ModelConfig",
    "ModelOutput",
    "Pass",
    "Recorder",
    "Tap",
    "TextTap",
    "Trace",
    "Transformer",
    "chain",
    "no_tap",
    "trace",
]
