"""Step: one step of the walk; At: where it is looked at; and the small arithmetic that all steps share.

Formulas and sentences mark the four roles as {q:…}, {k:…}, {v:…} and {s:…}, so that a page can colour them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from ...model import ModelConfig
from ..look import Look

TOP = 10
"""Candidates, neurons or experts that a step lists."""


@dataclass(frozen=True, eq=False)
class Step:
    """One step of the walk at one layer, head and token."""

    name: str
    title: str
    why: str
    """What would be missing without it, in a sentence or two."""
    formula: str
    """With the real shapes of this model and prompt."""
    code: str
    """Lines of PyTorch that make it, from what the steps before have made; the first step says what is given."""
    sentence: str
    """What to look for in these very numbers."""
    arrays: dict[str, np.ndarray]
    """What its picture draws; the function of the step says what is what."""
    drawn: dict[str, str]
    """Array → the expression that is it, once the code has run."""
    labels: tuple[str, ...] = ()
    """Names of the rows of what is drawn, where they are not the prompt's tokens."""


@dataclass(frozen=True, eq=False)
class At:
    """A look at one layer, head, query and key, with the names that formulas use."""

    look: Look
    layer: int
    head: int
    query: int
    key: int
    config: ModelConfig = field(init=False)
    T: int = field(init=False)
    d: int = field(init=False)
    H: int = field(init=False)
    Hkv: int = field(init=False)
    D: int = field(init=False)

    def __post_init__(self) -> None:
        config = self.look.config
        sizes = {"T": self.look.length, "d": config.d_model, "H": config.n_heads, "Hkv": config.kv_heads}
        for name, value in {"config": config, **sizes, "D": config.d_head}.items():
            object.__setattr__(self, name, value)

    @property
    def pre(self) -> bool:
        """Whether norms stand before the sublayers."""
        return self.config.norm_placement == "pre"

    @property
    def asks(self) -> str:
        """The token that asks, in quotes."""
        return self.named(self.query)

    @property
    def answers(self) -> str:
        """The token that is asked, in quotes."""
        return self.named(self.key)

    def named(self, place: int) -> str:
        """A token's text in quotes."""
        return f"“{self.look.tokens[place]}”"

    def placed(self, place: int) -> str:
        """The same after its place."""
        return f"{place} {self.named(place)}"

    def rows(self, name: str, layer: int | None = -1) -> np.ndarray:
        """One intermediate of the prompt in this layer (or that given), without its batch axis, in float64."""
        return double(self.look.trace[name, self.layer if layer == -1 else layer][0])

    def projected(self) -> dict[str, np.ndarray]:
        """q (T, H, D), k and v (T, Hkv, D) as the projection makes them: before QK-norm and rotation."""
        if not self.config.qk_norm:
            return {name: self.rows(name) for name in "qkv"}
        read = self.look.trace["attn_in", self.layer]
        with torch.no_grad():
            made = self.look.model.blocks[self.layer].attention.project(read)
        return {name: double(each[0]) for name, each in zip("qkv", made)}


def normalise(config: ModelConfig, x: str, norm: str, to: str) -> str:
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


def double(tensor: torch.Tensor) -> np.ndarray:
    """A tensor in float64."""
    return tensor.detach().cpu().double().numpy()


def norm(vector: np.ndarray) -> float:
    """Length of a vector."""
    return float(np.linalg.norm(vector))


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """How alike two vectors point: 1 the same way, 0 across, −1 against."""
    return float(a @ b / max(norm(a) * norm(b), 1e-12))
