"""Request: a text to be written, perhaps as N samples: its prompt, its rules, and its state so far.

A request never runs the model. `generate` runs it for one request, `ContinuousBatch` for all requests of one model.
Both make the same three moves, and so write the same tokens:

    request.begin()                                  # what has to be read next: `window` or `newest`?
    logits = prefill(request.window, …) if request.needs_prefill else decode_one(request.newest, …)
    step = request.step(*choose([request], [logits]))

N = samples, V = vocabulary, T = context length.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from ..data.tokenizers import Tokenizer
from ..model import ModelConfig, Tap, TextTap, no_tap
from .sampling import SamplingConfig, draw, probabilities, streams
from .spelling import StopFinder


@dataclass(frozen=True)
class DecodeStep:
    """One generated token (of each sample), and what it took."""

    index: int
    """The index of the generated token, from 0."""
    tokens: tuple[int, ...]
    """The chosen token of each of the N samples."""
    logits: torch.Tensor = field(repr=False)
    """(N, V) raw scores from which the choice was made, fp32."""
    model_probability: tuple[float, ...]
    """The model's own probability of each chosen token, before any sampling rule."""
    length: int
    """How many tokens so far, prompt and chosen token included."""
    cache_length: int
    """Tokens whose cached keys and values the choice used; 0 without a cache. The chosen token is not among them: it
    is read at the beginning of the next step, if there is one."""
    projections: int
    """Q, K and V vectors computed so far per layer: three for every token read, per sample."""
    rebuilt: bool
    """Whether the context was full, so that its oldest tokens fell out and the cache was computed anew."""
    seconds: float
    """Time this step took."""
    stopped: tuple[bool, ...]
    """Which samples have written a stop string."""


class Choice(NamedTuple):
    """The next tokens of one request, and what they were chosen from."""

    logits: torch.Tensor  # (N, V), fp32, on the CPU
    tokens: list[int]  # (N,)
    model_probability: list[float]  # (N,)


class Request:
    """A text to be written, and its state so far.

    A prompt longer than the context is cropped to its last T tokens. Each of the `n_samples` texts has its own
    random numbers. With `stop` strings (which need the `tokenizer`), a sample that has written one is over. A model
    without a causal mask has no cache. A `tap` (such as `inspection.edits_tap`) sees and edits every pass; a `TextTap`
    is also told where in the text the pass reads.

    Once the context is full, its oldest `slide_by` tokens fall out (see `window_start`), and the cache is recomputed
    from the others: even with relative positions, a cached key of a deeper layer still depends on the tokens that
    fell out, and added positions would all be off. So the tokens always equal those with `use_cache=False`.

    Raises ValueError if the prompt or the numbers make no sense.
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
        slide_by: int | None = None,
        tap: Tap = no_tap,
    ):
        slide_by = default_slide(config.context_length) if slide_by is None else slide_by
        _check(config, prompt, max_new_tokens, n_samples, slide_by)
        stop = tuple(filter(None, stop))
        if stop and tokenizer is None:
            raise ValueError("stop strings need the tokenizer, to see the text")
        self.n_samples, self.sampling = n_samples, sampling or SamplingConfig()
        self.tap = tap
        self.cached = use_cache and config.causal and getattr(tap, "cacheable", True)
        self.texts = [list(prompt) for _ in range(n_samples)]
        """Each sample's whole text so far: lists, since a tensor for each new token would cost more."""
        self.needs_prefill = True
        """Whether the model has to read the whole `window` next, instead of the `newest` token alone."""
        self.random_numbers: list[float] = []
        """One random number per sample, which decides this step's choice; drawn once, so the choice can be repeated."""
        self.over = False

        self._context_length, self._max_new_tokens = config.context_length, max_new_tokens
        self._prompt_length, self.slide_by = len(prompt), slide_by
        self._streams = streams(self.sampling.seed, n_samples)
        self._stop = [StopFinder(tokenizer, stop) for _ in range(n_samples)] if stop else []
        self._stopped = [False] * n_samples
        self._first = window_start(len(prompt), len(prompt), config.context_length, slide_by)
        self._index = self._projections = 0
        self._rebuilt, self._began = False, 0.0

    @property
    def window(self) -> list[list[int]]:
        """The part of each sample's text that fits the context, N × (≤ T)."""
        return [text[self._first :] for text in self.texts]

    @property
    def window_length(self) -> int:
        """How many tokens the window has; T + 1 if the context is full."""
        return len(self.texts[0]) - self._first

    @property
    def full(self) -> bool:
        """Whether the text no longer fits the context: its oldest tokens fall out when the next step begins."""
        return self.window_length > self._context_length

    @property
    def newest(self) -> list[list[int]]:
        """The last token of each sample, N × 1."""
        return [text[-1:] for text in self.texts]

    @property
    def rules(self) -> tuple:
        """Equal for requests whose next tokens can be chosen together."""
        penalises = self.sampling.repetition_penalty != 1.0
        return self.sampling.rules, len(self.texts[0]) if penalises else None

    def begin(self) -> None:
        """Begin a step: if the context is full, let the oldest tokens fall out; say what the model must read."""
        self._began = time.perf_counter()
        slides = self.full
        self._first = window_start(self._prompt_length, len(self.texts[0]), self._context_length, self.slide_by)
        self.needs_prefill = slides or not self.cached or self._index == 0
        self._rebuilt = slides and self.cached
        self._projections += 3 * self.n_samples * (self.window_length if self.needs_prefill else 1)
        self.random_numbers = [stream.next() for stream in self._streams]
        if isinstance(self.tap, TextTap):
            self.tap.begin(self._first, self._first if self.needs_prefill else len(self.texts[0]) - 1)

    def step(self, choice: Choice) -> DecodeStep:
        """End the step: add the chosen tokens to the text."""
        read = self.window_length
        for text, token in zip(self.texts, choice.tokens):
            text.append(token)
        for sample, finder in enumerate(self._stop):
            if not self._stopped[sample]:
                self._stopped[sample] = finder.met_with(choice.tokens[sample])
        step = DecodeStep(
            index=self._index,
            tokens=tuple(choice.tokens),
            logits=choice.logits,
            model_probability=tuple(choice.model_probability),
            length=len(self.texts[0]),
            cache_length=read if self.cached else 0,
            projections=self._projections,
            rebuilt=self._rebuilt,
            seconds=time.perf_counter() - self._began,
            stopped=tuple(self._stopped),
        )
        self._index += 1
        self.over = self._index == self._max_new_tokens or all(self._stopped)
        return step


def default_slide(context_length: int) -> int:
    """A quarter of the context, in tokens: how far a window slides unless its request says otherwise.

    Sliding by one token shows the model the most text, but it must read its whole window again for every token.
    """
    return max(1, context_length // 4)


def window_start(prompt: int, length: int, context_length: int, slide_by: int) -> int:
    """Where the model's window begins in a text of `length` tokens, the first `prompt` of which were given.

    At the first token, or at the last T tokens of a longer prompt, plus the fewest whole slides that make the rest fit.

    >>> [window_start(3, length, context_length=8, slide_by=2) for length in (3, 8, 9, 10, 11)]
    [0, 0, 2, 2, 4]
    """
    first = max(prompt - context_length, 0)
    return first + max(-(-(length - first - context_length) // slide_by), 0) * slide_by


def choose(requests: Sequence[Request], logits: Sequence[torch.Tensor]) -> list[Choice]:
    """Choose the next token of every sample in requests with equal `rules`, from each request's logits (N, V).

    Each sample has its own random number, so its tokens do not depend on its neighbours. The requests do not change.
    """
    sampling = requests[0].sampling
    scores = (logits[0] if len(logits) == 1 else torch.cat(list(logits))).float().cpu()  # (ΣN, V)
    penalises = sampling.repetition_penalty != 1.0
    history = torch.tensor([text for each in requests for text in each.texts]) if penalises else None
    distribution = probabilities(scores, history, sampling)
    chosen = draw(distribution, [number for each in requests for number in each.random_numbers])  # (ΣN,)
    plain = distribution if sampling.neutral else scores.softmax(dim=-1)
    chances, tokens = plain.gather(1, chosen.unsqueeze(1)).view(-1).tolist(), chosen.tolist()
    sizes, begin, choices = [each.n_samples for each in requests], 0, []
    for size, part in zip(sizes, scores.split(sizes)):
        choices.append(Choice(part, tokens[begin : begin + size], chances[begin : begin + size]))
        begin += size
    return choices


def _check(config: ModelConfig, prompt, max_new_tokens, n_samples, slide_by) -> None:
    if not len(prompt):
        raise ValueError("the prompt is empty: type at least one character")
    if min(prompt) < 0 or max(prompt) >= config.vocab_size:
        raise ValueError(f"the prompt holds a token that the model does not know (it knows {config.vocab_size})")
    for name, value in (("max_new_tokens", max_new_tokens), ("n_samples", n_samples), ("slide_by", slide_by)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
    if slide_by > config.context_length:
        raise ValueError(f"slide_by {slide_by} is more than the context of {config.context_length}")
