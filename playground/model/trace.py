"""Taps: how the forward pass is watched and edited, and the Trace of everything a Recorder saw.

A tap is any callable `tap(name, layer, x) -> x`. The forward pass calls it with each named intermediate and continues
with what it returns. So a tap that returns x unchanged only records; one that returns something else edits. `layer` is
None for what belongs to the whole model. TransformerLens has the same names, with `hook_` before them, for embed, q, k,
v, pattern, z, attn_out, resid_pre, resid_mid and resid_post (under pre-norm). The others are ours. There, positions is
pos_embed, q_rotated and k_rotated are rot_q and rot_k, masked_scores is attn_scores, ff_hidden is mlp.hook_post and
ff_out is mlp_out, while attn_in and expert_weights are other tensors: before the norm, and of all experts.

    whole model   embed       (B, T, d)     token embeddings, scaled if the config says so
                  positions   (T, d)        what learned or sinusoidal positions add
                  final       (B, T, d)     the residual stream after the final norm
                  logits      (B, T, V)
    each layer    resid_pre   (B, T, d)     what enters the block
                  attn_in     (B, T, d)     what attention reads: normed under pre-norm, resid_pre under post-norm
                  q           (B, T, H, D)  k, v (B, T, Hkv, D); q and k after QK-norm, before rotation
                  q_rotated   (B, T, H, D)  k_rotated (B, T, Hkv, D); only with rotary positions
                  scores      (B, H, T, S)  q·k / √D for every key, S = cached keys + T
                  masked_scores             the same with −inf where a query may not look
                  pattern     (B, H, T, S)  attention weights, rows sum to 1
                  z           (B, T, H, D)  each head's blend of values
                  attn_out    (B, T, d)     heads concatenated and projected
                  resid_mid   (B, T, d)     the residual stream after attention
                  ff_in       (B, T, d)     what the feed-forward layer reads
                  ff_hidden   (B, T, d_ff)  after the nonlinearity
                  ff_out      (B, T, d)
                  resid_post  (B, T, d)     what leaves the block
    mixtures      router_logits (B, T, E); router_probabilities (B, T, E), which balance reads, while the choice and
                  its weights follow from the logits; experts (B, T, K), the chosen ones, heaviest first;
                  expert_weights (B, T, K), rows sum to 1; no ff_hidden, since only visited experts compute theirs
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch

Tap = Callable[[str, "int | None", torch.Tensor], torch.Tensor]


def no_tap(name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
    """Watches nothing. With this tap attention may use the fused kernel, which never forms scores or pattern."""
    return x


class TextTap:
    """A tap for texts that are read piece by piece, as in generation: it knows where in its text each pass reads.

    It serves one pass after another, not two at the same time.
    """

    cacheable = True
    """Whether the keys and values of earlier tokens stay valid when later tokens are read."""
    start = first = 0
    """Where in the text the model's window begins, and where this pass's first token is."""
    grows = False
    """Whether the text grows, so that a place beyond its end may still be reached."""

    def begin(self, start: int, first: int) -> None:
        """Set where in the text the next pass reads."""
        self.start, self.first, self.grows = start, first, True

    def __call__(self, name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
        """See the intermediate and return it, changed or not."""
        raise NotImplementedError


class Trace:
    """The named intermediates of one forward pass: `trace["pattern", 2]` is layer 2's attention weights."""

    def __init__(self, tensors: dict[tuple[str, int | None], torch.Tensor]):
        self._tensors = tensors

    def __getitem__(self, key: str | tuple[str, int | None]) -> torch.Tensor:
        name, layer = key if isinstance(key, tuple) else (key, None)
        if (name, layer) not in self._tensors:
            where = "for the whole model" if layer is None else f"in layer {layer}"
            raise KeyError(f"{name!r} was not recorded {where}")
        return self._tensors[name, layer]

    def __contains__(self, key: str | tuple[str, int | None]) -> bool:
        return (key if isinstance(key, tuple) else (key, None)) in self._tensors

    def __iter__(self) -> Iterator[tuple[str, int | None]]:
        return iter(self._tensors)


class Recorder:
    """A tap that keeps what it sees in `trace`; with `names`, only those. Tensors are detached, not copied."""

    def __init__(self, names: Iterable[str] | None = None):
        self._names = None if names is None else frozenset(names)
        self._tensors: dict[tuple[str, int | None], torch.Tensor] = {}
        self.trace = Trace(self._tensors)

    def __call__(self, name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
        if self._names is None or name in self._names:
            self._tensors[name, layer] = x.detach()
        return x


def chain(*taps: Tap) -> Tap:
    """One tap that passes each intermediate through several, in order: edits first, then a Recorder sees them."""

    def chained(name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
        for tap in taps:
            x = tap(name, layer, x)
        return x

    return chained
