"""Scores: how well a model predicts a text, in nats per token and in bits per byte, whatever its tokens are.

A text is cut into P parts of about the same length, each read after the one before. The first word is only read, since
no model predicts a first token: so models with different tokens are judged on the very same bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import torch

from ..data import TextError, Tokenizer
from ..model import Transformer
from ..training.losses import IGNORE, Interrupted, WindowLosses, token_losses, windows_at_once
from ..training.verdict import difference

PARTS, FEWEST, SHORTEST = 64, 4, 25
"""Parts of a text: at most, at least, and characters of the shortest."""


@dataclass(frozen=True)
class Score:
    """What one model loses on the P parts of one text. Plain values, for JSON."""

    total: list[float]
    """(P,) nats, summed over the part's tokens."""
    tokens: list[int]
    """(P,) how many tokens were predicted."""
    bytes: list[int]
    """(P,) UTF-8 bytes of the text that they stand for."""
    unknown: int
    """How many of the tokens stand for text that the tokenizer does not know."""

    @property
    def loss(self) -> float:
        """Nats per token."""
        return self._per(self.tokens).mean

    @property
    def perplexity(self) -> float:
        """e to the loss: among how many equally likely tokens the model seems to choose."""
        return math.exp(min(self.loss, 700.0))

    @property
    def bits_per_byte(self) -> float:
        """Bits for each byte of the text: the same scale for all tokens."""
        return self._per(self.bytes).mean / math.log(2)

    @property
    def margin(self) -> float:
        """Half the width of the 95 % interval of the bits per byte, over the parts."""
        return self.minus(replace(self, total=[0.0] * len(self.total)))[1]

    def minus(self, other: Score) -> tuple[float, float]:
        """Bits per byte more than `other` on the same text, and half the width of the 95 % interval over the parts."""
        if self.bytes != other.bytes:
            raise ValueError("the two scores are not of the same text")
        nats, margin = difference(other._per(self.bytes), self._per(self.bytes))
        return nats / math.log(2), margin / math.log(2)

    def loss_minus(self, other: Score) -> tuple[float, float]:
        """Nats per token more than `other`, which read the same tokens, and half the width of the 95 % interval."""
        return difference(other._per(self.tokens), self._per(self.tokens))

    def _per(self, units: list[int]) -> WindowLosses:
        return WindowLosses(torch.tensor(self.total, dtype=torch.float64), torch.tensor(units))


def score(
    model: Transformer, tokenizer: Tokenizer, text: str, *, should_stop: Callable[[], bool] = lambda: False
) -> Score:
    """What a model loses on a text, in the precision of its weights, on its device; windows do not overlap.

    Raises TextError for a text that is too short, and Interrupted where `should_stop`, asked between passes, says so.
    """
    first, *parts = parts_of(text)
    encoded = [tokenizer.encode(part) for part in (first, *parts)]
    part = torch.cat([torch.full((len(ids),), i) for i, ids in enumerate(encoded)])
    tokens = torch.tensor([token for ids in encoded for token in ids])
    context = model.config.context_length
    total = torch.zeros(len(encoded), dtype=torch.float64)
    windows = -(-(len(tokens) - 1) // context)
    spare = windows * context + 1 - len(tokens)
    padded = torch.nn.functional.pad(tokens, (0, spare), value=0).unfold(0, context + 1, context)
    where = torch.nn.functional.pad(part[1:], (0, spare), value=-1).view(windows, context)
    targets = padded[:, 1:].masked_fill(where < 0, IGNORE)
    losses = _losses(model, padded[:, :-1], targets, should_stop)
    total.index_add_(0, where.clamp(min=0).flatten(), losses.flatten())
    counts = torch.bincount(part, minlength=len(encoded))
    sizes = [len(each.encode("utf-8", errors="surrogatepass")) for each in parts]
    unknown = getattr(tokenizer, "unknown", None)
    return Score(
        total[1:].tolist(), counts[1:].tolist(), sizes, int((tokens == unknown).sum()) if unknown is not None else 0
    )


def score_windows(
    model: Transformer, tokenizer: Tokenizer, inputs: torch.Tensor, targets: torch.Tensor, parts: int, *,
    should_stop: Callable[[], bool] = lambda: False,
) -> Score:  # fmt: skip
    """The same on windows (N, T): its loss is the validation loss of a training on them.

    Their tokens are cut into so many parts. Raises Interrupted as `score` does.
    """
    losses, counted = _losses(model, inputs, targets, should_stop), targets != IGNORE
    ids = [part.tolist() for part in targets[counted].tensor_split(parts)]
    texts = [tokenizer.decode(each).encode("utf-8", errors="surrogatepass") for each in ids]
    totals = [part.sum().item() for part in losses[counted].tensor_split(parts)]
    unknown = getattr(tokenizer, "unknown", None)
    return Score(totals, [*map(len, ids)], [*map(len, texts)], sum(each.count(unknown) for each in ids))


def _losses(
    model: Transformer, inputs: torch.Tensor, targets: torch.Tensor, should_stop: Callable[[], bool]
) -> torch.Tensor:
    """The loss on each target (N, T), a few windows at a time."""
    losses, at_once = [], windows_at_once(model.config)
    for x, y in zip(inputs.split(at_once), targets.split(at_once)):
        if should_stop():
            raise Interrupted("stopped")
        losses.append(token_losses(model, x, y).double())
    return torch.cat(losses)


def parts_of(text: str) -> list[str]:
    """A text's first word, and what follows it in parts cut before white space. Raises TextError if it is short."""
    text = text.replace("\r\n", "\n").strip()
    gap = re.compile(r"(?<=\S)\s")  # where every tokenizer here parts its tokens, too
    begins = found.start() if (found := gap.search(text, 0, 200)) else 1
    count = min(PARTS, (len(text) - begins) // SHORTEST)
    if count < FEWEST:
        needed = f"judging a model takes a text of more than {FEWEST * SHORTEST} characters"
        raise TextError(f"{needed}; this one has {len(text):,}")
    cuts = {begins}
    for i in range(1, count):
        near = begins + i * (len(text) - begins) // count
        cuts.add(found.start() if (found := gap.search(text, near, near + 200)) else near)
    ends = [0, *sorted(cuts), len(text)]
    return [text[a:b] for a, b in pairwise(ends) if a < b]
