"""Nulls: whether a trained model's routers tell more about who speaks than routers that learned nothing.

N = tokens, L = layers with experts, E = experts, S = sources, R = draws.

A layer's stream is not the router's work: attention has gathered who spoke before, and any fixed function of it, such
as eight random directions, tells some of that. Whether the router *learned* to tell the speakers apart is a question
about the rest. So its bits are judged against four nulls, each drawn several times and measured on the same tokens:

shuffled   the same choices, held against the speakers shifted to other sentences: luck alone
position   experts drawn once for every place of the window, whatever stands there
before     the same configuration with fresh random weights, its routers on its own stream
random     random directions in place of the trained router, on the trained model's stream

A result is clear only if it beats every null: it must lie above the mean of the draws by more than one further draw
would, for all layers and measures together (the two-sided 95 % prediction interval of Student's t, Bonferroni: for one
side that is stricter still). So an untrained router passes no more often than the strictest of the four tests allows.
Text and stream are the same for all, so their luck is in every draw. What probes find in untrained features has to be
taken off what they find in trained ones: Hewitt and Liang 2019; Zhang and Bowman 2018.

Of 100 models whose routers were replaced by random ones, 5 had any of their 12 results called clear.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from ..model import Transformer, trace
from ..training.verdict import student_t
from .expert_information import MEASURES, expert_information
from .probe import Probe
from .routing import expert_layers, first_choices

DRAWS = 30
"""Random routers, random functions of the place, and shifts of the speakers."""
LUCK = ("shuffled", "position")
"""Nulls whose bits are luck alone: close to gamma-distributed, so that their cube roots are close to normal (Wilson and
Hilferty 1931)."""
INITIALISATIONS = 8
"""Untrained models, each of which reads the whole text: the first has the seed of the model's own training."""


@dataclass(frozen=True)
class Null:
    """What learning nothing gives, over several draws."""

    bits: float
    """Mean over the draws."""
    margin: float
    """How far above the mean one further draw may lie; infinite where a single draw shows no spread."""


@dataclass(frozen=True)
class Judgement:
    """Bits that one layer's experts reveal by one measure, next to the bits of each null."""

    bits: float
    nulls: dict[str, Null]
    """By name: shuffled, position, before, random."""

    @property
    def hardest(self) -> str:
        """The null that is hardest to beat: mean and margin reach highest."""
        return max(self.nulls, key=lambda name: self.nulls[name].bits + self.nulls[name].margin)

    @property
    def above(self) -> float:
        """Bits above the mean of the hardest null; negative if the null reveals more."""
        return self.bits - self.nulls[self.hardest].bits

    @property
    def margin(self) -> float:
        """By how much `above` has to exceed zero."""
        return self.nulls[self.hardest].margin

    @property
    def is_clear(self) -> bool:
        """Whether the experts reveal more than every null; if not, it is unclear whether they learned anything."""
        return self.above > self.margin


def judge(bits: float, draws: Mapping[str, np.ndarray], tests: int = 1) -> Judgement:
    """Hold bits against the draws (R,) of each null.

    For untrained routers, the chance that any of `tests` judgements is clear is at most 5 %.
    """
    nulls = {}
    for name, drawn in draws.items():
        R, margin = len(drawn), math.inf
        if R > 1:
            power = 3 if name in LUCK else 1
            roots = drawn ** (1 / power)
            factor = student_t(R - 1, 1 - 0.05 / tests) * math.sqrt(1 + 1 / R)
            margin = float((roots.mean() + factor * roots.std(ddof=1)) ** power - drawn.mean())
        nulls[name] = Null(float(drawn.mean()) if R else 0.0, margin)
    return Judgement(bits, nulls)


def judge_against_nulls(
    model: Transformer, probe: Probe, learned: np.ndarray, random: np.ndarray, seed: int = 0
) -> list[dict[str, Judgement]]:
    """For every layer, by measure: whether its experts reveal more about the probe's sources than every null.

    Args:
        learned: the model's own first choices on the probe, (L, N).
        random: those of the `random_routers` of the same model and probe, (L, R, N).
        seed: of the model's training, which also drew its first weights.
    """
    E, (windows, T), tests = model.config.n_experts, probe.ids.shape, len(learned) * len(MEASURES)
    untrained = [
        first_choices(Transformer(model.config, seed=seed + i), probe.ids) for i in range(INITIALISATIONS)
    ]  # of (L, N) each
    by_place = np.tile(np.random.default_rng(seed).integers(0, E, (DRAWS, T)), windows)  # (R, N)
    position, shifted = expert_information(by_place, E, probe), shifted_sources(probe)
    judgements = []
    for layer, choices in enumerate(learned):
        bits = expert_information(choices[None], E, probe)
        draws = {
            "shuffled": expert_information(choices[None], E, probe, shifted),
            "position": position,
            "before": expert_information(np.stack([each[layer] for each in untrained]), E, probe),
            "random": expert_information(random[layer], E, probe),
        }
        judgements.append(
            {
                measure: judge(float(bits[measure][0]), {null: drawn[measure] for null, drawn in draws.items()}, tests)
                for measure in MEASURES
            }
        )
    return judgements


def shifted_sources(probe: Probe, draws: int = DRAWS, seed: int = 0) -> np.ndarray:
    """The probe's sources moved along the text, as around a ring, by random numbers of sentences: (R, N).

    A speaker stays for several sentences, and a router may stay with an expert just as long: two such series agree by
    luck far more often than independent draws would. Shifted, both keep all their habits, and only what ties them to
    each other is gone (against “nonsense correlations” of two slow series, as Harris 2020). No shift is drawn twice or
    is shorter than a twentieth of the text; so R is less than `draws` where the text has few sentences.

    What the token itself gives away is gone, too, so beyond the token this null tells more than luck does: little more
    where tokens are characters, 0.1 bits more on 6,144 words. That makes the test stricter, never laxer
    (`python -m benchmarks chance`).
    """
    sentence = probe.sentences.ravel()
    _, first, sentence = np.unique(sentence, return_index=True, return_inverse=True)
    speakers, M = probe.sources.ravel()[first], len(first)
    least = max(M // 20, 1)
    shifts = np.random.default_rng(seed).permutation(np.arange(least, M - least + 1))[:draws]
    return speakers[(sentence + shifts[:, None]) % M]


@torch.no_grad()
def random_routers(model: Transformer, ids: torch.Tensor, seed: int = 0) -> np.ndarray:
    """First choices (L, R, N) of routers with random weights, on the streams that the trained ones read."""
    E, generator = model.config.n_experts, torch.Generator().manual_seed(seed)
    read = trace(model, ids, names=["ff_in"])
    choices = []
    for layer in expert_layers(model.config):
        stream = read["ff_in", layer].flatten(0, 1).cpu()  # (N, d)
        scores = stream @ torch.randn(stream.shape[1], DRAWS * E, generator=generator)
        choices.append(scores.unflatten(1, (DRAWS, E)).argmax(dim=-1).T.numpy())
    return np.stack(choices)
