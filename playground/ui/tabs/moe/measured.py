"""Measured: what a mixture's experts tell about the sources of its language, computed once per model and kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....inspection.expert_information import (
    joint_counts,
    mutual_information,
)
from ....inspection.nulls import Judgement, judge_against_nulls, random_routers
from ....inspection.probe import Probe, probe
from ....inspection.routing import expert_layers, first_choices
from ....kept import Kept
from ....storage import Checkpoint

PROBE_TOKENS = 6144


@dataclass(frozen=True, eq=False)
class Found:
    """What was measured of one model."""

    names: tuple[str, ...]
    layers: tuple[int, ...]
    """The L layers with experts."""
    tables: list[np.ndarray]
    """By layer, (E, S) how many tokens of each source chose each expert first."""
    judgements: list[dict[str, Judgement]]
    """By layer and measure: what the experts tell, against what routers tell that learned nothing."""
    token_bits: float
    """What the token alone gives away of its source."""


_kept = Kept(entries=128, megabytes=32)  # models never change once they are in the registry


def found_in(checkpoint: Checkpoint) -> Found:
    """What the experts of a model tell about the sources of its language; measured once.

    Raises ValueError for a model whose text has no known sources.
    """

    def measure() -> Found:
        text, model, E = _probe(checkpoint), checkpoint.model, checkpoint.config.n_experts
        tokens, sources, S = text.ids.flatten().numpy(), text.sources.ravel(), len(text.names)
        seed = checkpoint.training.seed if checkpoint.training else 0
        learned, random = first_choices(model, text.ids), random_routers(model, text.ids, seed)
        return Found(
            text.names,
            expert_layers(checkpoint.config),
            [joint_counts(choices, sources, E, S)[0] for choices in learned],
            judge_against_nulls(model, text, learned, random, seed),
            mutual_information(joint_counts(tokens, sources, int(tokens.max()) + 1, S)),
        )

    return _kept.get("found", measure, owner=checkpoint.model)


def has_sources(checkpoint: Checkpoint) -> bool:
    """Whether the true source of every token of the model's language is known."""
    return checkpoint.language is not None and bool(checkpoint.language.sources)


def _probe(checkpoint: Checkpoint) -> Probe:
    if not has_sources(checkpoint):
        raise ValueError(
            "The true sources of this model's text are unknown. Choose an MoE model trained on Dialects for that. "
            "Below, each expert's favourite tokens"
        )
    T = checkpoint.config.context_length
    return probe(checkpoint.language, checkpoint.tokenizer.encode, T, n_windows=max(PROBE_TOKENS // T, 1))
