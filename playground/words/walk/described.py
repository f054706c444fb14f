"""What the descriptions of all steps share: their form, the names that formulas use, and code of norms and layers.

Formulas and sentences mark the four roles as {q:…}, {k:…}, {v:…} and {s:…}, so that a page can colour them.
B = 1 prompt, T = tokens, d = d_model, H = query heads, Hkv = key/value heads, D = d_head, V = vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...inspection.walk import Step
from ...model import ModelConfig


@dataclass(frozen=True)
class Described:
    """One step of the walk in words."""

    title: str
    why: str
    """What would be missing without it, in a sentence or two."""
    formula: str
    """With the real shapes of this model and prompt."""
    code: str
    """Lines of PyTorch that make it, from what the steps before have made; the first step says what is given."""
    sentence: str
    """What to look for in these very numbers."""
    expressions: dict[str, str]
    """Array of the step → the expression that is it, once the code has run."""
    labels: tuple[str, ...] = ()
    """Names of the rows of what is drawn, where they are not the prompt's tokens."""


class Here:
    """A step with the names that formulas use."""

    def __init__(self, step: Step):
        at = step.at
        self.facts, self.arrays = step.facts, step.arrays
        self.look, self.layer, self.head, self.query, self.key = at.look, at.layer, at.head, at.query, at.key
        self.kv_head, self.config = at.kv_head, at.config
        self.T, self.d, self.D = at.look.length, at.config.d_model, at.config.d_head
        self.H, self.Hkv = at.config.n_heads, at.config.kv_heads

    @property
    def pre(self) -> bool:
        """Whether norms come before the sublayers."""
        return self.config.norm_placement == "pre"

    @property
    def query_token(self) -> str:
        """The query token, in quotes."""
        return self.named(self.query)

    @property
    def key_token(self) -> str:
        """The key token, in quotes."""
        return self.named(self.key)

    def named(self, place: int) -> str:
        """A token's text in quotes."""
        return f"“{self.look.tokens[place]}”"

    def placed(self, place: int) -> str:
        """The same after its place."""
        return f"token {place} {self.named(place)}"


def norm_code(config: ModelConfig, x: str, norm: str, to: str) -> str:
    """Lines of code: the config's norm of `x`, whose weights are `norm`'s, as `to`."""
    if config.norm == "rmsnorm":
        size = f"size = ({x}.square().mean(-1, keepdim=True) + {config.norm_eps:g}).sqrt()"
        return f"{size}\n{to} = {x} / size * {norm}.weight"
    spread = f"({x}.var(-1, keepdim=True, correction=0) + {config.norm_eps:g}).sqrt()"
    bias = f" + {norm}.bias" if config.norm_bias else ""
    return f"{to} = ({x} - {x}.mean(-1, keepdim=True)) / {spread}\n{to} = {to} * {norm}.weight{bias}"


def norm_formula(config: ModelConfig, x: str = "x") -> str:
    """The config's norm as a formula."""
    if config.norm == "rmsnorm":
        return f"norm({x}) = {x} ÷ √(mean({x}²) + {config.norm_eps:g}) ⊙ gain"
    return f"norm({x}) = ({x} − mean({x})) ÷ √(variance({x}) + {config.norm_eps:g}) ⊙ gain" + (
        " + bias" if config.norm_bias else ""
    )


def linear(x: str, layer: str, bias: bool) -> str:
    """Code of a linear layer, written out."""
    return f"{x} @ {layer}.weight.T" + (f" + {layer}.bias" if bias else "")
