"""Parts of a model: plain names for what its code calls them. Layers count from 0, as in the names of heads."""

from __future__ import annotations

PARTS = {
    "feedforward": "MLP",
    "feedforward_norm": "MLP normalisation",
    "attention_norm": "attention normalisation",
    "final_norm": "final normalisation",
    "head": "output layer",
}
"""What has another name on the page than in the code."""


def plain_name(name: str) -> str:
    """A parameter, or a part as `training.optimizers.gradient_norms` calls it: “0 feedforward” is “layer 0, MLP”."""
    words = [PARTS.get(word, word) for word in name.removeprefix("blocks.").replace(".", " ").split()]
    words[0] = f"layer {words[0]}" if words[0].isdigit() else words[0]
    return ", ".join(words).replace("_", " ")
