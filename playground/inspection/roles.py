"""Roles of heads, tested: what each head does over many texts, held against the same text without its cause.

N = texts, T = tokens, L = layers, H = heads. Previous-token and induction heads are those of Elhage et al. 2021 and
Olsson et al. 2022, sinks those of Xiao et al. 2023; that an observed pattern needs an intervention beside it is argued
by Jain and Wallace 2019.

A weight on some cell proves little: on a short text the first token, the token before and what followed last time are
often the same cell, and a head may look there for another reason. So a role is given only where

- the interval of the weight over many texts of the model's own kind leaves out what an untrained twin's heads reach;
- for the roles that are about repetition, the weight goes when the repetition goes: the same text is read again with
  the earlier copies of the asking token replaced, and only what the head gives up then counts;
- for the roles that say little (evenly, by content), the model is worse without the head.

Whatever passes none of these is unclear. Beside each stands what the model loses without the head.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..figures.attention import EVEN
from ..model import ModelConfig, Transformer
from .cost import RemovalMap, removal_map
from .heads import ranked
from .watched import ASKERS, FIRST_ROW, PLACES, REPEATS, Estimate, Watched, estimate

ROLES = {
    "induction": "looks at what followed this token last time, and lets go with the copy replaced (induction)",
    "duplicate": "looks at an earlier copy of the token",
    "followed": "looks at what followed last time, but mostly by its place: still does with the copy replaced",
    "previous": "looks at the token before",
    "first": "rests on the first token (sink)",
    "itself": "looks at the token itself",
    "even": "spreads its weight evenly",
    "content": "chooses by what the tokens are (content)",
    "unclear": "has no clear role",
}
WHERE = {
    "previous": "the token before",
    "first": "the first token",
    "itself": "the token itself",
    "duplicate": "an earlier copy of it",
    "induction": "what followed that copy",
}
MOST = 0.4
"""Share of its weight that a head has to put on one place, on average, to be named for it."""
GIVEN_UP = 0.2
"""Share of its weight that has to go when the repetition goes."""
MOVED = 0.1
"""Share of its weight that has to lie elsewhere in other texts, at the same places, for a head to go by content."""
MATTERS = 0.01
"""Nats per token that the model has to lose without a head whose role says little by itself."""
TEXTS = 20
UNTRAINED_TEXTS = 8
TEXT_TOKENS = 64


@dataclass(frozen=True, eq=False)
class HeadTests:
    """What every head of a model did over many texts."""

    weights: dict[str, Estimate]
    """Share of weight on the token before, the first, the token itself; and, where the last tokens stood in the text
    before, on that copy of the token (duplicate) and on what followed it (induction)."""
    given_up: dict[str, Estimate]
    """For duplicate and induction: how much of that weight goes when the copy is replaced. Over texts of the model's
    own kind or over random tokens twice, whichever shows more."""
    evenness: Estimate
    """Entropy of a row as a share of the most possible."""
    moved: Estimate
    """Share of a row's weight that lies elsewhere in another text, at the same places (total variation)."""
    effect: Estimate
    """Nats per token lost without the head, on the same texts; negative where the model is better off."""
    first: np.ndarray
    """(L, H) the head that is missed most, and those that these texts cannot tell from it."""
    untrained: dict[str, float]
    """The most that any head of the same model before training puts on each of `WHERE`, and its most that moved."""
    untrained_given_up: dict[str, float]
    """For duplicate and induction: the most that any of those gives up."""
    texts: int
    """How many texts of the model's own kind were read."""
    tokens: int
    """How many predictions the effect is measured on."""
    loss: float
    """Of the whole model on these texts, nats per token."""
    guessing: float
    """What blind guessing among all tokens loses: ln V."""

    @property
    def roles(self) -> list[list[str]]:
        """The role of every head (L, H), a key of `ROLES`."""
        L, H = self.effect.mean.shape
        return [[self.role(layer, head) for head in range(H)] for layer in range(L)]

    def role(self, layer: int, head: int) -> str:
        """The key in `ROLES` of what this head does; unclear where no test stands out."""
        at = layer, head
        gone = {name: self.given_up[name].low[at] for name in REPEATS}
        name = max(gone, key=gone.__getitem__)
        if gone[name] > max(GIVEN_UP, self.untrained_given_up[name]):
            return name
        name = max((*PLACES, "induction"), key=lambda place: np.nan_to_num(self.weights[place].mean[at]))
        if self.weights[name].low[at] > max(MOST, self.untrained[name]):
            return "followed" if name == "induction" else name
        if self.matters(layer, head):
            if self.evenness.low[at] > EVEN:
                return "even"
            if self.moved.low[at] > max(MOVED, self.untrained["moved"]):
                return "content"
        return "unclear"

    def reason(self, layer: int, head: int) -> str:
        """The numbers that made the role, as a sentence that can follow it."""
        name, at = self.role(layer, head), (layer, head)

        def measured(estimate: Estimate) -> str:
            mean, margin = estimate.at(layer, head)
            return "nothing that could tell" if math.isnan(mean) else f"{mean:.2f} ± {margin:.2f}"

        if name in REPEATS:
            lost, before = measured(self.given_up[name]), self.untrained_given_up[name]
            return f"{lost} of its weight goes when the copy is replaced (untrained heads: at most {before:.2f})."
        if name == "followed":
            return (
                f"{measured(self.weights['induction'])} of its weight lies there, and "
                f"{measured(self.given_up['induction'])} of it goes when the copy is replaced."
            )
        if name in PLACES:
            before = self.untrained[name]
            return f"{measured(self.weights[name])} of its weight lies there (untrained heads: at most {before:.2f})."
        if name == "even":
            return f"{measured(self.evenness)} of the most even there could be, and the model is worse without it."
        if name == "content":
            return (
                f"{measured(self.moved)} of its weight lies elsewhere in another text, and the model is worse without "
                "it."
            )
        place = max((*PLACES, *REPEATS), key=lambda name: np.nan_to_num(self.weights[name].mean[at], nan=-1.0))
        mean, margin = self.effect.at(layer, head)
        needed = f" The model needs it all the same: without it {mean:.2f} ± {margin:.2f} nats more are lost."
        return (
            f"Most of its weight on one place: {measured(self.weights[place])} on {WHERE[place]}. The lower end of an "
            f"interval decides. A role takes more than {MOST:.2f} on one place, or {GIVEN_UP:.2f} that goes with the "
            f"repetition; or more than {MATTERS:g} nats lost without it and, at the same time, weight that is spread "
            f"evenly (more than {EVEN:.2f}) or lies elsewhere in another text (more than {MOVED:.2f}). But for the "
            "even ones, it takes more than any untrained head has, too."
        ) + needed * self.matters(layer, head)

    def matters(self, layer: int, head: int) -> bool:
        """Whether the model is worse without the head, beyond the interval."""
        # who knows nothing has nothing to lose
        return bool(self.loss < self.guessing and self.effect.low[layer, head] > MATTERS)

    def ranking(self) -> list[tuple[int, int]]:
        """(layer, head) of all heads, the one that the model loses most without first."""
        return ranked(self.effect.mean)


def head_tests(
    model: Transformer, texts: Sequence[int] | torch.Tensor, worth: RemovalMap | None = None, *, seed: int = 0
) -> HeadTests:
    """Test every head of a model on texts of its own kind: windows (N, T), or one long text (tokens,) to cut up.

    `worth` says what the heads are worth on text like these, if that is known already; else it is measured on them.
    `seed` draws the model before training, the tokens that replace others and the random sequences. Raises ValueError
    where there are not two texts of five tokens.
    """
    windows = _windows(torch.as_tensor(texts, dtype=torch.long), model.config.context_length)
    weights, given_up, evenness, moved = _read(model, windows, seed)
    before = _read(Transformer(model.config, seed=seed), windows[:UNTRAINED_TEXTS], seed)
    if worth is None:
        device = next(model.parameters()).device
        worth = removal_map(model, windows[:, :-1].to(device), windows[:, 1:].to(device))
    highest = {name: _highest(weights.mean) for name, weights in before[0].items()}
    return HeadTests(
        weights,
        given_up,
        evenness,
        moved,
        Estimate(worth.heads.double().numpy(), worth.heads_margin.double().numpy()),
        worth.heads_first.numpy(),
        {**highest, "moved": _highest(before[3].mean)},
        {name: _highest(lost.mean) for name, lost in before[1].items()},
        len(windows),
        worth.tokens,
        worth.before,
        math.log(model.config.vocab_size),
    )


def _highest(values: np.ndarray) -> float:
    return float(np.nanmax(values)) if np.isfinite(values).any() else 0.0


def flops_of_tests(config: ModelConfig, length: int) -> int:
    """About how many floating-point operations `head_tests` takes on texts of this length."""
    read = 2 * (TEXTS + UNTRAINED_TEXTS) * (1 + ASKERS)
    removed = TEXTS * (1 + config.n_layers * (config.n_heads + 2) // 2)
    return (read + removed) * min(length, TEXT_TOKENS) * config.flops_per_token()


def _windows(texts: torch.Tensor, context: int) -> torch.Tensor:
    """At most `TEXTS` windows (N, T), spread over the text or texts."""
    if texts.ndim == 1:
        T = min(TEXT_TOKENS, context, len(texts) // 2)
        texts = texts[: len(texts) // max(T, 1) * T].view(-1, max(T, 1))
    T = min(TEXT_TOKENS, context, texts.shape[1])
    texts = texts[:, : texts.shape[1] // T * T].reshape(-1, T)
    if len(texts) < 2 or texts.shape[1] <= FIRST_ROW:
        raise ValueError(
            f"Heads are tested on at least two texts of {FIRST_ROW + 1} tokens: here are {len(texts)} of "
            f"{texts.shape[1]}"
        )
    return texts[torch.linspace(0, len(texts) - 1, min(TEXTS, len(texts))).long()]


@torch.inference_mode()
def _read(
    model: Transformer, windows: torch.Tensor, seed: int
) -> tuple[dict[str, Estimate], dict[str, Estimate], Estimate, Estimate]:
    """Weights, what is given up without repetition, evenness, and what moves from text to text."""
    rng = np.random.default_rng(seed)
    own = Watched(model, windows.numpy(), rng)
    twice = Watched(model, _twice(model.config, windows, rng), rng)
    given_up = {}
    for name in REPEATS:
        one, other = own.given_up(name), twice.given_up(name)
        better = other.low > one.low
        given_up[name] = Estimate(np.where(better, other.mean, one.mean), np.where(better, other.margin, one.margin))
    return own.weights(), given_up, estimate(own.evenness), estimate(own.moved)


def _twice(config: ModelConfig, windows: torch.Tensor, rng: np.random.Generator) -> np.ndarray:
    """(N, 2·n) random tokens of these texts, none of them twice, then the same again."""
    kinds = np.unique(windows.numpy())
    n = min(len(kinds), config.context_length // 2, TEXT_TOKENS // 2)
    return np.stack([np.tile(rng.permutation(kinds)[:n], 2) for _ in range(len(windows))])
