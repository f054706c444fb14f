"""A continuation: one text, or N samples of it, on its way: what is read next, how a token is chosen, what it all took.

A continuation never runs the model itself. `generate` runs it for one, `Together` for all that write with one model, so
that both write the same.

N = samples, V = vocabulary, T = context length.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from ..data.tokenizers import Tokenizer
from ..model import ModelConfig
from .sampling import SamplingConfig, draw, probabilities, streams


@dataclass(frozen=True)
class DecodeStep:
    """One generated token (of each sample), and what it took."""

    index: int
    """Number of the generated token, from 0."""
    tokens: tuple[int, ...]
    """The chosen token of each of the N samples."""
    logits: torch.Tensor = field(repr=False)
    """(N, V) raw scores the choice was made from, fp32."""
    distribution: torch.Tensor = field(repr=False)
    """(N, V) the distribution the tokens were drawn from."""
    length: int
    """Tokens so far, prompt included."""
    cache_length: int
    """Tokens whose keys and values are held, the chosen one's included; 0 without a cache."""
    cache_bytes: int
    """Bytes of those keys and values."""
    projections: int
    """Q, K and V vectors computed so far per layer: three for every token read, per sample."""
    projections_without_cache: int
    """What it would have been had every step read the whole text again."""
    rebuilt: bool
    """Whether the context was full, so that its oldest token fell out and the cache was made anew."""
    seconds: float
    """Time this step took."""
    stopped: tuple[bool, ...]
    """Which samples have met a stop string."""
    model_probability: tuple[float, ...]
    """The model's own probability of each chosen token, before any sampling rule."""

    @property
    def probability(self) -> tuple[float, ...]:
        """The drawn-from probability of each chosen token."""
        return tuple(self.distribution[i, t].item() for i, t in enumerate(self.tokens))

    def candidates(self, n: int = 5, sample: int = 0) -> list[tuple[int, float]]:
        """The n likeliest tokens and the model's probabilities of them."""
        values, tokens = self.logits[sample].softmax(dim=-1).topk(min(n, self.logits.shape[-1]))
        return list(zip(tokens.tolist(), values.tolist()))


class Continuation:
    """What `generate` was asked for, and how far it has come. Each token is made in three moves:

    1. where `logits` is None, the model reads `window`                    → `has_read_window(logits)`
    2. the next token of each sample is chosen                             → `choose(continuations)`
    3. unless the context is `full`, the model reads `newest` from a cache → `has_read_newest(logits)`

    and `step()` tells. Raises ValueError where prompt or numbers make no sense.
    """

    def __init__(
        self,
        config: ModelConfig,
        prompt: Sequence[int],
        max_new_tokens: int,
        sampling: SamplingConfig | None = None,
        *,
        n_samples: int = 1,
        tokenizer: Tokenizer | None = None,
        stop: Sequence[str] = (),
        use_cache: bool = True,
        when_full: str = "slide",
        slide_by: int = 1,
        device: torch.device | str = "cpu",
    ):
        _check(config, prompt, max_new_tokens, n_samples, when_full, slide_by)
        if stop and tokenizer is None:
            raise ValueError("stop strings need the tokenizer, to see the text")
        self.config, self.max_new_tokens, self.n_samples = config, max_new_tokens, n_samples
        self.sampling = sampling or SamplingConfig()
        self.cached = use_cache and config.causal
        self.logits: torch.Tensor | None = None  # (N, V) after the last token, if that was read already
        self.tokens: list[int] = []  # the newest of each sample
        self.over = False
        self._tokenizer, self._stop = tokenizer, tuple(s for s in stop if s)
        self._ends_when_full, self._slide_by = when_full == "stop", slide_by
        self.reads_history = self.sampling.repetition_penalty != 1.0
        self._rules = self.sampling.replace(seed=0)
        self.randomness = streams(self.sampling.seed, n_samples)
        self._prompt, self._device = len(prompt), device
        self._text = [list(prompt) for _ in range(n_samples)]  # numbers: a tensor for each new token would cost more
        self._first = max(len(prompt) - config.context_length, 0)  # where the window that the model sees begins
        self._index = self._done = self._without_cache = 0
        self._rebuilt, self._stopped = False, [False] * n_samples
        self._began = time.perf_counter()

    @property
    def history(self) -> torch.Tensor:
        """The text so far, (N, length)."""
        return torch.tensor(self._text)

    @property
    def window(self) -> torch.Tensor:
        """What the model may see of the text, (N, ≤ T)."""
        return torch.tensor([ids[self._first :] for ids in self._text], device=self._device)

    @property
    def newest(self) -> torch.Tensor:
        """The last token of each sample, (N, 1)."""
        return torch.tensor([ids[-1:] for ids in self._text], device=self._device)

    @property
    def full(self) -> bool:
        """Whether the text with its newest token is longer than the context."""
        return self._seen > self.config.context_length

    @property
    def _seen(self) -> int:
        """How long the window is."""
        return len(self._text[0]) - self._first

    @property
    def rereads(self) -> bool:
        """Whether the next window fills the context, so that its cache would be of no use to a further token."""
        return self._seen == self.config.context_length and (self._slide_by == 1 or self._ends_when_full)

    @property
    def rules(self) -> tuple:
        """Equal for continuations whose next tokens can be drawn together."""
        return self._rules, len(self._text[0]) if self.reads_history else None

    def begin(self) -> None:
        """A step begins."""
        self._began = time.perf_counter()
        self._without_cache += 3 * self.n_samples * self._seen
        self._rebuilt = False

    def has_read_window(self, logits: torch.Tensor) -> None:
        """The model has read `window`; logits (N, V) after it."""
        self.logits = logits
        self._rebuilt = self.cached and self._index > 0
        self._done += 3 * self.n_samples * self._seen

    def has_read_newest(self, logits: torch.Tensor) -> None:
        """The model has read `newest` from a cache; logits (N, V) after it."""
        self.logits = logits
        self._done += 3 * self.n_samples

    def take(self, scores: torch.Tensor, distribution: torch.Tensor, chosen: list[int], chances: list[float]) -> None:
        """Next tokens (N,) were drawn from a distribution (N, V), made of scores (N, V) that gave them `chances`."""
        self._scores, self._distribution, self._chances = scores, distribution, chances
        self.tokens = chosen
        for ids, token in zip(self._text, chosen):
            ids.append(token)
        self.logits = None

    def step(self) -> DecodeStep:
        """What this step has done; the context slides if it was full, and the continuation may be over."""
        if self._stop:
            for i in range(self.n_samples):
                self._stopped[i] = self._stopped[i] or self._met_stop(i)
        full = self.full
        held = self._seen if self.logits is not None else 0
        if full and self.cached:
            held = self.config.context_length
        step = DecodeStep(
            index=self._index,
            tokens=tuple(self.tokens),
            logits=self._scores,
            distribution=self._distribution,
            length=len(self._text[0]),
            cache_length=held,
            cache_bytes=self.config.cache_bytes(held, batch=self.n_samples),
            projections=self._done,
            projections_without_cache=self._without_cache,
            rebuilt=self._rebuilt,
            seconds=time.perf_counter() - self._began,
            stopped=tuple(self._stopped),
            model_probability=tuple(self._chances),
        )
        self._index += 1
        self.over = self._index == self.max_new_tokens or all(self._stopped) or (full and self._ends_when_full)
        if full:
            self._first += self._slide_by
        return step

    def _met_stop(self, sample: int) -> bool:
        text = self._tokenizer.decode(self._text[sample][self._prompt :])
        return any(s in text for s in self._stop)


def choose(continuations: Sequence[Continuation]) -> None:
    """Draw the next token of every continuation, whose `logits` are known; those with equal rules together.

    Each continuation draws from its own generator, so its tokens do not depend on its neighbours.
    """
    groups: dict[tuple | None, list[Continuation]] = {}
    for continuation in continuations:
        groups.setdefault(continuation.rules if len(continuations) > 1 else None, []).append(continuation)
    for members in groups.values():
        scores = _joined([continuation.logits for continuation in members]).float().cpu()  # (ΣN, V)
        history = _joined([continuation.history for continuation in members]) if members[0].reads_history else None
        distribution = probabilities(scores, history, members[0].sampling)
        chosen = draw(distribution, [numbers for continuation in members for numbers in continuation.randomness])
        plain = distribution if members[0].sampling.neutral else scores.softmax(dim=-1)
        chances, tokens = plain.gather(1, chosen.unsqueeze(1)).view(-1).tolist(), chosen.tolist()
        if len(members) == 1:
            members[0].take(scores, distribution, tokens, chances)
            continue
        sizes, begin = [continuation.n_samples for continuation in members], 0
        for continuation, *parts in zip(members, scores.split(sizes), distribution.split(sizes)):
            end = begin + continuation.n_samples
            continuation.take(*parts, tokens[begin:end], chances[begin:end])
            begin = end


def _joined(parts: list[torch.Tensor]) -> torch.Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _check(config: ModelConfig, prompt, max_new_tokens, n_samples, when_full, slide_by) -> None:
    if not len(prompt):
        raise ValueError("the prompt is empty: type at least one character")
    if min(prompt) < 0 or max(prompt) >= config.vocab_size:
        raise ValueError(f"the prompt holds a token that the model does not know (it knows {config.vocab_size})")
    for name, value in (("max_new_tokens", max_new_tokens), ("n_samples", n_samples), ("slide_by", slide_by)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
    if when_full not in ("slide", "stop"):
        raise ValueError(f"when_full is {when_full!r}; choose slide or stop")
    if slide_by > config.context_length:
        raise ValueError(f"slide_by {slide_by} is more than the context of {config.context_length}")
