"""The logit lens in words."""

from __future__ import annotations

from ..model import ModelConfig


def stage_names(n_layers: int) -> tuple[str, ...]:
    """Names of the stages that the lens reads, in the order in which a token passes them."""
    return ("embeddings", *(f"layer {layer}" for layer in range(n_layers)))


def lens_caveat(config: ModelConfig) -> str:
    """What to keep in mind when reading the lens of such a model, in a sentence."""
    if config.norm_placement == "post":
        return (
            "This model is post-norm: every block ends with a norm of its own, so what leaves a layer has been brought "
            "back to a common length each time, earlier contributions are rescaled by every later norm, and the "
            "lengths below say nothing about how much was written."
        )
    return (
        "Early layers were never trained to be read this way: a guess that looks odd may simply be written in "
        "directions that only later layers turn towards the output."
    )
