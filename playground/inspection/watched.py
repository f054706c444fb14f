"""Watched heads: where the weight of every head lies in many texts, and in the same ones without their repetition.

N = texts, T = tokens, L = layers, H = heads. What follows from it for a head's role, `roles.py` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..model import Pass, Transformer
from ..training.verdict import mean_interval

PLACES = ("previous", "first", "itself")
REPEATS = ("induction", "duplicate")
ASKERS = 4
"""Rows of each text that are read again without their repetition."""
LONGEST_MATCH = 3
"""Tokens that are replaced to end a repetition: a head may go by more than the last one."""
FIRST_ROW = 4
"""Before it, the first token, the one before and the token itself are much of all that can be seen."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Means over texts with half the widths of their 95 % intervals, both (L, H); NaN where no text could tell."""

    mean: np.ndarray
    margin: np.ndarray

    @property
    def low(self) -> np.ndarray:
        """Lower ends of the intervals (L, H); −∞ where no text could tell."""
        return np.where(np.isnan(self.mean), -math.inf, self.mean - self.margin)

    def at(self, layer: int, head: int) -> tuple[float, float]:
        """One head's mean and margin."""
        return float(self.mean[layer, head]), float(self.margin[layer, head])


class Watched:
    """A tap's worth of statistics: texts (N, T) read once, and their askers once more without their repetition."""

    def __init__(self, model: Transformer, texts: np.ndarray, rng: np.random.Generator):
        self.texts = texts
        self.L, self.H = model.config.n_layers, model.config.n_heads
        self.causal = model.config.causal
        shape = (len(texts), self.L, self.H)
        self.on = {name: np.full(shape, np.nan) for name in PLACES}
        self.evenness = np.full(shape, np.nan)
        self.moved = np.full(shape, np.nan)
        kept: dict[int, torch.Tensor] = {}
        self._pass(model, texts, lambda layer, pattern: kept.__setitem__(layer, pattern))
        for layer, pattern in kept.items():
            self._observe(layer, pattern)
        self.askers = [(n, t, s) for n in range(len(texts)) for t, s in self._askers(n, rng)]
        shape = (len(self.askers), self.L, self.H)
        self.asked = {name: np.full(shape, np.nan) for name in REPEATS}
        self.unrepeated = {name: np.full(shape, np.nan) for name in REPEATS}
        for layer, pattern in kept.items():
            self._ask(layer, pattern, [n for n, *_ in self.askers], self.asked)
        kept.clear()
        if self.askers:
            changed = np.stack([self._unrepeated(*asker, rng) for asker in self.askers])
            self._pass(
                model, changed, lambda layer, pattern: self._ask(layer, pattern, range(len(changed)), self.unrepeated)
            )

    def _pass(self, model: Transformer, texts: np.ndarray, see) -> None:
        def tap(name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
            if name == "pattern":
                see(layer, x.float().cpu())
            return x

        model(torch.from_numpy(texts).to(next(model.parameters()).device), Pass(tap=tap))

    def _observe(self, layer: int, pattern: torch.Tensor) -> None:
        """Statistics of one layer's pattern (N, H, T, T), per text."""
        weights, T = pattern.numpy(), self.texts.shape[1]
        rows = slice(min(FIRST_ROW, T - 1), None)
        self.on["previous"][:, layer] = np.diagonal(weights, -1, 2, 3)[:, :, rows.start - 1 :].mean(-1)
        self.on["first"][:, layer] = weights[:, :, rows, 0].mean(-1)
        self.on["itself"][:, layer] = np.diagonal(weights, 0, 2, 3)[:, :, rows].mean(-1)
        entropy = torch.special.entr(pattern).sum(-1).numpy()[:, :, rows]
        visible = np.log(np.arange(1, T + 1) if self.causal else np.full(T, T))[rows]
        self.evenness[:, layer] = (entropy / visible).mean(-1)
        if len(weights) > 1:
            others = np.roll(weights, 1, axis=0)
            self.moved[:, layer] = np.abs(weights - others)[:, :, rows].sum(-1).mean(-1) / 2

    def _askers(self, n: int, rng: np.random.Generator) -> list[tuple[int, int]]:
        """(t, s) rows t of text n and the earlier copy s of their token, those first whose last tokens match longest.

        Only rows that go on as they did then, so that looking there pays, and where what followed the copy is neither
        the token itself nor the one before.
        """
        text, found = self.texts[n], []
        for t in rng.permutation(np.arange(FIRST_ROW, len(text) - 1)).tolist():
            copies = np.flatnonzero(text[:t] == text[t]).tolist()
            if copies and copies[-1] <= t - 3:
                matched = {s: _matched(text, s, t) for s in copies}
                s = max(copies, key=lambda s: (matched[s], s))
                if text[s + 1] == text[t + 1]:
                    found.append((matched[s], t, s))
        found.sort(key=lambda each: -each[0])
        return [(t, s) for _, t, s in found[:ASKERS]]

    def _ask(self, layer: int, pattern: torch.Tensor, places: Sequence[int], into: dict[str, np.ndarray]) -> None:
        for i, ((_, t, s), place) in enumerate(zip(self.askers, places)):
            row = pattern[place, :, t].numpy()  # (H, T)
            into["duplicate"][i, layer], into["induction"][i, layer] = row[:, s], row[:, s + 1]

    def _unrepeated(self, n: int, t: int, s: int, rng: np.random.Generator) -> np.ndarray:
        """Text n with the copy s of its token t, and what stands just before it, replaced by others of its tokens."""
        text = self.texts[n].copy()
        others = text[text != text[t]]
        if len(others):
            broken = slice(max(s - LONGEST_MATCH + 1, 0), s + 1)
            text[broken] = rng.choice(others, len(text[broken]))
        return text

    def weights(self) -> dict[str, Estimate]:
        """Share of weight on each kind of place, per head."""
        return {
            **{name: estimate(values) for name, values in self.on.items()},
            **{name: self._by_text(self.asked[name]) for name in REPEATS},
        }

    def given_up(self, name: str) -> Estimate:
        """What each head takes off these cells when the repetition goes."""
        return self._by_text(self.asked[name] - self.unrepeated[name])

    def _by_text(self, values: np.ndarray) -> Estimate:
        """Values (askers, L, H), those of a text averaged first: its rows are not independent."""
        texts = np.array([n for n, *_ in self.askers], dtype=int)
        means = [values[texts == n].mean(axis=0) for n in np.unique(texts)]
        return estimate(np.array(means).reshape(len(means), self.L, self.H))


def _matched(text: np.ndarray, s: int, t: int) -> int:
    """How many tokens that end at s are the same as those that end at t, at most `LONGEST_MATCH`."""
    for length in range(LONGEST_MATCH):
        if s < length or text[s - length] != text[t - length]:
            return length
    return LONGEST_MATCH


def estimate(values: np.ndarray) -> Estimate:
    """Means and margins over texts of values (N, L, H); texts that could not tell (NaN) are left out."""
    return Estimate(*mean_interval(values))
