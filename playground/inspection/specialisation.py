"""What experts learned: how much a token's expert tells about its true source, in bits, and against chance.

E = experts, S = sources (the hidden speakers of a language that has them).

The mutual information I(expert; source) is 0 where knowing the expert says nothing about who speaks, and at most the
entropy of the sources (2 bits for four equally frequent speakers). Taken plainly it misleads: a router that looks at
nothing but the token, even an untrained one, scores what that token gives away. So three measures stand side by side:

total       I(expert; source)
beyond      I(expert; source | token): what is told beyond the token itself, 0 for a router that sees only the token
remembered  the same at the openings of sentences alone, where all sources write the same tokens: only what was read in
            earlier sentences can tell them apart there

each against chance (`chance.py`), and all against what a perfect reader would know (`information.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..model import ModelConfig, Transformer
from .chance import SHIFTS, Chance, chance, information_by_shift, shifted_sources
from .information import counted, mutual_information
from .probe import Probe
from .routing import RoutedText, routing_of

MEASURES = ("total", "beyond", "remembered")


@dataclass(frozen=True, eq=False)
class LayerInformation:
    """What the experts of one layer tell about the true source; each token counts with its first choice."""

    layer: int
    table: np.ndarray
    """(E, S) how many tokens of each source chose each expert first."""
    bits: dict[str, float]
    """By measure: total, beyond, remembered."""
    by_chance: dict[str, Chance]
    """The same measures with the sources shifted along the text, the largest over all layers."""


def specialisation(routed: RoutedText, probe: Probe, shifts: int = SHIFTS) -> list[LayerInformation]:
    """What the experts of every layer tell about the sources of `probe`, whose ids were routed.

    `shifts` of the sources make the chance; 0 leaves it out.
    """
    first = routed.experts[..., 0].flatten(1).numpy()  # (L, N)
    measured = bits_and_shifts(first, routed.n_experts, probe, shifts)
    by_chance = {name: chance(bits, shifted) for name, (bits, shifted) in measured.items() if shifts}
    return [
        LayerInformation(
            layer,
            counted(first[i], probe.sources.ravel(), routed.n_experts, len(probe.names)),
            {name: bits[i] for name, (bits, _) in measured.items()},
            {name: layers[i] for name, layers in by_chance.items()},
        )
        for i, layer in enumerate(routed.layers)
    ]


def bits_and_shifts(
    first: np.ndarray, n_experts: int, probe: Probe, shifts: int = SHIFTS
) -> dict[str, tuple[list[float], np.ndarray]]:
    """By measure: the bits that first choices (L, N) tell of the sources (L), and of the same shifted (R, L)."""
    sources, sentences = probe.sources.ravel(), probe.sentences.ravel()
    S, found = len(probe.names), {}
    for name, some, given in of_measure(probe):
        given = None if name == "total" else given
        bits = [mutual_information(counted(layer, sources[some], n_experts, S, given)) for layer in first[:, some]]
        shifted = shifted_sources(sources[some], sentences[some], given, shifts)
        found[name] = bits, information_by_shift(first[:, some], shifted, n_experts, S, given)
    return found


def of_measure(probe: Probe) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """By measure: which of the N tokens count (N,), and what is known of those already (one number if nothing is)."""
    tokens, opens = probe.ids.flatten().numpy(), probe.openings.ravel()
    everywhere = np.ones(len(tokens), dtype=bool)
    return [
        ("total", everywhere, np.zeros_like(tokens)),
        ("beyond", everywhere, tokens),
        ("remembered", opens, tokens[opens]),
    ]


def specialisation_over_training(
    config: ModelConfig, snapshots: Iterable[tuple[int, Mapping[str, torch.Tensor]]], probe: Probe
) -> list[dict[str, Any]]:
    """The same measures along a run, from snapshots (step, weights): records {step, total, beyond, remembered}.

    Each measure is a list with a number of bits per layer with experts; plain values, to be kept with a checkpoint.
    """
    model, records = Transformer(config), []
    for step, state in snapshots:
        model.load_state_dict({name: tensor.float() for name, tensor in state.items()})
        layers = specialisation(routing_of(model, probe.ids), probe, shifts=0)
        records.append({"step": step, **{name: [layer.bits[name] for layer in layers] for name in MEASURES}})
    return records
