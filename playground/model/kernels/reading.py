"""reading: how decoding reads a model: a window of tokens at once, or one more token of each text.

R = texts read on by one token each, d = d_model, V = vocabulary, H = query heads, Hkv = key/value heads, D = d_head,
S = all tokens a query may see.
"""

from __future__ import annotations

import itertools
import math
import threading
import weakref
from typing import Any

import torch
import torch.nn.functional as F

from ..cache import KVCache
from ..forward_pass import PLAIN, Pass
from . import packed
from .bare import bare, products_of
from .elementwise import RMSNormWithBackward, RotationWithBackward
from .packed import check_precision

KEPT_BYTES = 1_500_000_000
"""Of the copies of weights that are kept for the next text, of all models; the least recently used leave first."""

EVERY = 499
"""Of a large matrix, every so-manieth number is summed to see whether it has changed."""


class Reading:
    """A model as decoding reads it, in one precision. It shares what it can with the model; see `bare`."""

    def __init__(self, model: Any, precision: str = "fp32"):
        self.precision = precision
        self._twin = bare(model, precision)
        self.nbytes = sum(each.nbytes for each in products_of(self._twin))
        self._state = _state(model) if self.nbytes else None
        self._one = NextToken(self._twin) if self._twin is not model else None

    @property
    def in_fp32(self) -> bool:
        """Whether all its products are made in fp32, whatever its weights were rounded to."""
        return all(type(each) in (packed.Rounded, packed.Product) for each in products_of(self._twin))

    def is_of(self, model: Any) -> bool:
        """Whether the model still has the weights that were copied, if any were."""
        return self._state is None or self._state == _state(model)

    def window(self, ids: torch.Tensor, cache: KVCache | None = None) -> torch.Tensor:
        """Read all of ids (R, T) at once, filling the cache if there is one; logits (R, V) after the last."""
        if self._one is None:  # hooks on the whole model take part
            return self._twin(ids, Pass(cache=cache)).logits[:, -1]
        x, _ = self._twin.residual_stream(ids, Pass(cache=cache))
        return self._twin.unembed(x[:, -1:])[:, -1]

    def whole(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (R, T, V) after every one of ids (R, T)."""
        return self._twin(ids).logits

    def newest(self, ids: torch.Tensor, cache: KVCache) -> torch.Tensor:
        """Read one token (R, 1) that follows those in the cache; logits (R, V) after it."""
        return self.window(ids, cache) if self._one is None else self._one(ids, cache)


def _state(model: torch.nn.Module) -> list[tuple]:
    """What differs once a weight has changed: by torch's count of changes, or by `.data`, which escapes it.

    Of what is written through `.data` into a large matrix, less than `EVERY` numbers in a row may go unseen: to sum
    all of 60 million takes 11 ms at every text's beginning, so 1.
    """
    return [(p.data_ptr(), 0 if p.is_inference() else p._version, _sum(p.detach())) for p in model.parameters()]


def _sum(weight: torch.Tensor) -> float:
    return (weight if weight.numel() < packed.LARGE else weight.flatten()[::EVERY]).sum().item()


_kept: weakref.WeakKeyDictionary[Any, dict[str, Reading]] = weakref.WeakKeyDictionary()
_used: dict[int, int] = {}  # when each kept reading was asked for last
_turn = itertools.count()
_lock = threading.RLock()


def reading(model: Any, precision: str = "fp32") -> Reading:
    """The model, to be read in that precision. What is costly to make is kept, bounded, until the model goes.

    Raises ValueError where there is no such precision, or none on the model's device.
    """
    check_precision(precision, next(model.parameters()).device)
    with _lock:
        found = _kept.get(model, {}).get(precision)
        if found is not None and found.is_of(model):
            _used[id(found)] = next(_turn)
            return found
        made = Reading(model, precision)
        if made.nbytes:
            _kept.setdefault(model, {})[precision] = made
            _used[id(made)] = next(_turn)
            _make_room()
        return made


def _make_room() -> None:
    held = [(own, name) for own in list(_kept.values()) for name in own]
    held.sort(key=lambda each: _used[id(each[0][each[1]])])
    while len(held) > 1 and sum(own[name].nbytes for own, name in held) > KEPT_BYTES:
        own, name = held.pop(0)
        del own[name]
    alive = {id(own[name]) for own, name in held}
    for each in [each for each in _used if each not in alive]:
        del _used[each]


class NextToken:
    """`Transformer.forward` for one token of each text after those in a cache, written out: rows instead of windows,
    nobody who watches, nothing that only training asks for. A small model's token takes half the time.
    """

    def __init__(self, twin: Any):
        self.twin, self.config = twin, twin.config
        self.scale = math.sqrt(self.config.d_model) if self.config.scale_embeddings else None
        self.gains = [self._gains(block.attention) for block in twin.blocks] if self.config.qk_norm else None

    def _gains(self, attention: Any) -> torch.Tensor:
        """(H + Hkv, D): the gain of every head's query and key."""
        heads = ((attention.q_norm, self.config.n_heads), (attention.k_norm, self.config.kv_heads))
        return torch.cat([norm.weight.detach().expand(n, -1) for norm, n in heads])

    def __call__(self, ids: torch.Tensor, cache: KVCache) -> torch.Tensor:
        config, twin = self.config, self.twin
        twin.check_room(1, cache)
        x = twin.embedding(ids.select(1, 0))  # (R, d), our own from here on: sums are made in place
        if self.scale is not None:
            x = x * self.scale
        if config.positions == "learned":
            x = x + cache.of_next(twin.position_embedding.weight)
        elif config.positions == "sinusoidal":
            x = x + cache.of_next(twin.sinusoids)
        rotary = None
        if config.positions == "rotary":
            rotary = cache.of_next(twin.cosines), cache.of_next(twin.sines)  # (R or 1, 1, D)
        pre = config.norm_placement == "pre"
        for layer, block in enumerate(twin.blocks):
            z = self.attended(block.attention, block.attention_norm(x) if pre else x, rotary, cache, layer)
            x = block.attention.out.add_to(x, z)
            if not pre:
                x = block.attention_norm(x)
            x = self.think(block.feedforward, block.feedforward_norm(x) if pre else x, x)
            if not pre:
                x = block.feedforward_norm(x)
        cache.advance(1)
        return twin.head(twin.final_norm(x))

    def attended(
        self, attention: Any, x: torch.Tensor, rotary: tuple | None, cache: KVCache, layer: int
    ) -> torch.Tensor:
        """Each head's blend of values, (R, H·D)."""
        H, Hkv, D = self.config.n_heads, self.config.kv_heads, self.config.d_head
        if self.config.attention_layout == "separate_heads":
            qkv = torch.cat([each[:, 0] for each in attention.project(x[:, None])], dim=1)  # (R, H + 2·Hkv, D)
        else:
            qkv = attention.qkv(x).view(-1, H + 2 * Hkv, D)
        if self.gains is not None or rotary is not None:
            qk = found = qkv.narrow(1, 0, H + Hkv)
            if self.gains is not None:
                found = _normed(found, self.gains[layer], self.config.norm_eps)
            if rotary is not None:
                found = RotationWithBackward.value(found, *rotary)
            qk.copy_(found)
        k, v = cache.append_one(layer, qkv.narrow(1, H, 2 * Hkv))  # (R, Hkv, S, D)
        q = qkv.narrow(1, 0, H).unsqueeze(2)
        return F.scaled_dot_product_attention(q, k, v, cache.seen, enable_gqa=Hkv < H).view(-1, H * D)

    def think(self, feedforward: Any, x: torch.Tensor, sums: torch.Tensor) -> torch.Tensor:
        """`sums` (R, d) with what the feed-forward layer or the experts answer to x (R, d) added in place."""
        if not hasattr(feedforward, "router"):
            return feedforward.down.add_to(sums, feedforward.hidden(x))
        rows = x[:, None]
        route = feedforward.route(rows, PLAIN, 0)
        out = feedforward.one_by_one(rows, route.experts, route.weights)[:, 0]
        if self.config.shared_expert:
            out = out + feedforward.shared.down(feedforward.shared.hidden(x))
        return sums.add_(out)


def _normed(x: torch.Tensor, gains: torch.Tensor, eps: float) -> torch.Tensor:
    """`rms_norm` of each of x (…, heads, D) with gains of its own (heads, D)."""
    if x.is_cpu:
        return RMSNormWithBackward.value(x, gains, eps)
    return F.rms_norm(x, x.shape[-1:], None, eps) * gains
