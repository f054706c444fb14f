"""KVCache: the keys and values of tokens already read, allocated once and passed into the forward pass."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .config import ModelConfig


class KVCache:
    """Keys and values of every layer for `length` tokens, with room for `capacity`.

    B = batch, Hkv = key/value heads, S = capacity, D = d_head. Pass it to `model(ids, Pass(cache=cache))`: ids are
    the tokens that follow the cached ones, and the call adds their keys and values to the cache. Whoever makes a
    cache keeps it; the model never holds one. Only a causal model can use a cache: without the mask, a new token would
    change the keys and values of all earlier ones.
    """

    def __init__(self, layers: list[torch.Tensor]):
        self.adopt(layers)
        self.length = 0

    def adopt(self, layers: list[torch.Tensor]) -> None:
        """Use these tensors from now on, one per layer: (B, 2·Hkv, S, D), all heads' keys, then all heads' values."""
        self.layers, half = layers, layers[0].shape[1] // 2
        self.keys = [layer.narrow(1, 0, half) for layer in layers]  # views, per layer (B, Hkv, S, D)
        self.values = [layer.narrow(1, half, half) for layer in layers]

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
        shape = (batch, 2 * config.kv_heads, capacity, config.d_head)
        return cls([torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.n_layers)])

    @property
    def capacity(self) -> int:
        """How many tokens fit."""
        return self.keys[0].shape[2]

    def append(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Write k, v (B, Hkv, T, D) of one layer after the cached ones; return all so far (B, Hkv, length + T, D).

        `length` moves only in `advance`, once all layers have written.
        """
        keys, values, n_tokens = self.keys[layer], self.values[layer], k.shape[2]
        keys.narrow(2, self.length, n_tokens).copy_(k)  # narrow is quicker than slicing, and this runs for every token
        values.narrow(2, self.length, n_tokens).copy_(v)
        end = self.length + n_tokens
        return keys.narrow(2, 0, end), values.narrow(2, 0, end)

    def append_one(self, layer: int, kv: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """As `append` for T = 1, faster: kv (B, 2·Hkv, D) holds every head's key, then every head's value."""
        self.layers[layer].select(2, self.length).copy_(kv)
        end = self.length + 1
        return self.keys[layer].narrow(2, 0, end), self.values[layer].narrow(2, 0, end)

    def of_next(self, table: torch.Tensor) -> torch.Tensor:
        """The rows (B or 1, …) of a position table for the next token of each text."""
        return table.narrow(0, self.length, 1)

    def places(self, n_tokens: int) -> slice | torch.Tensor:
        """Positions of the next `n_tokens` tokens: a slice, or (B, n_tokens) where rows differ."""
        return slice(self.length, self.length + n_tokens)

    @property
    def seen(self) -> torch.Tensor | None:
        """Which keys a single next token may see, (B, 1, 1, S); None if it may see them all."""
        return None

    def advance(self, n_tokens: int) -> None:
        """Count the tokens that all layers have just written."""
        self.length += n_tokens

    def split(self, sizes: Sequence[int]) -> list[KVCache]:
        """Divide the texts into groups of these sizes: one cache per group, sharing this one's memory."""
        parts = [KVCache(list(layers)) for layers in zip(*(layer.split(sizes) for layer in self.layers))]
        for part in parts:
            part.length = self.length
        return parts

    def clear(self) -> None:
        """Forget all tokens."""
        self.length = 0


class RaggedCache(KVCache):
    """A cache whose rows hold texts of different lengths and are read on by one token each, all in one forward pass.

    R = rows in use, always the first ones. A row joins once its window is read, and leaves when its text is done. A
    pass reads one token (R, 1) for every row, at that row's own position; `length` is the longest row's. Only rows that
    are `going` keep the token: the others will be given the same token again. (Orca's "selective batching", Yu et al.
    2022, section 4.2, with the padding that a dense kernel needs.)
    """

    def __init__(self, config: ModelConfig, *, device: torch.device | str = "cpu"):
        shape = (0, 2 * config.kv_heads, 0, config.d_head)
        super().__init__([torch.zeros(shape, device=device) for _ in range(config.n_layers)])
        self.context_length = config.context_length
        self.lengths = torch.zeros(0, dtype=torch.long, device=device)  # (R,)

    @property
    def rows(self) -> int:
        """R."""
        return len(self.lengths)

    def join(self, read: KVCache) -> None:
        """Copy the rows of another cache in after those in use."""
        first, n, length = self.rows, read.keys[0].shape[0], read.length
        self._make_room(first + n, length + 1)
        for own, new in zip(self.layers, read.layers):
            own[first : first + n, :, :length] = new[:, :, :length]
        self.lengths = torch.cat((self.lengths, self.lengths.new_full((n,), length)))

    def leave(self, row: int) -> None:
        """Forget a row; the last row takes its place."""
        last = self.rows - 1
        if row != last:
            length = int(self.lengths[last])
            for layer in self.layers:
                layer[row, :, :length] = layer[last, :, :length]
            self.lengths[row] = self.lengths[last]
        self.lengths = self.lengths[:last]

    def begin(self, going: torch.Tensor) -> None:
        """Say which rows (R,) the next pass extends; the others stay unchanged."""
        self._going = going.long()
        self.length = int(self.lengths.max())  # every row is read up to the longest one's length
        self._make_room(self.rows, self.length + 1)
        self._rows = torch.arange(self.rows, device=going.device)
        self._seen = (torch.arange(self.length + 1, device=going.device) <= self.lengths[:, None])[:, None, None]

    def places(self, n_tokens: int) -> torch.Tensor:
        assert n_tokens == 1, "rows of different lengths are read on by one token at a time"
        return self.lengths[:, None]

    @property
    def seen(self) -> torch.Tensor:
        return self._seen

    def of_next(self, table: torch.Tensor) -> torch.Tensor:
        return table.index_select(0, self.lengths)

    def append(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.append_one(layer, torch.cat((k[:, :, 0], v[:, :, 0]), dim=1))

    def append_one(self, layer: int, kv: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.layers[layer][self._rows, :, self.lengths] = kv
        rows, end = self.rows, self.length + 1
        return self.keys[layer][:rows, :, :end], self.values[layer][:rows, :, :end]

    def advance(self, n_tokens: int) -> None:
        self.lengths += self._going

    def _make_room(self, rows: int, tokens: int) -> None:
        """Grow, by at least half as much again, if the rows or their tokens do not fit."""
        have_rows, _, have_tokens, _ = self.keys[0].shape
        if rows <= have_rows and tokens <= have_tokens:
            return
        rows = have_rows if rows <= have_rows else max(rows, have_rows * 3 // 2)
        tokens = have_tokens if tokens <= have_tokens else max(tokens, have_tokens * 3 // 2, 64)
        tokens = min(tokens, self.context_length)
        larger = []
        for old in self.layers:
            new = old.new_zeros((rows, old.shape[1], tokens, old.shape[3]))
            new[:have_rows, :, :have_tokens] = old
            larger.append(new)
        self.adopt(larger)
