"""Recipes: TrainConfigs by the names of the model presets they belong to."""

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


@dataclass(frozen=True)
class OwnText:
    """What suits a text of a visitor's own."""

    size: str
    """The preset."""
    context_length: int
    """As long as the preset's, or as the part that judges allows."""
    training: TrainConfig


TOKENS_PER_STEP = 2048
PASSES = {"tiny": 16, "small": 8, "medium": 8}
"""How often a text is read: more is learned by heart, and what is small learns slower."""
MANY = 1000
"""Different tokens, above which most are so rare that they are soon known by heart: half as many passes do."""
PIECES = range(20_000, 200_000)
"""So many tokens of byte pairs are learned better by the smallest model again: by 0.04 nats at 28,000, 0.16 at 62,000
and 0.05 at 128,000; more were not tried."""
FEWEST_STEPS, MOST_STEPS = 16, 800
BY_HEART = 30_000
"""Characters below which a text is learned by heart. Its held-out part gains little after some fifty steps, but only
then does the model begin to write readable text."""
PATIENCE = 5
"""Evaluations, of twenty, after which a run on a longer own text stops when validation has risen."""


def learns_by_heart(tokens: int, vocabulary: int) -> bool:
    """Whether a text of so many tokens, of so many kinds, is short enough to be read until the model can say it."""
    return tokens < (BY_HEART if vocabulary < 256 else 1_000)


def for_own_text(tokens: int, vocabulary: int, size: str | None = None) -> OwnText:
    """Size and training for a text of so many tokens, of which the last tenth judges; measured by `benchmarks lengths`.

    A short text is learned better by the smallest model; of words and pieces, which are many, the wider one soon.
    With a `size`, the training that suits it. A text below BY_HEART tokens is read until the model can say it: sooner
    at a higher rate and in shorter windows, of which more begin where a prompt does.
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
