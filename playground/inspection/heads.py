"""What heads do on one prompt: where their weight lies, and how much the prediction depends on them.

What a head does in general is another question, which one prompt cannot answer: `roles.py` tests it.

T = tokens, H = heads, L = layers. Previous-token and induction heads are those of Elhage et al. 2021 and Olsson et al.
2022; heads that rest on the first token are the attention sinks of Xiao et al. 2023.
"""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass

import numpy as np
import torch

from ..model import Pass
from .cost import Variants
from .look import Look

HABITS = ("previous", "duplicate", "induction", "first", "itself")
"""Places where a head may look; `HeadScores` says what each means."""
EVEN = 0.9
"""A head spreads its weight if its rows' entropy is at least this share of the most possible."""


@dataclass(frozen=True, eq=False)
class HeadScores:
    """Scores of every head on one sequence, arrays (L, H) of 0 … 1; NaN where the sequence cannot tell."""

    previous: np.ndarray
    """Mean weight on the token just before."""
    duplicate: np.ndarray
    """Mean weight on earlier copies of the query token, over tokens that have one."""
    induction: np.ndarray
    """Mean weight on what followed the latest earlier copy of the query token, unless that is the token itself."""
    first: np.ndarray
    """Mean weight on the first token: a sink, for a head's weight when it has nothing to say."""
    itself: np.ndarray
    """Mean weight on the query token itself."""
    entropy: np.ndarray
    """Mean entropy of a row in bits: how many tokens it looks at, as a power of 2."""
    evenness: np.ndarray
    """The entropy as a share of the most that the row's visible tokens allow: 0 for one token, 1 for all alike."""

    def of(self, layer: int, head: int) -> dict[str, float]:
        """One head's numbers by name."""
        return {name: float(values[layer, head]) for name, values in vars(self).items()}

    def telling(self) -> np.ndarray:
        """How much there is to see (L, H): high for decisive heads that look past the first and own token."""
        return (1 - self.evenness) * (1 - np.maximum(self.first, self.itself))

    def ranking(self) -> list[tuple[int, int]]:
        """All heads as (layer, head), the most telling first."""
        return ranked(self.telling())


def ranked(values: np.ndarray) -> list[tuple[int, int]]:
    """All heads as (layer, head), sorted by their `values` (L, H), the largest first."""
    order = np.argsort(-np.nan_to_num(values), axis=None, kind="stable")
    return [(int(i) // values.shape[1], int(i) % values.shape[1]) for i in order]


_scores: weakref.WeakKeyDictionary[Look, HeadScores] = weakref.WeakKeyDictionary()


def head_scores(look: Look) -> HeadScores:
    """The scores of all heads on this prompt, computed once. The first row does not count: it sees one token."""
    if (scores := _scores.get(look)) is None:
        ids, layers = np.array(look.ids), range(look.config.n_layers)
        by_layer = [_habits(look.pattern(layer).float(), ids, look.config.causal) for layer in layers]
        stacked = {name: np.stack([each[name] for each in by_layer]) for name in by_layer[0]}
        _scores[look] = scores = HeadScores(**stacked)
    return scores


def _habits(pattern: torch.Tensor, ids: np.ndarray, causal: bool) -> dict[str, np.ndarray]:
    """Habits and entropies (H,) from one layer's pattern (H, T, T)."""
    if len(ids) < 2:
        return dict.fromkeys((*HABITS, "entropy", "evenness"), np.full(len(pattern), np.nan))
    copies = _copies(ids)
    means = {name: values[0] for name, values in row_means(pattern[None], 1, causal).items()}
    return means | {"duplicate": _mean_on(pattern, copies), "induction": _mean_on(pattern, _followers(copies))}


def row_means(pattern: torch.Tensor, first_row: int, causal: bool) -> dict[str, np.ndarray]:
    """Means (N, H) over the rows of a layer's pattern (N, H, T, T) from `first_row`: the weight on the token
    before, the first and the token itself, the entropy in bits, and the evenness, its share of the most possible."""
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


def _copies(ids: np.ndarray) -> np.ndarray:
    """(T, T) whether token s comes before token t and is the same."""
    return np.tril(ids[:, None] == ids[None, :], -1)


def _followers(copies: np.ndarray) -> np.ndarray:
    """(T, T) whether token s, before t, followed the latest earlier copy of token t."""
    latest = copies & (np.cumsum(copies[:, ::-1], axis=1)[:, ::-1] == 1)
    followers = np.zeros_like(copies)
    followers[:, 1:] = latest[:, :-1]
    return np.tril(followers, -1)


def _mean_on(pattern: torch.Tensor, cells: np.ndarray) -> np.ndarray:
    """Weight on these cells (T, T), summed over each row that has any, averaged over those rows: (H,)."""
    rows = cells.any(axis=1)
    if not rows.any():
        return np.full(pattern.shape[0], np.nan)
    on = (pattern * torch.from_numpy(cells)).sum(dim=-1)  # (H, T)
    return on[:, torch.from_numpy(rows)].mean(dim=-1).numpy()


def flops_of_moves(look: Look) -> int:
    """Rough floating-point operations that `moves` takes."""
    config = look.config
    return (1 + config.n_layers * (config.n_heads + 2) // 2) * look.length * config.flops_per_token()


@torch.inference_mode()
def moves(look: Look, query: int = -1) -> np.ndarray:
    """How far the prediction after a token moves without each head (L, H): Kullback–Leibler divergence in nats.

    One pass tries every head's removal, as for the removal map.
    """
    output = look.model(torch.tensor([look.ids]), Pass(tap=Variants(look.model)))
    logits = output.logits[:, query].double().log_softmax(dim=-1)
    whole, lacking = logits[0], logits[1:].unflatten(0, (look.config.n_layers, look.config.n_heads + 2))
    return (whole.exp() * (whole - lacking[:, : look.config.n_heads])).sum(dim=-1).clamp(min=0).numpy()
