"""Bounds: how large a model may be to be opened here, judged by its config before anything is built from it.

The bounds are far above what a processor can run in reasonable time; a caller may set narrower ones. A file of a few
bytes can demand large position tables and a large cache, since both follow from the config alone: their bytes are
bounded.
"""

from __future__ import annotations

from collections.abc import Callable

from ..model import ModelConfig
from .errors import CheckpointError

Check = Callable[[ModelConfig], None]
"""Raises a ValueError for a config that is too large for the caller."""
MAX_PARAMETERS = 1_000_000_000
MAX_TABLE = 1 << 24  # numbers: 131,072 positions for heads of width 128
MAX_CACHE_BYTES = 2_000_000_000
_MOST = {
    "context_length": 131_072,
    "n_layers": 256,
    "d_model": 65_536,
    "n_heads": 1024,
    "vocab_size": 1_000_000,
    "n_experts": 1024,
}


def roomy(config: ModelConfig) -> ModelConfig:
    """The config; if positions are rotary, its context is cut to a power of two for which keys and values have room.

    No weight of such a model depends on its context length.
    """
    longest = MAX_CACHE_BYTES // config.cache_bytes(1)
    if config.positions != "rotary" or config.context_length <= longest or longest < 1:
        return config
    return config.replace(context_length=1 << (longest.bit_length() - 1))


def check_bounds(config: ModelConfig, max_parameters: int = MAX_PARAMETERS) -> None:
    """Raise CheckpointError for a config that is too large to be opened, or whose numbers make no sense."""
    if config.n_parameters > max_parameters:
        raise CheckpointError(
            f"the model has {config.n_parameters:,} parameters; at most {max_parameters:,} can be opened here"
        )
    for name, most in _MOST.items():
        if getattr(config, name) > most:
            raise CheckpointError(f"{name} is {getattr(config, name):,}; at most {most:,} can be opened here")
    parts = config.n_layers * (config.n_experts + (config.n_heads if config.attention_layout != "fused" else 0))
    if parts > 8192:
        raise CheckpointError(f"the model has {parts:,} experts and heads of their own; at most 8,192 can be opened")
    width = {"rotary": config.d_head, "sinusoidal": config.d_model}.get(config.positions, 0)
    if config.context_length * width > MAX_TABLE:
        raise CheckpointError(
            f"context_length is {config.context_length:,}: its table of positions would have "
            f"{config.context_length * width:,} numbers; at most {MAX_TABLE:,} can be opened here"
        )
    if config.cache_bytes() > MAX_CACHE_BYTES:
        raise CheckpointError(
            f"the keys and values of {config.context_length:,} tokens would take {config.cache_bytes() / 1e9:.1f} GB; "
            f"at most {MAX_CACHE_BYTES / 1e9:g} GB can be opened here"
        )
    for name, least, most in (("norm_eps", 1e-20, 1.0), ("rotary_base", 1.0, 1e12)):
        if not least <= getattr(config, name) <= most:
            raise CheckpointError(f"{name} is {getattr(config, name):g}; it must be between {least:g} and {most:g}")
