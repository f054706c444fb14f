"""KVCache: the keys and values of tokens already read, allocated once and passed into the forward pass."""

from __future__ import annotations

import torch

from .config import ModelConfig


class KVCache:
    """Keys and values of every layer for `length` tokens, with room for `capacity`.

    B = batch, Hkv = key/value heads, S = capacity, D = d_head. Pass it to `model(ids, cache=cache)`: ids are taken as
    the tokens that follow, and the cache has grown by their number when the call returns. It belongs to whoever made
    it; the model never holds one. Only a causal model can use a cache: without the mask, a new token would change the
    keys and values of all earlier ones.
    """

    def __init__(self, keys: list[torch.Tensor], values: list[torch.Tensor]):
        self.keys = keys  # per layer (B, Hkv, S, D)
        self.values = values  # per layer (B, Hkv, S, D)
        self.length = 0

    @classmethod
    def allocate(
        cls,
        config: ModelConfig,
        batch: int = 1,
        capacity: int | None = None,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> KVCache:
        """Room for `capacity` tokens (the whole context by default) of `batch` sequences."""
        if not config.causal:
            raise ValueError("without a causal mask every new token changes all earlier keys: decode without a cache")
        capacity = config.context_length if capacity is None else capacity
        if not 1 <= capacity <= config.context_length:
            raise ValueError(f"a cache of {capacity} tokens does not fit a context of {config.context_length}")
        shape = (batch, config.kv_heads, capacity, config.d_head)
        layers = range(config.n_layers)
        return cls(
            [torch.zeros(shape, dtype=dtype, device=device) for _ in layers],
            [torch.zeros(shape, dtype=dtype, device=device) for _ in layers],
        )

    @property
    def capacity(self) -> int:
        """How many tokens fit."""
        return self.keys[0].shape[2]

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values held now (not of the room kept for more)."""
        k = self.keys[0]
        return 2 * len(self.keys) * k.shape[0] * k.shape[1] * self.length * k.shape[3] * k.element_size()

    def append(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Write k, v (B, Hkv, T, D) of one layer after the cached ones; return all so far (B, Hkv, length + T, D).

        `length` moves only in `advance`, once all layers have written.
        """
        keys, values, n_tokens = self.keys[layer], self.values[layer], k.shape[2]
        keys.narrow(2, self.length, n_tokens).copy_(k)  # narrow is quicker than slicing, and this runs for every token
        values.narrow(2, self.length, n_tokens).copy_(v)
        end = self.length + n_tokens
        return keys.narrow(2, 0, end), values.narrow(2, 0, end)

    def advance(self, n_tokens: int) -> None:
        """Count the tokens that all layers have just written."""
        self.length += n_tokens

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens."""
        if not 0 <= length <= self.length:
            raise ValueError(f"a cache of {self.length} tokens cannot be cut to {length}")
        self.length = length
