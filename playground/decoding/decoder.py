"""The decoder: generate(model, prompt, …) yields one DecodeStep per token, from a preallocated KV cache or without one.

N = samples decoded at once, V = vocabulary, T = context length. Two named steps: `prefill` reads the prompt,
`decode_one_token` reads the token just chosen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from ..data.tokenizers import Tokenizer
from ..model import KVCache, ModelConfig, Transformer
from ..model.fast.bare import bare
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

    @property
    def probability(self) -> tuple[float, ...]:
        """The drawn-from probability of each chosen token."""
        return tuple(self.distribution[i, t].item() for i, t in enumerate(self.tokens))

    @property
    def model_probability(self) -> tuple[float, ...]:
        """The model's own probability of each chosen token, before any sampling rule."""
        raw = self.logits.softmax(dim=-1)
        return tuple(raw[i, t].item() for i, t in enumerate(self.tokens))

    def candidates(self, n: int = 5, sample: int = 0) -> list[tuple[int, float]]:
        """The n likeliest tokens and the model's probabilities of them."""
        values, tokens = self.logits[sample].softmax(dim=-1).topk(min(n, self.logits.shape[-1]))
        return list(zip(tokens.tolist(), values.tolist()))


def generate(
    model: Transformer,
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
) -> Iterator[DecodeStep]:
    """Continue `prompt` token by token.

    A prompt longer than the context is cropped to its last T tokens. Once the context is full, `when_full="slide"`
    drops the oldest `slide_by` tokens and goes on; "stop" ends the text. Sliding with a cache rebuilds it from the
    cropped tokens: even where positions are relative, a cached key of a deeper layer still knows of the tokens that
    fell out, and positions that are added would all be off by one. So the tokens equal those of `use_cache=False`
    always; `slide_by` larger than 1 makes rebuilding rarer. With `stop` strings (which need the `tokenizer`), a sample
    that has written one is over; when all are, generation ends. A model without a causal mask is decoded without cache.

    The first of several samples is the one that would have been alone, and each is the same whatever their number (but
    for what a product's rounding owes to the size of the batch).

    Raises ValueError, before the first step, where prompt or numbers make no sense.
    """
    sampling = sampling or SamplingConfig()
    _check(model.config, prompt, max_new_tokens, n_samples, when_full, slide_by)
    if stop and tokenizer is None:
        raise ValueError("stop strings need the tokenizer, to see the text")
    return _steps(
        model,
        list(prompt),
        sampling,
        max_new_tokens=max_new_tokens,
        n_samples=n_samples,
        tokenizer=tokenizer,
        stop=tuple(s for s in stop if s),
        use_cache=use_cache and model.config.causal,
        when_full=when_full,
        slide_by=slide_by,
    )


def _steps(
    model: Transformer,
    prompt: list[int],
    sampling: SamplingConfig,
    *,
    max_new_tokens: int,
    n_samples: int,
    tokenizer: Tokenizer | None,
    stop: tuple[str, ...],
    use_cache: bool,
    when_full: str,
    slide_by: int,
) -> Iterator[DecodeStep]:
    T = model.config.context_length
    device = next(model.parameters()).device
    read = bare(model)  # the same pass with less ado
    randomness = streams(sampling.seed, n_samples)
    text = torch.tensor(prompt, device=device).repeat(n_samples, 1)  # (N, length)
    first = max(len(prompt) - T, 0)  # where the window that the model sees begins
    cache = KVCache.allocate(model.config, n_samples, device=device) if use_cache else None
    logits: torch.Tensor | None = None  # known already if the last token was read from the cache
    done = without_cache = 0
    rebuilt, stopped = False, [False] * n_samples
    for index in range(max_new_tokens):
        started = time.perf_counter()
        with torch.inference_mode():
            seen = text.shape[1] - first
            without_cache += 3 * n_samples * seen
            if logits is None:
                rebuilt = cache is not None and index > 0
                logits = prefill(read, text[:, first:], cache)
                done += 3 * n_samples * seen
            else:
                rebuilt = False
            scores = logits.float().cpu()
            distribution = probabilities(scores, text.cpu(), sampling)
            chosen = draw(distribution, randomness)
            newest = chosen[:, None].to(device)
            text = torch.cat((text, newest), dim=1)
            full = text.shape[1] - first > T
            if cache is not None and not full:
                logits = decode_one_token(read, newest, cache)
                done += 3 * n_samples
            else:
                logits = None
        if stop:
            for i in range(n_samples):
                stopped[i] = stopped[i] or _met(tokenizer, text[i, len(prompt) :].tolist(), stop)
        yield DecodeStep(
            index=index,
            tokens=tuple(chosen.tolist()),
            logits=scores,
            distribution=distribution,
            length=text.shape[1],
            cache_length=cache.length if cache else 0,
            cache_bytes=cache.nbytes if cache else 0,
            projections=done,
            projections_without_cache=without_cache,
            rebuilt=rebuilt,
            seconds=time.perf_counter() - started,
            stopped=tuple(stopped),
        )
        if all(stopped) or (full and when_full == "stop"):
            return
        if full:
            first += slide_by
            if cache is not None:
                cache.truncate(0)


def prefill(model: Transformer, ids: torch.Tensor, cache: KVCache | None) -> torch.Tensor:
    """Read all of ids (N, T) at once, filling the cache if there is one; logits (N, V) after the last."""
    return model(ids, cache=cache, last_only=True).logits[:, -1]


def decode_one_token(model: Transformer, ids: torch.Tensor, cache: KVCache) -> torch.Tensor:
    """Read one token (N, 1) that follows those in the cache; logits (N, V) after it."""
    return model(ids, cache=cache, last_only=True).logits[:, -1]


def count_projections(prompt: int, new_tokens: int) -> tuple[int, int]:
    """(without, with a cache): Q, K and V vectors per layer to write `new_tokens` after `prompt` tokens.

    Without a cache every step projects the whole text so far; with one every token of the text is projected once.

    >>> count_projections(5, 3)
    (54, 24)
    >>> count_projections(5, 500)
    (381750, 1515)
    """
    return 3 * sum(prompt + step for step in range(new_tokens)), 3 * (prompt + new_tokens)


def _met(tokenizer: Tokenizer, ids: list[int], stop: tuple[str, ...]) -> bool:
    text = tokenizer.decode(ids)
    return any(s in text for s in stop)


def _check(
    config: ModelConfig, prompt: Sequence[int], max_new_tokens: int, n_samples: int, when_full: str, slide_by: int
) -> None:
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
