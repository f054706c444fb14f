"""The words a lesson file may use: places on the page, controls it may set or ask for, and what counts as done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """Something on the page that a step points at."""

    selector: str
    title: str
    tab: str = ""
    view: str = ""
    """The view of Inspect that it stands in."""
    opens: tuple[tuple[str, Any], ...] = ()
    """Fields of its panel's selection that bring it to light, and their values."""


TABS = ("train", "generate", "inspect", "moe")
VIEWS = ("steps", "heads", "training", "cost")

_PLACES: dict[str, dict[str, tuple[str, str]]] = {
    "": {
        "models": ("#model", "the list of models"),
    },
    "train": {
        "train button": ("#train-button", "the Train button"),
        "curve": ("#curve", "the loss curve"),
        "run": ("#status", "the run's numbers"),
        "ladder": ("#rungs", "the ladder under the curve"),
        "samples": ("#samples", "what it writes"),
        "next tokens": ("#predictions", "what comes next"),
        "talk": ("#talk", "the button “Talk to it”"),
        "use best": ("#use-best", "the button “Use step …”"),
    },
    "generate": {
        "generate button": ("#generate-panel .generate-start", "the Generate button"),
        "prompt": ("#generate-panel textarea[name=prompt]", "the prompt"),
        "written text": ("#generate-panel .written", "the text that was written"),
        "written words": ("#generate-panel :is(.written-said, .written-details)", "what is said of that text"),
        "temperature": ("#generate-panel .temperature", "the temperature"),
        "choice": ("=choice", "the choice behind a token"),
        "choice table": ("#generate-panel .scores", "its table"),
        "why button": ("#generate-panel .why-button", "the button “Why?”"),
        "copied pieces": ("=why-copied", "the copied pieces"),
        "passages": ("#generate-panel .why-passage", "the passages behind it"),
        "prove it": ("=why-proof", "the button “Prove it”"),
        "proof": ("=why-proven", "the proof"),
        "warnings": ("=notes", "what is said of the model"),
    },
    "generate game": {
        "bets": ("=game-board", "the text to bet on"),
        "last bet": ("=game-result", "the last round"),
        "bits": ("=game-chart", "the curve of bits"),
        "bets summary": ("=game-summary", "everybody's points"),
    },
    "generate experiments": {
        "compare temperatures": ("#generate-panel .compare-temperatures", "the button “Compare”"),
        "four temperatures": ("=heat-texts", "the four temperatures"),
        "measure precision": ("#generate-panel .measure-precision", "the button “Measure this model in all three”"),
        "precisions": ("=bits-table", "fp32, bf16 and int8 beside each other"),
        "precision words": ("=bits-said", "what is said of them"),
        "levels": ("=bits-levels", "the weights on their levels"),
        "number receipt": ("=bits-receipt", "the receipt of one number"),
    },
    "inspect cost kv": {
        "cache": ("#inspect-panel [data-fold=kv]", "what the KV cache saves"),
        "cache proof": ("=kv-proof", "the proof that both texts are the same"),
        "cache times": ("=kv-times", "the times with and without the cache"),
    },
    "inspect": {
        "head place": ("#inspect-panel .tokens", "the prompt's tokens"),
    },
    "inspect steps": {
        "step picture": ("=step-chart", "the picture of the step"),
        "step words": ("=step-how", "what is said of the step"),
    },
    "inspect steps lens": {
        "lens": ("=lens-map", "the logit lens"),
    },
    "inspect heads": {
        "pattern": ("=pattern", "the head's pattern"),
        "heads": ("=grid", "the patterns of all heads"),
        "pattern words": (
            "#inspect-panel :is([data-slot=headline], [data-slot=pattern] .chart-words, .strip-head p)",
            "what the page says about the pattern",
        ),
        "switch off": ("=head-buttons", "the button “Switch it off”"),
    },
    "inspect heads compare": {
        "other pattern": ("=with-pattern", "the pattern beside it"),
    },
    "inspect heads why": {
        "receipt": ("=receipt", "the receipt"),
        "receipt score": ("#inspect-panel .receipt-score", "the score on the receipt"),
    },
    "inspect heads change": {
        "cost": ("=edit-cost", "what it costs"),
        "effect": ("=edit-cards", "what it changes on this prompt"),
    },
    "inspect heads worth": {
        "worth": ("=worth", "what each part is worth"),
    },
    "inspect training training=moments": {
        "timeline": ("=moments-timeline", "the timeline"),
        "moment": ("#inspect-panel input[name=moment]", "the slider of moments"),
        "pattern then": ("=moments-pattern", "the pattern at that moment"),
    },
    "inspect heads roles": {
        "roles": ("=roles-map", "the map of heads"),
        "role": ("=role", "the chosen head's role"),
    },
    "moe": {
        "train both": ("#moe-train", "the button “Train both”"),
        "verdict": ("#moe-verdict", "the verdict"),
        "difference": ("#moe-difference", "the difference with its interval"),
        "pair facts": ("=facts", "memory and arithmetic of the two"),
    },
    "moe routing": {
        "routes": ("#routing-text", "where each token went"),
        "followed token": ("#routing-followed", "the token that is followed"),
        "loads": ("=load-over-training", "the load while the mixture trained"),
    },
    "moe breaking": {
        "train unbalanced": ("#train-unbalanced", "the button “Train this pair without balance”"),
        "balance terms": ("#breaking-pulls", "what each balance term asks of the routers"),
    },
}
"""Tab, view and fields of the panel's selection → name → selector and title; "=name" is a slot of the tab's panel."""


def _place(where: str, selector: str, title: str) -> Place:
    tab, *rest = where.split() or [""]
    view = rest.pop(0) if rest and rest[0] in VIEWS and tab == "inspect" else ""
    fields = (field.partition("=") for field in rest)
    opens = tuple((name, value or True) for name, _, value in fields)
    selector = f"#{tab}-panel [data-slot={selector[1:]}]" if selector.startswith("=") else selector
    return Place(selector, title, tab, view, opens)


PLACES = {name: _place(where, *known) for where, places in _PLACES.items() for name, known in places.items()}
"""By the name that lesson files use."""

DO = {
    "ladder": "Click the names below the curve.",
    "written text": "Press *Generate*.",
    "four temperatures": "Press *Compare*.",
    "precisions": "Press *Measure this model in all three*.",
    "copied pieces": "Press *Why?* under the text.",
    "passages": "Wait a moment: the page is reading its text.",
    "proof": "Press *Prove it*.",
    "receipt": "Click a cell of the pattern.",
    "pattern then": "Move the slider *Moment*.",
    "role": "Click another head.",
    "followed token": "Click a word of the text.",
    "cache proof": "Wait a moment: the page is writing both texts.",
    "cost": "Wait a moment: the page is reading many texts.",
    "generate.greedy": "Move the slider all the way to *Safe*.",
    "inspect.edits": "Press *Switch it off*.",
}
"""What brings about what a step waits for, by its place or control."""

_RUN = (
    "source size text steps causal seed dropout learning_rate optimizer n_layers n_heads d_model context_length "
    "eval_every sample_every patience batch_size"
)
_PAIR = "source equal n_experts experts_per_token d_expert context_length batch_size learning_rate seeds steps"
SETS = (
    *("tab", "view", "model"),
    *(f"inspect.{name}" for name in ("prompt", "layer", "head", "query", "key", "step")),
    *(f"generate.{name}" for name in ("prompt", "temperature", "new_tokens", "samples")),
    *(f"train.{name}" for name in _RUN.split()),
    *(f"pair.{name}" for name in _PAIR.split()),
)
"""The controls that `set` may set."""
WATCHED = (
    *(f"generate.{name}" for name in ("prompt", "temperature", "greedy", "new_tokens", "seed", "same_again")),
    *(f"inspect.{name}" for name in ("prompt", "layer", "head", "query", "key", "edits", "moment")),
)
"""The controls that a step may wait for."""

DOINGS = ("run", "pair", "balance", "when", "pressed", "shown", "changed", "control")
"""What `done` may say; see docs/lessons.md."""
