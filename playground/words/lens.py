"""The logit lens: its stages and its limits."""

from __future__ import annotations

from ..model import ModelConfig


def stage_names(n_layers: int) -> tuple[str, ...]:
    """Names of the stages that the lens reads, in the order in which a token passes them."""
    return ("embeddings", *(f"layer {layer}" for layer in range(n_layers)))


def lens_caveat(config: ModelConfig) -> str:
    """What to keep in mind when reading the lens of such a model."""
    if config.norm_placement == "post":
        return (
            "This model is post-norm: each block ends with a norm, which rescales everything written before. So a "
            "probability that rises between two rows does not show how much that layer wrote."
        )
    return (
        "Early layers were never trained to make readable guesses. An odd guess may hold information that only "
        "later layers turn into a prediction."
    )
