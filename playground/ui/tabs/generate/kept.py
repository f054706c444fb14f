"""A kept text as the browser sends it back: token ids and rules, which anybody may have written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ....data import Tokenizer
from ....engine import PRECISIONS, SamplingConfig, Spelling
from ....service.limits import Limits
from ....storage import Checkpoint

PRESSES = 4
"""A text may be this many times as long as one press writes."""
_DAMAGED = "This text cannot be read. Press Generate again"


@dataclass(frozen=True)
class Beginning:
    """A text up to one of its tokens."""

    prompt: list[int]
    tokens: list[int]
    """The tokens written after the prompt, including the last one."""
    start: int = 0
    """How many tokens earlier presses had written when the last one was drawn."""
    chosen: bool = False
    """Whether the visitor chose the last token."""
    rules: SamplingConfig = field(default_factory=SamplingConfig)
    """The rules by which the last token was drawn."""
    precision: str = PRECISIONS[0]

    @classmethod
    def read(cls, sent: Any, limits: Limits, checkpoint: Checkpoint) -> Beginning:
        """Read what a browser sent. Raises ValueError."""
        try:
            ids = [[_id(token) for token in sent[name]] for name in ("prompt", "tokens")]
            step, start = int(sent["step"]), int(sent.get("start", 0))
            rules, precision = SamplingConfig(**sent.get("rules", {})), sent.get("precision", "fp32")
            text = cls(*ids, start, bool(sent.get("chosen")), rules, precision)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise ValueError(_DAMAGED) from None
        if step != (now := checkpoint.history.last_step):
            raise ValueError(f"The model wrote this at step {step:,} and is now at step {now:,}. Press Generate again")
        known = range(checkpoint.config.vocab_size)
        fits = 0 < len(text.prompt) <= limits.prompt and len(text.tokens) <= PRESSES * limits.new_tokens
        fits = fits and 0 <= start <= len(text.tokens) and text.precision in PRECISIONS
        if not fits or any(token not in known for token in (*text.prompt, *text.tokens)):
            raise ValueError(_DAMAGED)
        return text


def _id(token: Any) -> int:
    if isinstance(token, bool) or not isinstance(token, int):
        raise TypeError
    return token


def pieces(tokenizer: Tokenizer, prompt: list[int], tokens: list[int]) -> list[str]:
    """The text of every token; an incomplete last character is left out."""
    spelling = Spelling(tokenizer, prompt)
    return [spelling.add(token) for token in tokens]


def by(name: str, rules: SamplingConfig, precision: str, start: int) -> str:
    """The model that wrote a text, with its sampling rules, in words.

    The model's name is isolated, so that a right-to-left name leaves the rest in order.
    """
    name = f"\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}"
    name = name if precision == PRECISIONS[0] else f"{name} in {precision}"
    since = f", from token {start + 1:,} on" if start else ""
    if rules.greedy:
        penalty = "" if rules.repetition_penalty == 1 else f", repetition penalty {rules.repetition_penalty:g}"
        return f"{name}, greedily{penalty}{since}"
    return f"{name}: {', '.join(rules_in_words(rules, 'seed', 'temperature'))}{since}"


def rules_in_words(rules: SamplingConfig, *always: str) -> list[str]:
    """Each rule that is not neutral, as "top-p 0.95"; those named in `always` come first, even if neutral."""
    neutral = SamplingConfig(seed=rules.seed)
    changed = [name for name in SamplingConfig.__dataclass_fields__ if getattr(rules, name) != getattr(neutral, name)]
    hyphen = "\N{NON-BREAKING HYPHEN}"
    titles = {
        name: name.replace("top_", f"top{hyphen}").replace("min_", f"min{hyphen}").replace("_", " ")
        for name in [*always, *changed]
    }
    values = {name: getattr(rules, name) for name in titles}
    return [f"{titles[name]} {value if isinstance(value, int) else f'{value:g}'}" for name, value in values.items()]
