"""A comparison's form: every setting as a table, and from there to a ComparisonSpec and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...model import PRESETS
from ...model.config import BALANCES
from ...model.matched_pair import EQUAL
from ...service.comparisons import ComparisonSpec
from ...service.limits import Limits
from ...service.runs import HUB_FILE, OWN_TEXT, SENTENCES, Source
from ...training import RECIPES
from ..refusals import LABELS
from . import run, texts
from .fields import Field, read, titled
from .texts import PROMPTS, UNKNOWN, Own, check_tokenizer, expected_vocabulary

FIRST_SOURCE = "dialects"
EQUAL_CHOICES = (
    ("Active parameters (what one token uses)", "active"),
    ("All parameters", "total"),
    ("Arithmetic per token", "flops"),
)
assert {value for _, value in EQUAL_CHOICES} == set(EQUAL)


# the settings at the top; the rest is under Advanced
TOP: tuple[Field, ...] = (
    Field("n_experts", "Experts", "MLPs to choose from.", "top", least=2, most=32, step=1),
    Field("experts_per_token", "Experts per token (top-k)", "How many each token uses.", "top", least=1, most=8,
          step=1),
    Field("seeds", "Seeds", "How many pairs to train, each with its own seed.", "top", least=1,
          most="seeds", step=1),
)  # fmt: skip

MIXTURE: tuple[Field, ...] = (
    Field("adapts", "Which width is computed", "The other is set below.", "mixture",
          (("the dense model's", "dense"), ("the experts'", "moe"))),
    Field("d_expert", "Width of one expert", "Used if the dense width is computed.", "mixture", least=1, most=4096),
    Field("d_ff", "Width of dense layers",
          "Used when the experts' width is computed, and in blocks without experts. "
          "0: 4 × d_model, or 8/3 with SwiGLU.", "mixture", least=0, most=8192),
    Field("moe_every", "Experts in every kth block", "1: in every block.", "mixture", least=1, most=8),
    Field("shared_expert", "Shared expert", "One more, which gets every token.", "mixture"),
    Field("balance", "Balance", "Keeps all experts in use.", "mixture",
          titled(BALANCES, switch="a loss (Switch)", bias="a bias, no loss (DeepSeek-V3)",
                 constant="a constant loss (known mistake: zero gradient)", none="nothing")),
    Field("balance_weight", "Weight of the balance loss", "Too much of it disturbs learning.", "mixture", least=0.0,
          most=1.0),
    Field("router_z_weight", "Weight of the router z-loss", "Keeps router scores small; 0 is off.", "mixture",
          least=0.0, most=1.0),
    Field("router_noise", "Router noise", "Adds noise to the router's choice while training; 0 is off.", "mixture",
          least=0.0, most=5.0),
)  # fmt: skip

_BOTH = ("n_layers", "d_model", "n_heads", "context_length", "dropout")
_TRAINING = ("steps", "batch_size", "optimizer", "learning_rate", "muon_learning_rate", "schedule", "warmup_steps",
             "eval_every", "seed")  # fmt: skip
BOTH: tuple[Field, ...] = (
    replace(run.BY_NAME["tokenizer"], why="With words, it is easiest to see what each expert gets."),
    *(run.BY_NAME[name] for name in _BOTH),
    replace(run.BY_NAME["activation"], why="Of every expert and of the dense layer."),
    *(run.BY_NAME[name] for name in _TRAINING),
)  # fmt: skip
FIELDS = TOP + MIXTURE + BOTH
BY_NAME = {field.name: field for field in FIELDS}
LABELS.update({field.name: f"“{field.label}”" for field in TOP + MIXTURE if field.name not in LABELS})
GROUPS = {"The mixture": MIXTURE, "Both models and their training": BOTH}

_BASE = PRESETS["small"]
_MIXTURE_NAMES = ("n_experts", "experts_per_token", "moe_every", "shared_expert", "balance", "balance_weight",
                  "router_z_weight", "router_noise")  # fmt: skip
_EVALUATION_TOKENS = 2_560
"""Validation tokens for a language. A pasted text gets as many as on the Train tab, so that baselines are the same."""
OF_THE_TEXT = ("tokenizer", "context_length")
"""Settings that change with the text; `first_values` differ in no others."""


def own_in(values: Mapping[str, Any], limits: Limits) -> Own:
    """The visitor's own text in the form; an empty one if there is none."""
    return texts.own_in({"own_kind": "paste", "text": "", "upload": None, **values}, limits)


def first_values(source: str = FIRST_SOURCE, own: Own = UNKNOWN) -> dict[str, Any]:
    """The form's first values for this text: on two cores the first pair is judged after some ten seconds."""
    training = RECIPES["small"]
    context = run.suited(None, own).context_length if own.tokens else 64
    values = {name: getattr(training, name) for name in _TRAINING}
    return values | {
        "n_experts": 8,
        "experts_per_token": 2,
        "seeds": 3,
        "adapts": "dense",
        "d_expert": 128,
        "d_ff": 0,
        "moe_every": 1,
        "shared_expert": False,
        "balance": "switch",
        "balance_weight": 0.01,
        "router_z_weight": 0.0,
        "router_noise": 0.0,
        "tokenizer": "char" if source == OWN_TEXT or source in ("copy", "addition", "phonebook") else "word",
        "n_layers": 2,
        "d_model": 64,
        "n_heads": 4,
        "context_length": 32 if source == SENTENCES else context if source == OWN_TEXT else 64,
        "activation": "relu2",
        "dropout": 0.0,
        "steps": 80,
        "batch_size": 8,
        "warmup_steps": 10,
        "eval_every": 10,
        "seed": 1,
    }


def comparison_spec(values: Mapping[str, Any], source: Source, limits: Limits, own: Own = UNKNOWN) -> ComparisonSpec:
    """The comparison that the form describes. Raises ValueError if a setting is invalid or out of bounds."""
    given, equal = read(FIELDS, values, limits), values["equal"]
    if equal not in EQUAL:
        raise ValueError(f"What is equal must be one of {', '.join(EQUAL)}, not {equal!r}")
    check_tokenizer(source, given["tokenizer"])
    dense = _BASE.replace(
        vocab_size=own.vocabulary or expected_vocabulary(source.kind, given["tokenizer"]),
        d_ff=given["d_ff"] or None,
        activation=given["activation"],
        **{name: given[name] for name in _BOTH},
    )
    moe = dense.replace(d_expert=given["d_expert"], **{name: given[name] for name in _MIXTURE_NAMES})
    training = RECIPES["small"].replace(
        **{name: given[name] for name in _TRAINING},
        eval_windows=_windows(source, given["context_length"]),
        sample_prompt=str(PROMPTS.get(source.kind, "")),
    )
    return ComparisonSpec(source, dense, moe, training, equal, given["adapts"], given["seeds"], given["tokenizer"])


def _windows(source: Source, context: int) -> int:
    """The number of validation windows."""
    if source.kind in (OWN_TEXT, HUB_FILE):
        return max(run.EVALUATION_TOKENS // context, 8)
    return max(_EVALUATION_TOKENS // context, 16)


def values_of(spec: ComparisonSpec) -> dict[str, Any]:
    """The form's values for this comparison, by name."""
    values: dict[str, Any] = {**texts.values_of(spec.source), "equal": spec.equal}
    for field in FIELDS:
        name = field.name
        places = (spec.moe,) if name == "d_expert" or name in _MIXTURE_NAMES else (spec, spec.dense, spec.training)
        values[name] = getattr(next(place for place in places if hasattr(place, name)), name)
    return values | {"d_ff": spec.dense.d_ff or 0}
