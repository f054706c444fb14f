"""Linear and Embedding whose numbers are drawn by whoever builds the model, and not by torch first."""

from __future__ import annotations

from torch import nn


class Linear(nn.Linear):
    """torch's linear layer, its memory left as it was found: `Transformer.initialise` draws all weights anew.

    Nothing is drawn twice; and a model that is built for its shapes alone, on torch's meta device, does not make torch
    load its compiler, which takes seconds.
    """

    def reset_parameters(self) -> None:
        pass


class Embedding(nn.Embedding):
    """torch's embedding, its memory left as it was found, for the same reasons."""

    def reset_parameters(self) -> None:
        pass
