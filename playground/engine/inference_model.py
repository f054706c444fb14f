"""InferenceModel: a model prepared for decoding, with two verbs: `prefill` a text, `decode_one` more token.

R = texts, T = tokens, V = vocabulary.
"""

from __future__ import annotations

import torch

from ..kept import Kept
from ..model import KVCache, Pass, Tap, Transformer, no_tap
from ..model.kernels import packed
from ..model.kernels.next_token import NextToken
from ..model.kernels.packed import check_precision
from ..model.kernels.strip_module_calls import products_of, strip_module_calls

EVERY = 499
"""To see whether a large matrix has changed, every nth of its numbers is summed."""


class InferenceModel:
    """A model in one precision. It shares with the original whatever is not a copy in that precision."""

    def __init__(self, model: Transformer, precision: str = "fp32"):
        self.config, self.precision = model.config, precision
        self.device = next(model.parameters()).device
        self._model = strip_module_calls(model, precision)
        self.nbytes = sum(each.nbytes for each in products_of(self._model))
        """Bytes that the copied weights take."""
        self._fingerprint = _fingerprint(model) if self.nbytes else None
        self.hooked = self._model is model
        """Whether hooks take part: then the model itself is called, as a whole, and they see every token."""
        self._next_token = None if self.hooked else NextToken(self._model)

    def is_current(self, model: Transformer) -> bool:
        """Whether the model's weights are still those that were copied, if any were."""
        return self._fingerprint is None or self._fingerprint == _fingerprint(model)

    def logits(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (R, T, V) after every one of ids (R, T)."""
        return self._model(ids).logits

    def prefill(self, ids: torch.Tensor, cache: KVCache | None = None, tap: Tap = no_tap) -> torch.Tensor:
        """Read ids (R, T) at once, after the tokens in the cache if there is one; logits (R, V) after the last."""
        last_only = not self.hooked and tap is no_tap  # a tap sees every token, in every layer
        return self._model(ids, Pass(cache=cache, tap=tap, last_only=last_only)).logits[:, -1]

    def decode_one(self, ids: torch.Tensor, cache: KVCache, tap: Tap = no_tap) -> torch.Tensor:
        """Read one token (R, 1) of each text, which follows those in the cache; logits (R, V) after it.

        Equals `prefill(ids, cache)`; written out for a single token, it takes half the time with a small model.
        """
        if self._next_token is None or tap is not no_tap:
            return self.prefill(ids, cache, tap)
        return self._next_token(ids, cache)


def _fingerprint(model: torch.nn.Module) -> list[tuple]:
    """A value that differs once a weight has changed, even through `.data`, which torch's count of changes misses.

    If `.data` changes fewer than `EVERY` neighbours in a large matrix, that may go unnoticed. Summing all of 60 million
    numbers takes 11 ms at the beginning of a text; this takes 1 ms.
    """
    return [(p.data_ptr(), 0 if p.is_inference() else p._version, _sum(p.detach())) for p in model.parameters()]


def _sum(weight: torch.Tensor) -> float:
    return (weight if weight.numel() < packed.LARGE else weight.flatten()[::EVERY]).sum().item()


_copies = Kept(entries=1000, megabytes=1500)


def inference_model(model: Transformer, precision: str = "fp32") -> InferenceModel:
    """The model for inference in that precision. A bounded number of weight copies is kept until the model is freed.

    Raises ValueError if there is no such precision, or not on the model's device.
    """
    check_precision(precision, next(model.parameters()).device)
    kept = _copies.peek(precision, owner=model)
    if kept is not None and not kept.is_current(model):
        _copies.drop(precision, owner=model)
    found = _copies.get(precision, lambda: InferenceModel(model, precision), owner=model)
    if not found.nbytes:  # this one copies nothing, is made in a millisecond, and may be the model itself
        _copies.drop(precision, owner=model)
    return found
