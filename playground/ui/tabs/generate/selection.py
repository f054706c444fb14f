"""What the Generate panel selects: the prompt, how to write, and which token of the text is open."""

from __future__ import annotations

from typing import Any, Literal

from ....engine import PRECISIONS, SamplingConfig
from ....service.limits import Limits
from ...forms import sampling as form
from ...forms.fields import whole
from ...selected import Selected

STOPS = 8
"""Texts to stop at."""


class Selection(Selected):
    """All that the browser keeps of this tab, except the texts. Numbers are checked where they are used."""

    model: str = ""
    prompt: str | None = None
    """None stands for the model's own suggestion."""
    typed: bool = False
    """Whether the visitor chose the prompt: then it stays when another model is chosen."""
    temperature: float = 0.8
    new_tokens: float = 200
    top_k: float = 0
    top_p: float = 0.95
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    samples: float = 1
    seed: float = 0
    same_again: bool = False
    precision: Literal[PRECISIONS] = PRECISIONS[0]
    stop: str = ""
    advanced: bool = False
    choice: dict[str, Any] | None = None
    """The open token: all that its choice depended on (`choice.Choice`)."""
    game: bool = False
    experiments: bool = False
    heat: Any = None
    """What the temperatures are compared on; "now" stands for the present prompt and seed."""
    why: dict[str, Any] | None = None
    """The words in question, and the text they come from (`why.Chosen`)."""
    bits: bool = False
    """Whether the precisions were requested."""

    @classmethod
    def first(cls, limits: Limits) -> Selection:
        """The selection with which the panel opens."""
        return cls(**form.first_values(limits))

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken."""
        return not self.temperature

    def sampling(self, limits: Limits) -> SamplingConfig:
        """The sampling rules. Raises ValueError if a number is out of range."""
        return form.sampling({name: form.BY_NAME[name].read(getattr(self, name), limits) for name in form.RULES})

    def amount(self, limits: Limits) -> tuple[int, int]:
        """(new tokens, samples). Raises ValueError."""
        amount = whole("Length", self.new_tokens, 1), whole("Samples", self.samples, 1)
        limits.check_generation(*amount)
        return amount

    def stops(self) -> list[str]:
        """The texts to stop at, one per line; \\n in one stands for a line break."""
        return [line.replace("\\n", "\n") for line in self.stop.split("\n") if line][:STOPS]

    def changed(self, limits: Limits) -> list[str]:
        """The fields under Advanced that were changed."""
        first = Selection.first(limits)
        return [name for name in ADVANCED if getattr(self, name) != getattr(first, name)]


ADVANCED = ("top_k", "top_p", "min_p", "repetition_penalty", "samples", "same_again", "precision", "stop")
"""The fields under Advanced, except the seed, which changes by itself."""
