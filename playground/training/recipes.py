"""Recipes: TrainConfigs by the names of the model presets they belong to."""

from __future__ import annotations

from .config import TrainConfig

_ADAM = TrainConfig(optimizer="adamw", schedule="cosine", final_fraction=0.1, warmup_steps=100)

_PLAIN = TrainConfig(optimizer="adamw", schedule="constant", warmup_steps=0, beta2=0.999)

RECIPES: dict[str, TrainConfig] = {
    # nanoGPT's published settings for a CPU
    "nanogpt-cpu": _ADAM.replace(
        steps=2000, batch_size=12, learning_rate=1e-3, weight_decay=0.1, beta2=0.99, eval_every=250, eval_windows=240
    ),
    # our quickest to the same loss
    "fast": TrainConfig(
        steps=300, batch_size=12, learning_rate=3e-2, muon_momentum=0.9, beta2=0.95, eval_every=50, eval_windows=240
    ),
    # the optimizers of the teaching systems: torch's defaults but for what they name, no warm-up, one rate throughout.
    # Where their sources drop numbers out differs from `ModelConfig.dropout`, so losses with dropout are not theirs.
    "s2": _PLAIN.replace(steps=500, batch_size=32, learning_rate=3e-4, weight_decay=0.01, eval_every=100),
    "s5": _PLAIN.replace(
        steps=450, batch_size=8, learning_rate=3e-3, weight_decay=0.0, gradient_clip=0.0, eval_every=30
    ),
    "tiny": TrainConfig(steps=600, batch_size=16, eval_every=50),
    "small": TrainConfig(steps=800, batch_size=16, eval_every=50),
    "medium": TrainConfig(steps=2000, batch_size=16, eval_every=100),
}
RECIPES["s5-moe"] = RECIPES["s5"]


TOKENS_PER_STEP = 2048


def for_own_text(tokens: int, vocabulary: int) -> tuple[str, TrainConfig]:
    """A size and how to train it, for a text of a visitor's own.

    Args:
        tokens: of its training part.
        vocabulary: how many of them are different.
    """
    size = "tiny" if tokens < 20_000 else "small"
    steps = round(min(max(PASSES * tokens / TOKENS_PER_STEP, 40), 800), -1)
    return size, RECIPES[size].replace(steps=int(steps))


PASSES = 6.0
"""How often a text is read at most."""


def recipe_for(name: str) -> TrainConfig:
    """The recipe of a preset, or the default where it has none of its own."""
    return RECIPES.get(name, TrainConfig())
