"""Roles of heads, tested: what each head does over many texts, compared with the same texts without its cause.

N = texts, T = tokens, R = rows that repeat, L = layers, H = heads. Previous-token and induction heads are those of
Elhage et al. 2021 and Olsson et al. 2022, sinks those of Xiao et al. 2023; that an observed pattern needs an
intervention beside it is argued by Jain and Wallace 2019.

A weight on some cell proves little: on a short text the first token, the token before and what followed last time are
often the same cell, and a head may look there for another reason. So a role is given only where

- over many texts of the model's own kind, the weight's interval lies above what heads of untrained twins reach;
- for roles about repetition, the weight goes when the repetition goes: the same text is read again with the earlier
copies of the query token replaced, and only the weight that the head then gives up counts;
- for roles that say little (evenly, by content), the model is worse without the head.

A head that passes none of these is unclear. Beside each role stands what the model loses without the head.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..model import ModelConfig, Pass, Recorder, Transformer
from ..training.verdict import mean_interval
from .cost import PartCosts, removal_map
from .heads import EVEN, ranked, row_means

ROLES = (
    "induction", "duplicate", "followed", "previous", "first", "itself", "even", "content", "unclear",
)  # fmt: skip
"""Kinds of heads, as `HeadTests.role` finds them; "followed" looks at what followed last time, but by its place."""
MOST = 0.4
"""A head is named for a place if it puts at least this share of its weight there, on average."""
GIVEN_UP = 0.2
"""This share of the head's weight has to go when the repetition goes."""
MOVED = 0.1
"""A head goes by content if this share of its weight lies elsewhere in other texts, at the same positions."""
MATTERS = 0.01
"""If a role says little by itself, the model has to lose this many nats per token without the head."""
PLACES = ("previous", "first", "itself")
REPEATS = ("induction", "duplicate")
ROWS_PER_TEXT = 4
"""How many rows of each text are read again without their repetition."""
LONGEST_MATCH = 3
"""How many tokens are replaced to end a repetition: a head may go by more than the last one."""
FIRST_ROW = 4
"""Earlier rows are left out: they see little besides the first, the previous and their own token."""
TEXTS = 20
UNTRAINED_MODELS, UNTRAINED_TEXTS = 3, 8
"""How many untrained models there are, and how many texts each of them reads."""
TEXT_TOKENS = 64


@dataclass(frozen=True, eq=False)
class Estimate:
    """Means over texts, and half the widths of their 95 % intervals, both (L, H); NaN if no text could tell."""

    mean: np.ndarray
    margin: np.ndarray

    @property
    def low(self) -> np.ndarray:
        """Lower ends of the intervals (L, H); −∞ if no text could tell."""
        return np.where(np.isnan(self.mean), -math.inf, self.mean - self.margin)

    def at(self, layer: int, head: int) -> tuple[float, float]:
        """One head's mean and margin."""
        return float(self.mean[layer, head]), float(self.margin[layer, head])

    def is_clear(self, layer: int, head: int) -> bool:
        """Whether the interval leaves out zero."""
        return not abs(self.mean[layer, head]) <= self.margin[layer, head]


def estimate(values: np.ndarray) -> Estimate:
    """Means and margins of values (N, L, H) over the texts; texts that could not tell (NaN) are left out."""
    return Estimate(*mean_interval(values))


@dataclass(frozen=True, eq=False)
class HeadStatistics:
    """What every head does, as averages over many texts."""

    weights: dict[str, Estimate]
    """Share of the weight on each of `PLACES`; and, in rows that repeat, on each of `REPEATS`: the token's earlier copy
    (duplicate) and what followed that copy (induction)."""
    given_up: dict[str, Estimate]
    """How much of the weight on each of `REPEATS` goes when the copy is replaced."""
    evenness: Estimate
    """A row's entropy as a share of the most possible."""
    moved: Estimate
    """Share of a row's weight that lies elsewhere in another text, at the same positions (total variation)."""


@dataclass(frozen=True, eq=False)
class HeadTests(HeadStatistics):
    """What every head of a model did over many texts. `given_up` is measured on these or on repeated random tokens,
    whichever shows more."""

    effect: Estimate
    """Nats per token lost without the head, on the same texts; negative if the model does better without it."""
    first: np.ndarray
    """(L, H) True for the head whose removal costs most, and for all whose cost is not clearly lower."""
    untrained: dict[str, float]
    """The most weight that any head of several untrained models puts on each place, and the most that moved there."""
    untrained_given_up: dict[str, float]
    """For duplicate and induction: the most weight that any of those heads gives up."""
    texts: int
    """How many texts of the model's own kind were read."""
    tokens: int
    """On how many predictions the effect is measured."""
    loss: float
    """The whole model's loss on these texts, in nats per token."""
    guessing: float
    """The loss of guessing blindly among all tokens: ln V."""

    @property
    def roles(self) -> list[list[str]]:
        """The role of every head (L, H), one of `ROLES`."""
        L, H = self.effect.mean.shape
        return [[self.role(layer, head) for head in range(H)] for layer in range(L)]

    def role(self, layer: int, head: int) -> str:
        """Which of `ROLES` this head has; unclear if no test stands out."""
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

    def matters(self, layer: int, head: int) -> bool:
        """Whether the model is worse without the head, by more than the margin."""
        # a model that knows nothing has nothing to lose
        return bool(self.loss < self.guessing and self.effect.low[layer, head] > MATTERS)

    def ranking(self) -> list[tuple[int, int]]:
        """All heads as (layer, head); first the one whose absence costs the most loss, last those without effect."""
        return sorted(ranked(self.effect.mean), key=lambda owner: not self.effect.is_clear(*owner))


def head_tests(
    model: Transformer, texts: Sequence[int] | torch.Tensor, worth: PartCosts | None = None, *, seed: int = 0
) -> HeadTests:
    """Test every head of a model on texts of its own kind: windows (N, T), or one long text (tokens,) to cut up.

    `worth`: what each head is worth on similar text, if already known; otherwise it is measured on these texts.
    `seed`: for the untrained models, the replacement tokens and the random sequences. Raises ValueError if there are
    fewer than two texts of five tokens.
    """
    windows = _windows(torch.as_tensor(texts, dtype=torch.long), model.config.context_length)
    trained = _statistics(model, windows, seed)
    untrained = [
        _statistics(Transformer(model.config, seed=seed + i), windows[:UNTRAINED_TEXTS], seed)
        for i in range(UNTRAINED_MODELS)
    ]
    if worth is None:
        worth = removal_map(model, windows[:, :-1], windows[:, 1:])
    return HeadTests(
        **vars(trained),
        effect=Estimate(*(each[:, : model.config.n_heads].double().numpy() for each in (worth.costs, worth.margins))),
        first=worth.first.numpy(),
        untrained={name: _highest(each.weights[name] for each in untrained) for name in trained.weights}
        | {"moved": _highest(each.moved for each in untrained)},
        untrained_given_up={name: _highest(each.given_up[name] for each in untrained) for name in REPEATS},
        texts=len(windows),
        tokens=worth.tokens,
        loss=worth.before,
        guessing=math.log(model.config.vocab_size),
    )


def _highest(estimates: Iterable[Estimate]) -> float:
    return max((float(np.nanmax(each.mean)) for each in estimates if np.isfinite(each.mean).any()), default=0.0)


def flops_of_tests(config: ModelConfig, length: int) -> int:
    """About how many floating-point operations `head_tests` takes on texts of this length."""
    read = 2 * (TEXTS + UNTRAINED_MODELS * UNTRAINED_TEXTS) * (1 + ROWS_PER_TEXT)
    removed = TEXTS * (1 + config.n_layers * (config.n_heads + 2) // 2)
    return (read + removed) * min(length, TEXT_TOKENS) * config.flops_per_token()


def _windows(texts: torch.Tensor, context: int) -> torch.Tensor:
    """At most `TEXTS` windows (N, T), spread over all the text."""
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


def _statistics(model: Transformer, windows: torch.Tensor, seed: int) -> HeadStatistics:
    """Statistics of these windows; `given_up` from these or from repeated random tokens, whichever shows more."""
    rng = np.random.default_rng(seed)
    own = head_statistics(model, windows.numpy(), rng)
    twice = head_statistics(model, _twice(model.config, windows, rng), rng)
    given_up = {}
    for name in REPEATS:
        one, other = own.given_up[name], twice.given_up[name]
        better = other.low > one.low
        given_up[name] = Estimate(np.where(better, other.mean, one.mean), np.where(better, other.margin, one.margin))
    return dataclasses.replace(own, given_up=given_up)


def _twice(config: ModelConfig, windows: torch.Tensor, rng: np.random.Generator) -> np.ndarray:
    """(N, 2·n) random, distinct tokens from these texts, then the same sequence again."""
    kinds = np.unique(windows.numpy())
    n = min(len(kinds), config.context_length // 2, TEXT_TOKENS // 2)
    return np.stack([np.tile(rng.permutation(kinds)[:n], 2) for _ in range(len(windows))])


# ---- where the weight lies in many texts ---------------------------------------------------------------------------


@torch.inference_mode()
def head_statistics(model: Transformer, texts: np.ndarray, rng: np.random.Generator) -> HeadStatistics:
    """The statistics on texts (N, T). Rows that repeat are read a second time without the repetition."""
    recorder = Recorder(("pattern",))
    model(torch.from_numpy(texts), Pass(tap=recorder))
    patterns = [recorder.trace["pattern", layer].float().cpu() for layer in range(model.config.n_layers)]
    first_row = min(FIRST_ROW, texts.shape[1] - 1)
    by_layer = [row_means(pattern, first_row, model.config.causal) for pattern in patterns]
    means = {name: estimate(np.stack([each[name] for each in by_layer], axis=1)) for name in by_layer[0]}

    repeats = [(n, t, s) for n, text in enumerate(texts) for t, s in _repeats(text, rng)]
    n, t, s = np.array(repeats, dtype=int).reshape(-1, 3).T  # (R,) each
    rows = [pattern[n, :, t] for pattern in patterns]  # per layer (R, H, T)
    replaced = list(rows)
    if repeats:
        changed = np.stack([_unrepeated(texts[n], t, s, rng) for n, t, s in repeats])

        def keep_rows(name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
            if name == "pattern":
                replaced[layer] = x[range(len(repeats)), :, t].float().cpu()
            return x

        model(torch.from_numpy(changed), Pass(tap=keep_rows))
    before, after = _on_copies(rows, s), _on_copies(replaced, s)
    return HeadStatistics(
        weights={name: means[name] for name in PLACES} | {name: _by_text(before[name], n) for name in REPEATS},
        given_up={name: _by_text(before[name] - after[name], n) for name in REPEATS},
        evenness=means["evenness"],
        moved=estimate(np.stack([_moved(pattern, first_row) for pattern in patterns], axis=1)),
    )


def _moved(pattern: torch.Tensor, first_row: int) -> np.ndarray:
    """How much of a row's weight lies elsewhere than in the previous text (N, H)."""
    if len(pattern) < 2:
        return np.full(pattern.shape[:2], np.nan)
    return (pattern - pattern.roll(1, 0)).abs()[:, :, first_row:].sum(-1).mean(-1).numpy() / 2


def _repeats(text: np.ndarray, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Rows t whose token has an earlier copy s, as (t, s), those with the longest match first.

    Only rows that continue as after the copy, so that looking there pays. What followed the copy is neither the token
    itself nor the one before.
    """
    matches = []
    for t in rng.permutation(np.arange(FIRST_ROW, len(text) - 1)).tolist():
        copies = np.flatnonzero(text[:t] == text[t]).tolist()
        if copies and copies[-1] <= t - 3:
            matched, s = max((_matched(text, s, t), s) for s in copies)
            if text[s + 1] == text[t + 1]:
                matches.append((matched, (t, s)))
    matches.sort(key=lambda each: -each[0])
    return [repeat for _, repeat in matches[:ROWS_PER_TEXT]]


def _matched(text: np.ndarray, s: int, t: int) -> int:
    """How many tokens up to s are the same as those up to t, at most `LONGEST_MATCH`."""
    for length in range(LONGEST_MATCH):
        if s < length or text[s - length] != text[t - length]:
            return length
    return LONGEST_MATCH


def _unrepeated(text: np.ndarray, t: int, s: int, rng: np.random.Generator) -> np.ndarray:
    """The text with the copy, and what stands just before it, replaced by other tokens of the text."""
    text = text.copy()
    others = text[text != text[t]]
    if len(others):
        broken = slice(max(s - LONGEST_MATCH + 1, 0), s + 1)
        text[broken] = rng.choice(others, len(text[broken]))
    return text


def _on_copies(rows: list[torch.Tensor], s: np.ndarray) -> dict[str, np.ndarray]:
    """Weights (R, L, H) on the earlier copies s (R,) and on what followed them, from each layer's rows (R, H, T)."""
    weights = torch.stack(rows, dim=1).double().numpy()  # (R, L, H, T)
    which = np.arange(len(s))
    return {"duplicate": weights[which, :, :, s], "induction": weights[which, :, :, s + 1]}


def _by_text(values: np.ndarray, texts: np.ndarray) -> Estimate:
    """Values (R, L, H), averaged within each text first, since its rows are not independent."""
    means = [values[texts == n].mean(axis=0) for n in np.unique(texts)]
    return estimate(np.array(means).reshape(len(means), *values.shape[1:]))
