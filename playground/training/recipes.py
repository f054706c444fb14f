"""Recipes: one TrainConfig for each model preset, by the preset's name."""

from __future__ import annotations

from dataclasses import dataclass

from ..model import PRESETS
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
    # Their sources apply dropout in other places than `ModelConfig.dropout`, so losses with dropout differ from theirs.
    "s2": _PLAIN.replace(steps=500, batch_size=32, learning_rate=3e-4, weight_decay=0.01, eval_every=100),
    "s5": _PLAIN.replace(
        steps=450, batch_size=8, learning_rate=3e-3, weight_decay=0.0, gradient_clip=0.0, eval_every=30
    ),
    "tiny": TrainConfig(steps=600, batch_size=16, eval_every=50),
    "small": TrainConfig(steps=800, batch_size=16, eval_every=50),
    "medium": TrainConfig(steps=2000, batch_size=16, eval_every=100),
}
RECIPES["s5-moe"] = RECIPES["s5"]


@dataclass(frozen=True)
class OwnText:
    """What suits a visitor's own text."""

    size: str
    """The preset."""
    context_length: int
    """The preset's, or shorter if the validation part is too short for it."""
    training: TrainConfig


TOKENS_PER_STEP = 2048
PASSES = {"tiny": 16, "small": 8, "medium": 8}
"""How often a text is read: more passes only learn it by heart, and a small model learns more slowly."""
MANY = 1000
"""Above this many different tokens, most are so rare that they are soon known by heart: half as many passes do."""
PIECES = range(20_000, 200_000)
"""With this many byte-pair tokens the smallest model does better again: by 0.04 nats at 28,000, 0.16 at 62,000 and
0.05 at 128,000; more were not tried."""
FEWEST_STEPS, MOST_STEPS = 16, 800
BY_HEART = 30_000
"""A text of fewer characters is learned by heart. Its validation part gains little after some fifty steps, but only
then does the model begin to write readable text."""
PATIENCE = 5
"""A run on a longer pasted text stops after this many evaluations, of twenty, with a risen validation loss."""


def learns_by_heart(tokens: int, vocabulary: int) -> bool:
    """Whether a text with so many tokens, so many of them different, is short enough to be learned by heart."""
    return tokens < (BY_HEART if vocabulary < 256 else 1_000)


def for_own_text(tokens: int, vocabulary: int, size: str | None = None) -> OwnText:
    """Size and training for a text of so many tokens, the last tenth for validation; measured by `benchmarks lengths`.

    The smallest model learns a short text better. With the many tokens of words and pieces, the wider one soon does.
    If a `size` is given, the training suits it. A text below BY_HEART tokens is read until the model can say it. That
    comes sooner at a higher rate and in shorter windows, more of which begin where a prompt does.
    """
    by_heart = learns_by_heart(tokens, vocabulary)
    if size is None:
        short = tokens < (50_000 if vocabulary < 256 else 1_000)
        size = "tiny" if short or (256 <= vocabulary <= MANY and tokens in PIECES) else "small"
    context = min(64 if by_heart else PRESETS[size].context_length, max((tokens // 10 - 1) // 8 * 8, 8))
    passes = PASSES[size] / (2 if vocabulary > MANY else 1)
    fewest = min(50 + tokens // 20, 450) if by_heart or (size == "tiny" and vocabulary < 256) else FEWEST_STEPS
    steps = min(max(round(passes * tokens / TOKENS_PER_STEP), fewest), MOST_STEPS)
    quick = {"learning_rate": 0.01, "muon_momentum": 0.9} if by_heart else {}
    training = RECIPES[size].replace(
        steps=steps,
        batch_size=min(TOKENS_PER_STEP // context, 64),
        warmup_steps=min(RECIPES[size].warmup_steps, steps // 5),
        eval_every=max(steps // 20, 4),  # oftener, an evaluation would cost more than its steps
        patience=0 if by_heart else PATIENCE,
        **quick,
    )
    return OwnText(size, context, training)


def recipe_for(name: str) -> TrainConfig:
    """A preset's recipe, or the default if it has none of its own."""
    return RECIPES.get(name, TrainConfig())
