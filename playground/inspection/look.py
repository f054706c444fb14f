"""Look: one prompt read by one model, with every intermediate at hand. All of inspection starts from it.

B = 1 prompt, T = tokens, H = query heads, Hkv = key/value heads, D = d_head, d = d_model.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from ..data.tokenizers import visible
from ..model import ModelConfig, Pass, Recorder, Trace, Transformer

if TYPE_CHECKING:
    from ..storage import Checkpoint

KEPT_CELLS = 2_000_000
"""A trace keeps at most this many attention cells (all layers and heads); beyond, they are recomputed on request."""
_PER_CELL = ("scores", "masked_scores", "pattern")


@dataclass(frozen=True, eq=False)
class Look:
    """What a model made of a prompt. Nothing here is ever changed."""

    checkpoint: Checkpoint
    """The checkpoint: tokenizer, history, and the model on the CPU, like everything here."""
    ids: tuple[int, ...]
    """The prompt's T tokens."""
    tokens: tuple[str, ...]
    """The tokens' texts, with whitespace visible."""
    trace: Trace
    """Every intermediate, batch of 1. For long prompts, without scores and pattern: call `pattern(layer)` instead."""

    @property
    def model(self) -> Transformer:
        """The model that was looked into."""
        return self.checkpoint.model

    @property
    def config(self) -> ModelConfig:
        """Its config."""
        return self.checkpoint.model.config

    @property
    def length(self) -> int:
        """T: how many tokens were read."""
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Bytes that the trace holds."""
        return sum(self.trace[key].numel() * self.trace[key].element_size() for key in self.trace)

    def labels(self) -> list[str]:
        """Place and text of every token: `3 ␣the`."""
        return [f"{place} {token}" for place, token in enumerate(self.tokens)]

    def token_label(self, token: int) -> str:
        """Any token of the vocabulary as text with visible whitespace; an id without a token as its number."""
        if token >= self.checkpoint.tokenizer.vocab_size:
            return f"#{token}"
        return visible(self.checkpoint.tokenizer.token_text(token))

    def queries(self, layer: int) -> torch.Tensor:
        """Queries (H, T, D) as they meet the keys: rotated if positions are rotary."""
        name = "q_rotated" if ("q_rotated", layer) in self.trace else "q"
        return self.trace[name, layer][0].transpose(0, 1)

    def keys(self, layer: int) -> torch.Tensor:
        """Keys (H, T, D), one for every query head: a shared key is repeated for each head that uses it."""
        name = "k_rotated" if ("k_rotated", layer) in self.trace else "k"
        return _per_query_head(self.trace[name, layer][0].transpose(0, 1), self.config)

    def values(self, layer: int) -> torch.Tensor:
        """Values (H, T, D), one for every query head."""
        return _per_query_head(self.trace["v", layer][0].transpose(0, 1), self.config)

    def scores(self, layer: int) -> torch.Tensor:
        """q·k / √D (H, T, T) before the mask."""
        if ("scores", layer) in self.trace:
            return self.trace["scores", layer][0]
        return self.queries(layer) @ self.keys(layer).transpose(-2, -1) / math.sqrt(self.config.d_head)

    def pattern(self, layer: int) -> torch.Tensor:
        """Attention weights (H, T, T), rows sum to 1; 0 where the mask hides a key."""
        if ("pattern", layer) in self.trace:
            return self.trace["pattern", layer][0]
        scores = self.scores(layer)
        if self.config.causal:
            hidden = torch.ones(self.length, self.length, dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(hidden, -math.inf)
        return scores.softmax(dim=-1)

    def kv_head(self, head: int) -> int:
        """The key/value head that query head `head` reads: its own, or the one its group shares."""
        return head // (self.config.n_heads // self.config.kv_heads)


@torch.no_grad()
def look(checkpoint: Checkpoint, ids: Sequence[int]) -> Look:
    """Run ids (T,) through the checkpoint's model once, on the CPU, and keep what every step made.

    Raises ValueError if there are no ids, or more than the context holds.
    """
    if not len(ids):
        raise ValueError("the prompt is empty: type something first")
    if (model := checkpoint.model.on_cpu()) is not checkpoint.model:
        checkpoint = dataclasses.replace(checkpoint, model=model)
    config = model.config
    cells = config.n_layers * config.n_heads * len(ids) ** 2
    recorder = Recorder()

    def tap(name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
        return x if name in _PER_CELL and cells > KEPT_CELLS else recorder(name, layer, x)

    model(torch.tensor([list(ids)]), Pass(tap=tap))
    texts = tuple(visible(checkpoint.tokenizer.token_text(int(token))) for token in ids)
    return Look(checkpoint, tuple(int(token) for token in ids), texts, recorder.trace)


def _per_query_head(x: torch.Tensor, config: ModelConfig) -> torch.Tensor:
    """(Hkv, T, D) → (H, T, D)."""
    return x.repeat_interleave(config.n_heads // config.kv_heads, dim=0)
