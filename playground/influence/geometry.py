"""Geometry: how a gradient becomes a step. AdamW scales it by the sizes of its numbers, Muon turns whole matrices.

A passage moves the weights by its own gradient in this geometry, so its influence on a selection is the product of the
two gradients there (Pruthi et al. 2020, with the preconditioner of Chang et al. 2024, "TrackStar", 3.2).
"""

from __future__ import annotations

import torch

from ..data import Corpus
from ..model import Transformer
from ..training import TrainConfig
from .gradients import Gradient, loss_gradient

DAMPING = 1e-2
"""Of the largest size, added to all: what hardly ever has a gradient is not blown up."""
BATCHES, WINDOWS = 6, 16
"""Batches whose gradients tell the sizes, and windows of each."""


def optimizer_step(model: Transformer, corpus: Corpus, training: TrainConfig, gradient: Gradient) -> Gradient:
    """The step that the optimizer would make of a gradient, by the sizes of those of random batches."""
    rng, sizes = torch.Generator().manual_seed(0), {}
    turned = {name for name, g in gradient.items() if name.startswith("blocks.") and g.ndim >= 2}
    turned = turned if training.optimizer == "muon" else set()
    for _ in range(BATCHES):
        x, y = corpus.batch("train", WINDOWS, model.config.context_length, rng)
        for name, g in loss_gradient(model, x, y).items():
            g = g / y.numel()
            sizes[name] = sizes.get(name, 0) + (_grams(g) if name in turned else g.square()) / BATCHES
    return {
        name: training.muon_learning_rate * _turned(g, sizes[name])
        if name in turned
        else training.learning_rate * g / _damped(sizes[name].sqrt(), sizes[name].sqrt().max())
        for name, g in gradient.items()
    }


def _damped(sizes: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    return (sizes + DAMPING * largest).clamp(min=1e-12)


def _turned(g: torch.Tensor, grams: torch.Tensor) -> torch.Tensor:
    """Matrices (…, n, m) times the inverse root of their grams (…, n, n), n the smaller side."""
    values, vectors = torch.linalg.eigh(grams.double())
    scale = values.clamp(min=0).sqrt()
    root = ((vectors / _damped(scale, scale.amax(dim=-1, keepdim=True)).unsqueeze(-2)) @ vectors.mT).to(g.dtype)
    return root @ g if g.shape[-2] <= g.shape[-1] else g @ root


def _grams(g: torch.Tensor) -> torch.Tensor:
    """The product (…, n, n) of matrices (…, n, m) with themselves, n the smaller side."""
    return g @ g.mT if g.shape[-2] <= g.shape[-1] else g.mT @ g
