"""Sampling: logits → probabilities → a token, one small function per rule, and the table that explains a choice.

V = vocabulary, N = samples decoded at once. The order is the customary one: repetition penalty, temperature, top-k,
top-p, min-p; what a rule removes has probability 0 afterwards and the rest is renormalised at the end.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..checks import Bounds, Settings, check_fields

_LIMITS = {
    "temperature": Bounds(0, 100),
    "top_k": Bounds(least=1),
    "top_p": Bounds(0, 1),
    "min_p": Bounds(0, 1),
    "repetition_penalty": Bounds(0.01, 100),
    "seed": Bounds(least=0),
}


@dataclass(frozen=True)
class SamplingConfig(Settings):
    """How a token is chosen from the model's scores. The defaults are neutral: the model's own distribution."""

    OF = "sampling"

    temperature: float = 1.0
    """Divides the scores: below 1, likely tokens become likelier still; above 1, the chances even out."""
    top_k: int | None = None
    """Keep only the k likeliest tokens; None keeps all."""
    top_p: float = 1.0
    """Keep the fewest likeliest tokens that reach this total probability (Holtzman et al. 2020); 1 keeps all."""
    min_p: float = 0.0
    """Drop tokens less likely than this share of the likeliest one's probability (Nguyen et al. 2024); 0 keeps all."""
    repetition_penalty: float = 1.0
    """Make tokens that already occurred less likely (Keskar et al. 2019); 1 leaves them alone."""
    greedy: bool = False
    """Always take the likeliest token; every other rule but the repetition penalty is then idle."""
    seed: int = 0
    """The same seed, prompt and settings give the same text."""

    def __post_init__(self) -> None:
        check_fields(self, _LIMITS)
        if self.top_p == 0.0:
            raise ValueError("top_p must be above 0: it is the share of probability to keep")
        if self.temperature == 0.0 and not self.greedy:
            object.__setattr__(self, "greedy", True)  # the limit of ever lower temperatures

    @functools.cached_property
    def rules(self) -> SamplingConfig:
        """This config with seed 0: equal for all that draw from the same distribution."""
        return self.replace(seed=0)

    @functools.cached_property
    def neutral(self) -> bool:
        """Whether tokens are sampled from the model's own distribution, nothing changed."""
        return self.rules == SamplingConfig()


SAMPLING_PRESETS: dict[str, SamplingConfig] = {
    "neutral": SamplingConfig(),
    "careful": SamplingConfig(temperature=0.3),
    "balanced": SamplingConfig(temperature=0.8, top_p=0.95),
    "creative": SamplingConfig(temperature=1.0, min_p=0.05),
    "wild": SamplingConfig(temperature=2.0),
    "greedy": SamplingConfig(greedy=True),
}


def penalise(scores: torch.Tensor, history: torch.Tensor, penalty: float) -> torch.Tensor:
    """Scores (N, V); those of tokens in the history (N, T) are divided by the penalty if positive, else multiplied."""
    if penalty == 1.0:
        return scores
    seen = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, history, True)
    return torch.where(seen, torch.where(scores > 0, scores / penalty, scores * penalty), scores)


def temper(scores: torch.Tensor, temperature: float) -> torch.Tensor:
    """Scores (N, V) minus each row's highest, divided by the temperature; the subtraction changes no probability.

    Without it, a temperature near 0 would give infinities, whose difference is not a number.
    """
    if temperature == 1.0:
        return scores
    least = torch.finfo(scores.dtype).tiny  # below this, it would divide by 0; long before, only the likeliest is left
    return (scores - scores.amax(dim=-1, keepdim=True)) / max(temperature, least)


def keep_top_k(scores: torch.Tensor, k: int | None) -> torch.Tensor:
    """Scores (N, V) with all but the k highest at −inf. Scores equal to the kth highest all stay."""
    if k is None or k >= scores.shape[-1]:
        return scores
    edge = scores.topk(k, dim=-1).values[:, -1:]
    return scores.masked_fill(scores < edge, -math.inf)


def keep_top_p(scores: torch.Tensor, p: float) -> torch.Tensor:
    """Scores (N, V) with −inf outside the smallest set of likeliest tokens whose probabilities sum to at least p.

    Of equal scores at the edge, the lower tokens stay. The likeliest token stays however small p is.
    """
    if p >= 1.0:
        return scores
    ordered, tokens = scores.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    likelier = ordered.cumsum(dim=-1) - ordered  # probability of everything before it
    beyond = (likelier >= p) & (likelier > 0)  # p may be 0 in the precision of the scores
    removed = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, tokens, beyond)
    return scores.masked_fill(removed, -math.inf)


def keep_min_p(scores: torch.Tensor, p: float) -> torch.Tensor:
    """Scores (N, V) with −inf for tokens less likely than p times the likeliest one."""
    if p <= 0.0:
        return scores
    edge = scores.max(dim=-1, keepdim=True).values + math.log(p)
    return scores.masked_fill(scores < edge, -math.inf)


CUT_OFFS = (("top-k", keep_top_k, "top_k"), ("top-p", keep_top_p, "top_p"), ("min-p", keep_min_p, "min_p"))
"""In order: each rule's name, its function, and the config field that it takes."""


def probabilities(logits: torch.Tensor, history: torch.Tensor | None, config: SamplingConfig) -> torch.Tensor:
    """The distribution (N, V) that the next token is sampled from, given raw logits (N, V) and the ids so far (N, T).

    The ids are needed for a repetition penalty only.
    """
    scores = penalise(logits, history, config.repetition_penalty)
    if config.greedy:
        return torch.zeros_like(scores).scatter_(1, scores.argmax(dim=-1, keepdim=True), 1.0)
    scores = temper(scores, config.temperature)
    for _, keep, setting in CUT_OFFS:
        scores = keep(scores, getattr(config, setting))
    return scores.softmax(dim=-1)


class RandomNumbers:
    """One sample's random numbers from 0 to 1: a generator makes many at a time, since each call to it is slow."""

    AHEAD = 32

    def __init__(self, seed: int):
        self._generator = torch.Generator().manual_seed(seed)
        self._made: list[float] = []

    def next(self) -> float:
        """The next random number."""
        if not self._made:
            self._made = torch.rand(self.AHEAD, generator=self._generator, dtype=torch.float64).flip(0).tolist()
        return self._made.pop()


def streams(seed: int, n_samples: int) -> list[RandomNumbers]:
    """Random numbers for each of N samples. A sample's numbers do not depend on how many others there are."""
    others = (random.Random(f"{seed}, sample {i}").getrandbits(63) for i in range(1, n_samples))
    return [RandomNumbers(own) for own in (seed, *others)]


def draw(distribution: torch.Tensor, numbers: Sequence[float]) -> torch.Tensor:
    """One token (N,) from each row of a distribution (N, V), by a random number from 0 to 1 for each row.

    By the inverse of the cumulative distribution, without the checks that cost torch.multinomial most of its time.
    """
    cumulative = distribution.cumsum(-1, dtype=torch.float64)
    points = torch.tensor(numbers, dtype=torch.float64).unsqueeze(1) * cumulative.narrow(1, -1, 1)  # (N, 1)
    return torch.searchsorted(cumulative, points, right=True).clamp_(max=distribution.shape[1] - 1).view(-1)


@dataclass(frozen=True)
class ExplainedToken:
    """One row of the step table: a candidate on its way from score to probability."""

    token: int
    logit: float
    """The model's own score."""
    raw_probability: float
    """Softmax of the raw scores."""
    score: float
    """The score after repetition penalty and temperature."""
    tempered_probability: float
    """Softmax of the adjusted scores."""
    removed_by: str | None
    """top-k, top-p, min-p or greedy; None for candidates still in the draw."""
    probability: float
    """The probability with which it was sampled."""


def explain(
    logits: torch.Tensor, history: torch.Tensor, config: SamplingConfig, *, rows: int = 20, always: tuple[int, ...] = ()
) -> list[ExplainedToken]:
    """The table for one choice, from raw logits (V,) and ids so far (T,): the likeliest `rows` tokens, and `always`.

    Computed by the same functions as the draw, so the last column is the distribution that was used.
    """
    raw = logits[None].float()
    scores = penalise(raw, history[None], config.repetition_penalty)
    temperature = 1.0 if config.greedy else config.temperature
    tempered = temper(scores, temperature)
    final = probabilities(raw, history[None], config)[0]
    removed = {t: "greedy" for t in range(len(final)) if config.greedy and final[t] == 0}
    left = tempered
    for name, keep, setting in () if config.greedy else CUT_OFFS:
        before, left = left, keep(left, getattr(config, setting))
        removed |= dict.fromkeys((left.isinf() & ~before.isinf())[0].nonzero().flatten().tolist(), name)
    raw_p, tempered_p = raw.softmax(-1)[0], tempered.softmax(-1)[0]
    shown = tempered[0].topk(min(rows, len(final))).indices.tolist()
    shown += [t for t in always if t not in shown]
    return [
        ExplainedToken(
            token=t,
            logit=raw[0, t].item(),
            raw_probability=raw_p[t].item(),
            score=scores[0, t].item() / temperature,
            tempered_probability=tempered_p[t].item(),
            removed_by=removed.get(t),
            probability=final[t].item(),
        )
        for t in shown
    ]
