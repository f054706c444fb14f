"""Geometry: how a gradient becomes a step. Plain descent follows it; AdamW and Muon scale and turn it first.

A passage moves the weights by its own gradient in this geometry, so its influence on a selection is the product of the
two gradients there (Pruthi et al. 2020, with the preconditioner of Chang et al. 2024, "TrackStar", 3.2).
"""

from __future__ import annotations

import torch

from ..data import Corpus
from ..model import Transformer
from ..training import TrainConfig
from .gradients import Gradient, loss_gradient

PLAIN, ADAM, OPTIMIZER = "plain", "adam", "optimizer"
GEOMETRIES = (PLAIN, ADAM, OPTIMIZER)
"""No scaling; every number by the size of its own gradients; matrices turned as Muon turns them, where it trains."""
DAMPING = 1e-2
"""Of the largest size, added to all: what hardly ever has a gradient is not blown up."""
BATCHES, WINDOWS = 6, 16
"""Batches whose gradients tell the sizes, and windows of each."""


class Geometry:
    """The geometry of one optimizer at one moment of a run."""

    def __init__(self, kind: str, model: Transformer, corpus: Corpus, training: TrainConfig, seed: int = 0):
        if kind not in GEOMETRIES:
            raise ValueError(f"there is no geometry {kind!r}: choose one of {', '.join(GEOMETRIES)}")
        self.kind, self._training = kind, training
        self._muon = kind == OPTIMIZER and training.optimizer == "muon"
        self._sizes: Gradient = {}
        if kind == PLAIN:
            return
        rng = torch.Generator().manual_seed(seed)
        for _ in range(BATCHES):
            x, y = corpus.batch("train", WINDOWS, model.config.context_length, rng)
            for name, g in loss_gradient(model, x, y).items():
                each = _grams(g / y.numel()) if self._turns(name, g) else (g / y.numel()).square()
                self._sizes[name] = self._sizes.get(name, 0) + each / BATCHES

    def direction(self, gradient: Gradient) -> Gradient:
        """The step that follows from a gradient."""
        return {name: self._step(name, g) for name, g in gradient.items()}

    def _turns(self, name: str, g: torch.Tensor) -> bool:
        return self._muon and name.startswith("blocks.") and g.ndim >= 2

    def _step(self, name: str, g: torch.Tensor) -> torch.Tensor:
        training = self._training
        if self.kind == PLAIN:
            return g * training.learning_rate
        sizes = self._sizes[name]
        if not self._turns(name, g):
            scale = sizes.sqrt()
            return g * training.learning_rate / (scale + DAMPING * scale.max()).clamp(min=1e-12)
        values, vectors = torch.linalg.eigh(sizes.double())
        scale = values.clamp(min=0).sqrt()
        scale = (scale + DAMPING * scale.amax(dim=-1, keepdim=True)).clamp(min=1e-12)
        root = ((vectors / scale.unsqueeze(-2)) @ vectors.mT).to(g.dtype)
        wide = g.shape[-2] <= g.shape[-1]
        return training.muon_learning_rate * (root @ g if wide else g @ root)


def _grams(g: torch.Tensor) -> torch.Tensor:
    """The product (…, n, n) of matrices (…, n, m) with themselves, n the smaller side."""
    return g @ g.mT if g.shape[-2] <= g.shape[-1] else g.mT @ g
