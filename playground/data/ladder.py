"""The ladder: reference losses that say how good a loss is, from knowing nothing to knowing everything there is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

IGNORE = -100
NO_MASK = (
    "This model has no causal mask: while it is trained, every token sees the one it should predict, so the loss falls "
    "towards nothing. When it writes there is no future to copy from, and the text shows what it has really learned."
)


@dataclass(frozen=True)
class Ladder:
    """Mean losses in nats per token on the validation windows. Lower rungs need to know more."""

    uniform: float
    """ln V: every token equally likely."""
    unigram: float
    """Token frequencies of the training text, whatever came before."""
    bigram: float
    """Frequencies given the one token before."""
    floor: float | None = None
    """The true generator's own loss; None where the text's generator is not known."""

    def rungs(self) -> list[tuple[str, float]]:
        """(name, loss) from worst to best."""
        named = [("uniform", self.uniform), ("unigram", self.unigram), ("bigram", self.bigram), ("floor", self.floor)]
        return [(name, loss) for name, loss in named if loss is not None]

    def in_words(self, loss: float) -> str:
        """One sentence that says how good a validation loss is."""
        if not math.isfinite(loss):
            return "The loss is not a number."
        if self.floor is not None:
            gap = loss - self.floor
            if gap < -0.005:
                return (
                    f"{-gap:.4f} nats below the floor, which no honest model can keep up: "
                    "too few validation tokens to judge by, or the validation text leaked into the training."
                )
            if loss > self.uniform:
                return f"{gap:.4f} nats above the floor, and worse than guessing all tokens alike ({self.uniform:.4f})."
            percent = 100 * (self.uniform - loss) / (self.uniform - self.floor)
            return f"{max(gap, 0.0):.4f} nats above the floor: {percent:.1f} % of all there is to learn."
        beaten = [name for name, rung in self.rungs() if loss < rung]
        if not beaten:
            return f"Worse than guessing all tokens alike ({self.uniform:.4f})."
        best, above = beaten[-1], [name for name, rung in self.rungs() if loss >= rung]
        unknown = "ordinary text has no known floor"
        if best == "bigram":
            return (
                f"{self.bigram - loss:.4f} nats below the bigram rung, so it uses more than the last token; {unknown}."
            )
        return f"Better than {best}, not than {above[0]}; {unknown}."

    def to_dict(self) -> dict[str, float | None]:
        """Plain values for JSON."""
        return {"uniform": self.uniform, "unigram": self.unigram, "bigram": self.bigram, "floor": self.floor}


def measure(
    train: torch.Tensor, inputs: torch.Tensor, targets: torch.Tensor, vocab_size: int, floor: float | None
) -> Ladder:
    """The ladder of windows `inputs`, `targets` (N, T) with counts from `train` (tokens,); IGNORE targets do not count.

    The unigram adds one to each count. The bigram is smoothed towards it with the weight of one observation
    (a Dirichlet prior, MacKay and Peto 1995). Negative tokens in `train` separate documents.
    """
    counted = targets != IGNORE
    before, after = inputs[counted], targets[counted]
    unigram = torch.bincount(train[train >= 0], minlength=vocab_size).double() + 1.0
    unigram = unigram / unigram.sum()
    pairs = (train[:-1] >= 0) & (train[1:] >= 0)
    codes, counts = torch.unique(train[:-1][pairs] * vocab_size + train[1:][pairs], return_counts=True)
    seen_before = torch.bincount(train[:-1][pairs], minlength=vocab_size).double()
    wanted = before * vocab_size + after
    if len(codes):
        at = torch.searchsorted(codes, wanted).clamp(max=len(codes) - 1)
        seen_pair = torch.where(codes[at] == wanted, counts[at], 0).double()
    else:
        seen_pair = torch.zeros(len(wanted), dtype=torch.float64)
    bigram = (seen_pair + unigram[after]) / (seen_before[before] + 1.0)
    return Ladder(
        uniform=math.log(vocab_size),
        unigram=float(-unigram[after].log().mean()),
        bigram=float(-bigram.log().mean()),
        floor=floor,
    )
