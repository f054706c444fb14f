"""Head statistics: where the weight of every head lies in many texts, and in the same ones without their repetition.

N = texts, T = tokens, R = rows that repeat, L = layers, H = heads. `roles.py` says what follows for a head's role.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from ..model import Pass, Recorder, Transformer
from ..training.verdict import mean_interval

PLACES = ("previous", "first", "itself")
REPEATS = ("induction", "duplicate")
ROWS_PER_TEXT = 4
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


def estimate(values: np.ndarray) -> Estimate:
    """Means and margins over texts of values (N, L, H); texts that could not tell (NaN) are left out."""
    return Estimate(*mean_interval(values))


@dataclass(frozen=True, eq=False)
class HeadStatistics:
    """What every head does in many texts."""

    weights: dict[str, Estimate]
    """Share of weight on each of `PLACES`; and, in rows that repeat, on each of `REPEATS`: the earlier copy of the
    token (duplicate) and what followed it (induction)."""
    given_up: dict[str, Estimate]
    """How much of the weight on each of `REPEATS` goes when the copy is replaced."""
    evenness: Estimate
    """Entropy of a row as a share of the most possible."""
    moved: Estimate
    """Share of a row's weight that lies elsewhere in another text, at the same places (total variation)."""


class Repeat(NamedTuple):
    """Row t of text n, and the earlier copy s of its token."""

    n: int
    t: int
    s: int


@torch.inference_mode()
def head_statistics(model: Transformer, texts: np.ndarray, rng: np.random.Generator) -> HeadStatistics:
    """Read texts (N, T) once, and their rows that repeat once more without the repetition."""
    device = next(model.parameters()).device
    recorder = Recorder(("pattern",))
    model(torch.from_numpy(texts).to(device), Pass(tap=recorder))
    patterns = [recorder.trace["pattern", layer].float().cpu() for layer in range(model.config.n_layers)]
    first_row = min(FIRST_ROW, texts.shape[1] - 1)
    by_layer = [row_means(pattern, first_row, model.config.causal) for pattern in patterns]
    means = {name: estimate(np.stack([each[name] for each in by_layer], axis=1)) for name in by_layer[0]}

    repeats = [repeat for n, text in enumerate(texts) for repeat in _repeats(n, text, rng)]
    n, t = [repeat.n for repeat in repeats], [repeat.t for repeat in repeats]
    rows = [pattern[n, :, t] for pattern in patterns]  # per layer (R, H, T)
    replaced = list(rows)
    if repeats:
        changed = np.stack([_unrepeated(texts[repeat.n], repeat, rng) for repeat in repeats])

        def keep_rows(name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
            if name == "pattern":
                replaced[layer] = x[range(len(repeats)), :, t].float().cpu()
            return x

        model(torch.from_numpy(changed).to(device), Pass(tap=keep_rows))
    before, after = _on_copies(rows, repeats), _on_copies(replaced, repeats)
    return HeadStatistics(
        weights={name: means[name] for name in PLACES} | {name: _by_text(before[name], n) for name in REPEATS},
        given_up={name: _by_text(before[name] - after[name], n) for name in REPEATS},
        evenness=means["evenness"],
        moved=estimate(np.stack([_moved(pattern, first_row) for pattern in patterns], axis=1)),
    )


def row_means(pattern: torch.Tensor, first_row: int, causal: bool) -> dict[str, np.ndarray]:
    """Means (N, H) over the rows of a layer's pattern (N, H, T, T) from `first_row`: the weight on each of `PLACES`,
    the entropy in bits, and the evenness, its share of the most possible."""
    weights, T = pattern.numpy(), pattern.shape[-1]
    entropy = torch.special.entr(pattern).sum(-1).numpy()[:, :, first_row:] / math.log(2)
    visible = np.log2(np.arange(1, T + 1) if causal else np.full(T, T))[first_row:]
    return {
        "previous": np.diagonal(weights, -1, 2, 3)[:, :, first_row - 1 :].mean(-1),
        "first": weights[:, :, first_row:, 0].mean(-1),
        "itself": np.diagonal(weights, 0, 2, 3)[:, :, first_row:].mean(-1),
        "entropy": entropy.mean(-1),
        "evenness": (entropy / visible).mean(-1),
    }


def _moved(pattern: torch.Tensor, first_row: int) -> np.ndarray:
    """How much of a row's weight lies elsewhere in the text before (N, H)."""
    if len(pattern) < 2:
        return np.full(pattern.shape[:2], np.nan)
    return (pattern - pattern.roll(1, 0)).abs()[:, :, first_row:].sum(-1).mean(-1).numpy() / 2


def _repeats(n: int, text: np.ndarray, rng: np.random.Generator) -> list[Repeat]:
    """Rows of text n whose token came before, those first whose last tokens match longest.

    Only rows that go on as they did then, so that looking there pays, and where what followed the copy is neither
    the token itself nor the one before.
    """
    matches = []
    for t in rng.permutation(np.arange(FIRST_ROW, len(text) - 1)).tolist():
        copies = np.flatnonzero(text[:t] == text[t]).tolist()
        if copies and copies[-1] <= t - 3:
            matched, s = max((_matched(text, s, t), s) for s in copies)
            if text[s + 1] == text[t + 1]:
                matches.append((matched, Repeat(n, t, s)))
    matches.sort(key=lambda each: -each[0])
    return [repeat for _, repeat in matches[:ROWS_PER_TEXT]]


def _matched(text: np.ndarray, s: int, t: int) -> int:
    """How many tokens that end at s are the same as those that end at t, at most `LONGEST_MATCH`."""
    for length in range(LONGEST_MATCH):
        if s < length or text[s - length] != text[t - length]:
            return length
    return LONGEST_MATCH


def _unrepeated(text: np.ndarray, repeat: Repeat, rng: np.random.Generator) -> np.ndarray:
    """The text with the copy, and what stands just before it, replaced by others of its tokens."""
    text, s = text.copy(), repeat.s
    others = text[text != text[repeat.t]]
    if len(others):
        broken = slice(max(s - LONGEST_MATCH + 1, 0), s + 1)
        text[broken] = rng.choice(others, len(text[broken]))
    return text


def _on_copies(rows: list[torch.Tensor], repeats: list[Repeat]) -> dict[str, np.ndarray]:
    """Weights (R, L, H) on the earlier copies and on what followed them, of rows (R, H, T) of each layer."""
    weights = torch.stack(rows, dim=1).double().numpy()  # (R, L, H, T)
    which, s = np.arange(len(repeats)), np.array([repeat.s for repeat in repeats], dtype=int)
    return {"duplicate": weights[which, :, :, s], "induction": weights[which, :, :, s + 1]}


def _by_text(values: np.ndarray, texts: list[int]) -> Estimate:
    """Values (R, L, H), those of a text averaged first: its rows are not independent."""
    means = [values[np.array(texts) == n].mean(axis=0) for n in np.unique(texts)]
    return estimate(np.array(means).reshape(len(means), *values.shape[1:]))
