"""The words a lesson file may use: places on the page, controls it may set, and what counts as done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """A thing on the page that a step can point at."""

    selector: str
    tab: str
    view: str = ""
    """The view of Inspect that contains it."""
    opens: tuple[tuple[str, Any], ...] = ()
    """Fields of its panel's selection that make it visible, and their values."""


TABS = ("train", "generate", "inspect", "moe")
VIEWS = ("steps", "heads", "training", "cost")

_PLACES = (
    # tab, view and fields of the panel's selection; name; selector, of which "=slot" is a slot of the tab's panel
    ("train", "train button", "#train-button"),
    ("train", "curve", "#curve"),
    ("train", "run", "#status"),
    ("train", "ladder", "#rungs"),
    ("train", "latest sample", "=sample"),
    ("train", "samples", "#samples"),
    ("train", "next tokens", "#predictions"),
    ("generate", "generate button", "#generate-panel .generate-start"),
    ("generate", "prompt", "#generate-panel textarea[name=prompt]"),
    ("generate", "written text", "#generate-panel .written"),
    ("generate", "written words", "#generate-panel :is(.written-said, .written-details)"),
    ("generate", "choice", "=choice"),
    ("generate", "choice table", "#generate-panel .scores"),
    ("generate", "why button", "#generate-panel .why-button"),
    ("generate", "copied pieces", "=why-answer"),
    ("generate", "passages", "#generate-panel .why-passage"),
    ("generate", "prove it", "=why-proof"),
    ("generate", "proof", "=why-proven"),
    ("generate", "warnings", "=notes"),
    ("generate game", "bets", "=game-board"),
    ("generate game", "last bet", "=game-result"),
    ("generate game", "bets summary", "=game-summary"),
    ("generate experiments", "compare temperatures", "#generate-panel .compare-temperatures"),
    ("generate experiments", "four temperatures", "=heat-texts"),
    ("generate experiments", "temperature bars", "=heat-chart"),
    ("generate experiments", "measure precision", "#generate-panel .measure-precision"),
    ("generate experiments", "precisions", "=bits-table"),
    ("generate experiments", "precision words", "=bits-said"),
    ("generate experiments", "levels", "=bits-levels"),
    ("generate experiments", "number receipt", "=bits-receipt"),
    ("inspect cost kv", "cache", "#inspect-panel [data-fold=kv]"),
    ("inspect cost kv", "cache proof", "=kv-proof"),
    ("inspect cost kv", "cache times", "=kv-times"),
    ("inspect", "tokens", "#inspect-panel .tokens[role]"),
    ("inspect", "head place", "#inspect-panel .tokens"),
    ("inspect steps", "step picture", "=step-chart"),
    ("inspect steps", "step words", "=step-how"),
    ("inspect steps lens", "lens", "=lens-map"),
    ("inspect heads", "pattern", "=pattern"),
    ("inspect heads", "heads", "=grid"),
    (
        "inspect heads",
        "pattern words",
        "#inspect-panel :is([data-slot=pattern] .chart-words, .strip-head p)",
    ),
    ("inspect heads", "headline", "=headline"),
    ("inspect", "next token", "=next"),
    ("inspect heads", "switch off", "=head-buttons"),
    ("inspect heads compare", "other pattern", "#inspect-panel [data-fold=compare] .two"),
    ("inspect heads why", "receipt", "=receipt"),
    (
        "inspect training training=moments",
        "timeline",
        "#inspect-panel :is([data-slot=moments-timeline], [data-slot=moments-headline])",
    ),
    ("inspect training training=moments", "moment", "#inspect-panel input[name=moment]"),
    ("inspect training training=moments", "pattern then", "=moments-pattern"),
    ("inspect heads roles", "roles", "=roles"),
    ("inspect heads roles", "role", "=role"),
    ("moe", "train both", "#moe-train"),
    ("moe", "verdict", "#moe-verdict"),
    ("moe", "difference", "#moe-difference"),
    ("moe", "pair curve", "#moe-curve"),
    ("moe", "pair facts", "#moe-panel .facts"),
    ("moe loads", "loads", "#moe-load"),
    ("moe loads", "train unbalanced", "#train-unbalanced"),
)


def _place(where: str, selector: str) -> Place:
    tab, *rest = where.split()
    view = rest.pop(0) if rest and rest[0] in VIEWS and tab == "inspect" else ""
    fields = (field.partition("=") for field in rest)
    opens = tuple((name, value or True) for name, _, value in fields)
    selector = f"#{tab}-panel [data-slot={selector[1:]}]" if selector.startswith("=") else selector
    return Place(selector, tab, view, opens)


PLACES = {name: _place(where, selector) for where, name, selector in _PLACES}
"""The places, by the names that lesson files use."""

_RUN = "source size text steps causal seed patience"
_PAIR = "source equal n_experts experts_per_token d_expert context_length batch_size learning_rate seeds steps"
SETS = (
    *("tab", "view", "model"),
    *(f"inspect.{name}" for name in ("prompt", "layer", "head", "query", "key", "step")),
    *(f"generate.{name}" for name in ("prompt", "temperature", "top_p", "new_tokens", "samples")),
    *(f"train.{name}" for name in _RUN.split()),
    *(f"pair.{name}" for name in _PAIR.split()),
    "moe.curve",
)
"""The controls that `set` may set."""
DOINGS = ("run", "pair", "balance", "when", "pressed", "shown", "changed")
"""What `done` may say; see docs/lessons.md."""
