"""Baselines: reference losses that say how good a loss is, from knowing nothing to the best possible.

Each is the loss of a guesser that knows a little more than the one before; all are scored on the model's
validation windows, and each has written a text with what it knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from .ngrams import NGram, uniform

IGNORE = -100
NOTHING_LEFT = 0.005
"""Differences from the floor below this many nats do not count."""
CLEARLY = 0.01
"""A loss this many nats below or above a baseline clearly differs: less may come from how its counts are smoothed."""
SURE = 1.96
"""Standard errors on either side of a mean that make a 95 % interval."""
WRITTEN = {"character": 160, "word": 40, "token": 60}
"""Tokens that each guesser writes."""


@dataclass(frozen=True)
class Baselines:
    """Mean losses in nats per token on the validation windows. Lower baselines need to know more."""

    uniform: float
    """ln V: every token equally likely."""
    unigram: float
    """Token frequencies of the training text, whatever came before."""
    bigram: float
    """Frequencies given the one token before."""
    floor: float | None = None
    """The true generator's own loss; None where the text's generator is not known."""
    ngram: float | None = None
    """Frequencies given the last `order` − 1 tokens; None if a bigram is the longest n-gram that the text supports."""
    order: int = 2
    """Tokens of the longest n-gram that the text supports."""
    unit: str = "token"
    """What a token is: a character, a word, or just a token."""
    characters_per_token: float = 1.0
    """Characters per token on average in the validation text, so that losses in different tokens can be compared."""
    texts: dict[str, str] = field(default_factory=dict)
    """What the guesser of each baseline wrote, by the baseline's name."""
    at_best: dict[str, float] = field(default_factory=dict)
    """By baseline, what its guesser would lose with the smoothing that suits the validation text best:
    only below that has a model shown that it knows more. The uniform one leaves out tokens that never occur."""
    tokens: int = 0
    """How many tokens are scored; 0 if that was not recorded."""
    chance: dict[str, float] = field(default_factory=dict)
    """By the baseline's name, how many nats chance may move a loss away from it on so few tokens; see `_chance`."""
    overlap: float = 0.0
    """Share of the validation text that also occurs in the training text; see `overlap.py`."""

    def losses(self) -> list[tuple[str, float]]:
        """(name, loss) from worst to best."""
        known = [("uniform", self.uniform), ("unigram", self.unigram), ("bigram", self.bigram)]
        known += [(f"{self.order}-gram", self.ngram), ("floor", self.floor)]
        return [(name, loss) for name, loss in known if loss is not None]

    @property
    def low_floor(self) -> bool:
        """Whether the best possible loss is so low that a curve near it would look flat on a linear axis."""
        return self.floor is not None and 0 < 5 * self.floor < self.uniform

    def bits_per_character(self, loss: float) -> float:
        """A loss in nats per token, converted to bits per character, which can be compared across tokenizers."""
        return loss / math.log(2) / self.characters_per_token

    def passed(self, loss: float) -> str | None:
        """The last baseline, except the floor, such that this loss lies clearly below it and all before it."""
        best = None
        for name, rung in self.steps():
            if not loss < min(rung, self.at_best.get(name, rung)) - self.clearly(name):
                break
            best = name
        return best

    def ahead(self, loss: float) -> str | None:
        """The next baseline for this loss to beat, the best possible loss excluded; None if it has beaten them all."""
        names, passed = [name for name, _ in self.steps()], self.passed(loss)
        return next(iter(names[names.index(passed) + 1 :] if passed else names), None)

    def unsure(self, loss: float) -> str | None:
        """The best of the baselines that this loss lies below, but not clearly; None where it is clearly below it."""
        below = [name for name, rung in self.steps() if loss < rung]
        return below[-1] if below and below[-1] != self.passed(loss) else None

    def clearly(self, name: str) -> float:
        """The loss clearly differs from this baseline if it is at least this many nats below or above."""
        return max(CLEARLY, self.chance.get(name, 0.0))

    def steps(self) -> list[tuple[str, float]]:
        """The baselines, except the floor, that lie below all before them. Passing any other, such as the bigram of a
        text that is too short, says nothing."""
        steps: list[tuple[str, float]] = []
        for name, rung in self.losses():
            if name != "floor" and (not steps or rung < steps[-1][1]):
                steps.append((name, rung))
        return steps

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` is the inverse."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Baselines:
        """Baselines from a record, perhaps an old one without texts.

        Raises ValueError if a loss is not a number, a text is not text, or the floor is not below the uniform loss.
        """
        try:
            made = cls(**values)
        except TypeError as problem:
            raise ValueError(
                "the baselines need the names uniform, unigram and bigram, and may have ngram and floor"
            ) from problem
        losses = [made.uniform, made.unigram, made.bigram, made.characters_per_token, made.order]
        losses += [loss for loss in (made.floor, made.ngram) if loss is not None]
        if not all(type(x) in (int, float) and math.isfinite(x) for x in losses):
            raise ValueError("the baselines must be finite losses in nats")
        if made.floor is not None and not made.floor < made.uniform:
            raise ValueError("the floor of the baselines must be below guessing at random")
        if made.unit not in WRITTEN or not 0 < made.characters_per_token < 1000 or not 2 <= made.order < 100:
            raise ValueError("the baselines do not say what their tokens are")
        if type(made.overlap) not in (int, float) or not 0 <= made.overlap <= 1:
            raise ValueError("the baselines do not say which share of their text is copied")
        if type(made.tokens) is not int or made.tokens < 0 or (made.chance and not made.tokens):
            raise ValueError("the baselines do not say how many tokens they were measured on")
        names = {name for name, _ in made.losses()}
        for what, fine in (
            ("texts", lambda text: isinstance(text, str)),
            ("at_best", lambda loss: isinstance(loss, float) and math.isfinite(loss)),
            ("chance", lambda nats: isinstance(nats, float) and 0 <= nats < math.inf),
        ):
            found = getattr(made, what)
            if not isinstance(found, dict) or not found.keys() <= names or not all(map(fine, found.values())):
                raise ValueError(f"the {what} of the baselines do not match their names")
        return made


def measure(
    best: NGram,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    floor: float | None,
    *,
    unit: str = "token",
    characters_per_token: float = 1.0,
    occur: int | None = None,
    overlap: float = 0.0,
    write: Callable[[NGram | None], str] = lambda guesser: "",
) -> Baselines:
    """Baselines for windows `inputs`, `targets` (N, T), with the n-gram that the text supports; IGNORE does not count.

    `occur` is the number of tokens that occur in the text, `overlap` as in `Baselines`. `write` samples a text from an
    n-gram; None stands for the language's own generator.
    """
    vocab_size = len(best.unigram)
    x, y = inputs.numpy(), targets.numpy()
    guessers = {"uniform": uniform(vocab_size), "unigram": best.shorter(1), "bigram": best.shorter(2)}
    longest = f"{best.n}-gram"
    if best.n > 2:
        guessers[longest] = best
    surprise = {name: guesser.losses(x, y)[y >= 0] for name, guesser in guessers.items()}
    losses = {name: float(each.sum() / (y >= 0).sum()) for name, each in surprise.items()}
    if best.n > 2 and losses[longest] >= losses["bigram"]:
        del losses[longest], guessers[longest], surprise[longest]
    at_best = {name: guesser.at_best(x, y) for name, guesser in guessers.items() if name != "uniform"}
    at_best["uniform"] = math.log(occur or vocab_size)
    texts = {name: write(guesser) for name, guesser in guessers.items()}
    if floor is not None:
        texts["floor"] = write(None)
    return Baselines(
        uniform=math.log(vocab_size),
        unigram=losses["unigram"],
        bigram=losses["bigram"],
        floor=floor,
        ngram=losses.get(longest),
        order=best.n if longest in losses else 2,
        unit=unit,
        characters_per_token=characters_per_token,
        texts={name: text for name, text in texts.items() if text},
        at_best=at_best,
        tokens=int((y >= 0).sum()),
        chance=_chance(surprise),
        overlap=overlap,
    )


def _chance(surprise: Mapping[str, np.ndarray]) -> dict[str, float]:
    """By name, how far a model's loss must lie from a guesser's mean loss to be told from it at 95 %. Found from each
    guesser's surprise (tokens,) at the same tokens, guessers from worst to best.

    How a model's surprise differs from the guesser's, token by token, is not known beforehand: it is taken to spread
    like that of the guessers before and after it. A model that guesses as well as it believes, g nats
    below, has a spread of √(2g) at least (of small g; the variance of a log-likelihood ratio is twice its mean).
    """
    names, chance = list(surprise), {}
    for i, name in enumerate(names):
        beside = [surprise[other] for other in (*names[max(i - 1, 0) : i], *names[i + 1 : i + 2])]
        spread, n = max(float(np.std(each - surprise[name])) for each in beside), len(surprise[name])
        chance[name] = max(SURE * spread / math.sqrt(n), 2 * SURE**2 / n)
    return chance
