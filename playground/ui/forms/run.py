"""A run's form: every setting with a one-line reason, as a table; sizes; from there to a RunSpec and back.

`FIELDS` is the one list: a field's `name` is the name in ModelConfig, TrainConfig or RunSpec. Sizes are dictionaries of
the same names, so that setting the form is always "these values, in this order".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ...data import LANGUAGES
from ...model import PRESETS, ModelConfig
from ...model.config import ACTIVATIONS, ATTENTION_LAYOUTS, NORM_PLACEMENTS, NORMS, POSITIONS
from ...service.limits import Limits
from ...service.runs import OWN_TEXT, SENTENCES, RunSpec, Source
from ...storage import Checkpoint
from ...studies.finetune import tuning_config
from ...training import RECIPES, TrainConfig
from ...training.config import OPTIMIZERS, SCHEDULES
from ...training.recipes import OwnText, for_own_text
from ..refusals import LABELS
from . import texts
from .excerpts import beginning_of
from .fields import FOLLOWS, Field, read, same, shown, titled, whole
from .texts import TOKENIZERS, UNKNOWN, Own, check_tokenizer, expected_vocabulary

FIELDS: tuple[Field, ...] = (
    Field("tokenizer", "Pieces of text (tokens)", "With large pieces, the model sees further.", "text",
          TOKENIZERS),
    Field("vocab_size", "Size of a learned BPE vocabulary", "More pieces: fewer tokens per text, but a larger table.",
          "text", least=257, most=16384),
    Field("n_layers", "Layers", "More rounds of attention and MLP; time and size grow in proportion.", "shape", least=1,
          most="layers", step=1),
    Field("d_model", "Width (d_model)", "Numbers per token; size grows with its square.", "shape", least=8,
          most=1024, step=8),
    Field("n_heads", "Attention heads", "Each looks for something different; their number must divide the width.",
          "shape", least=1, most=32, step=1),
    Field("n_kv_heads", "Key/value heads", "If fewer, heads share them: a smaller cache. 0: as many as heads.",
          "shape", least=0, most=32),
    Field("d_ff", "MLP width (d_ff)", "Often holds most parameters. 0: 4 times the width, or 8/3 with SwiGLU.",
          "shape", least=0, most=8192),
    Field("context_length", "Context", "How many tokens it sees at once.", "shape", least=8, most="context", step=8),
    Field("positions", "Positions", "How it knows the order of tokens.", "parts",
          titled(POSITIONS, learned="learned table", sinusoidal="sinusoidal", rotary="rotary (RoPE)",
          none="none at all")),
    Field("norm", "Norm", "Keeps the numbers in range.", "parts",
          titled(NORMS, layernorm="LayerNorm", rmsnorm="RMSNorm")),
    Field("norm_placement", "Norm placement", "Before each part: stable. After each sum: as in 2017.", "parts",
          titled(NORM_PLACEMENTS, pre="before (pre)", post="after (post)")),
    Field("activation", "Activation", "The nonlinear function in the MLP.", "parts",
          titled(ACTIVATIONS, relu="ReLU", gelu="GELU", relu2="squared ReLU", swiglu="SwiGLU (gated)")),
    Field("attention_layout", "Q, K and V matrices", "One matrix, or one per head; the results are the same.",
          "parts", titled(ATTENTION_LAYOUTS, fused="one projection", separate_heads="list of heads")),
    Field("init_std", "Initial weights", "1/√inputs starts a few tenths of a nat above guessing but learns faster. "
          "0.02 starts level with guessing.", "parts",
          (("1/√inputs", FOLLOWS), ("0.02 (GPT-2)", 0.02))),
    Field("qk_norm", "Normalise queries and keys", "Keeps scores small at high learning rates.", "parts"),
    Field("tie_embeddings", "Tie the output to the embedding",
          "One table for reading and writing: fewer parameters.", "parts"),
    Field("scale_embeddings", "Embedding × √width", "As in the first transformer.", "parts"),
    Field("qkv_bias", "Biases on Q, K, V", "Three more vectors per layer.", "parts"),
    Field("attention_output_bias", "Bias after attention", "One more vector per layer.", "parts"),
    Field("feedforward_bias", "Biases in the MLP", "Two more vectors per layer, three with SwiGLU.", "parts"),
    Field("head_bias", "Bias on the output", "One number per token of the vocabulary.", "parts"),
    Field("zero_init_outputs", "Start every block at zero", "Output projections begin at zero: a calm start.",
          "parts"),
    Field("causal", "Hide the future (causal mask)",
          "Off: it may peek at what it should predict. See what goes wrong.", "parts"),
    Field("dropout", "Dropout", "Sets numbers to zero at random, which reduces memorising.", "learning", least=0.0,
          most=0.6, step=0.05),
    Field("steps", "Steps", "Updates of the weights; time grows in proportion.", "learning", least=1, most="steps"),
    Field("batch_size", "Batch", "Windows per step. More make steps steadier but slower.", "learning", least=1,
          most="batch", step=1),
    Field("optimizer", "Optimizer", "Muon learns faster per step; AdamW is the classic.", "learning",
          titled(OPTIMIZERS, muon="Muon + AdamW", adamw="AdamW")),
    Field("learning_rate", "Learning rate", "Too low: it learns slowly. Too high: it diverges.", "learning",
          least=1e-6, most=1.0),
    Field("muon_learning_rate", "Muon's rate", "For the matrices that Muon trains.", "learning", least=1e-6,
          most=1.0),
    Field("muon_momentum", "Muon's momentum", "How much of earlier gradients each step keeps.", "learning", least=0.0,
          most=0.999),
    Field("schedule", "Schedule", "How the rate falls after the warm-up.", "learning",
          titled(SCHEDULES, linear="linear to the end", cosine="cosine", constant="constant")),
    Field("warmup_steps", "Warm-up", "Steps over which the rate rises from zero.", "learning", least=0, most="steps"),
    Field("weight_decay", "Weight decay", "Pulls weights towards zero.", "learning", least=0.0, most=1.0, step=0.01),
    Field("gradient_clip", "Gradient clip", "Longer gradients are shortened to this length; 0 turns it off.",
          "learning", least=0.0, most=10.0, step=0.1),
    Field("precision", "Precision", "bf16 is faster if the CPU supports it.", "learning",
          (("automatic", "auto"), ("fp32", "fp32"), ("bf16", "bf16"), ("fp16 (GPU)", "fp16"))),
    Field("eval_every", "Steps between evaluations", "Fewer steps: more points, a little slower.", "learning",
          least=1, most="steps"),
    Field("patience", "Patience", "Stop after this many evaluations clearly above the best, if the training loss "
          "still falls. 0: never. The best weights are kept either way.", "learning", least=0, most="steps"),
    Field("sample_every", "Steps between samples", "Fewer steps: more samples; 0: none.", "learning",
          least=0, most="steps"),
    Field("seed", "Seed", "The same seed gives the same run on the same kind of machine.", "learning", least=0,
          most=2**31),
)  # fmt: skip

BY_NAME = {field.name: field for field in FIELDS}
LABELS.update({name: f"“{field.label}”" for name, field in BY_NAME.items()})
GROUPS = {
    "text": "Text",
    "shape": "Shape",
    "parts": "Parts of the model",
    "learning": "Learning",
}
_MODEL_NAMES = tuple(f.name for f in FIELDS if f.name in ModelConfig.__dataclass_fields__ and f.name != "vocab_size")
_MAY_FOLLOW = {"n_kv_heads": "as many as heads", "d_ff": "from the width", "init_std": "1/√inputs"}
_TRAIN_NAMES = tuple(f.name for f in FIELDS if f.name in TrainConfig.__dataclass_fields__)

FIRST_SIZE = "small"
BY_HAND = "chosen"
"""Stands for the best size if the visitor has chosen it; then it stays, whatever the text."""
SIZES = {"tiny": "Tiny", "small": "Small", "medium": "Medium"}

EVALUATION_TOKENS = 8192
SAMPLES = 20
"""Samples in a run, as many as its curve has points: the first ones come while words are still being learned."""


_SOON = {"learning_rate": 0.01, "muon_learning_rate": 0.01, "muon_momentum": 0.9, "warmup_steps": 5, "sample_every": 20}
"""Settings with which *small* learns a language faster at first and ends as well: see `benchmarks/README.md`."""


# ---- sizes: values by field name -------------------------------------------------------------------------------------


def setting_name(name: str) -> str:
    """A setting's name on the page: its control's label, or else its own name in words."""
    return BY_NAME[name].label if name in BY_NAME else name.replace("_", " ")


def setting_shown(name: str, value: Any) -> str:
    """A setting's value as the page writes it."""
    if value is None:
        return _MAY_FOLLOW.get(name, "–")
    return BY_NAME[name].shown(value) if name in BY_NAME else shown(value)


def size_values(size: str, source: str) -> dict[str, Any]:
    """The form's values for this size and text."""
    if source == SENTENCES and size == "tiny":
        values = _values_of(PRESETS["s5"], RECIPES["s5"])
    else:
        values = _values_of(PRESETS[size], RECIPES[size])
        if source == SENTENCES:
            values |= {"context_length": 32, "steps": 200, "warmup_steps": 20}
        elif size == "medium":
            values["steps"] = 600  # some minutes on a CPU
    tokenizer = "word" if source == SENTENCES else "char"
    values |= {
        "tokenizer": tokenizer,
        "vocab_size": 512,
        "eval_every": max(values["steps"] // 20, 5),
        "sample_every": max(values["steps"] // SAMPLES, 1),
        "seed": 0,
    }
    return values | _SOON if size == "small" and source in LANGUAGES else values


def _values_of(config: ModelConfig, training: TrainConfig) -> dict[str, Any]:
    values = {name: getattr(config, name) for name in _MODEL_NAMES}
    values |= {name: getattr(training, name) for name in _TRAIN_NAMES}
    return {name: FOLLOWS if value is None and name in _MAY_FOLLOW else value for name, value in values.items()}


def tuning_values(parent: Checkpoint, tokens: int) -> dict[str, Any]:
    """Values for training a model further on a text of this many tokens (0: a long one)."""
    training = tuning_config(parent.config, tokens)
    values = {name: getattr(training, name) for name in _TRAIN_NAMES}
    return values | {"sample_every": training.eval_every}


def suited(base: Any, own: Own) -> OwnText:
    """The settings that suit the visitor's own text at this size, or at the best size if `base` is not a size."""
    return for_own_text(own.tokens, own.kinds, base if base in SIZES else None)


def best_size(own: Own) -> str:
    """The best size for the visitor's own text; the first size while the length is unknown."""
    return suited(None, own).size if own.tokens else FIRST_SIZE


def base_values(base: Any, source: str, own: Own = UNKNOWN) -> dict[str, Any]:
    """The settings of a size with this text; those of the first size if `base` is no size.

    `own` is the visitor's own text; the settings follow from its length.
    """
    if source == OWN_TEXT and own.tokens:
        suits = suited(base if base in SIZES else "small", own)
        values = size_values(suits.size, source) | {name: getattr(suits.training, name) for name in _TRAIN_NAMES}
        sampled = max(suits.training.steps // SAMPLES, 1)
        return values | {"context_length": suits.context_length, "sample_every": sampled}
    return size_values(base if base in SIZES else "small", source)


def with_steps(values: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """The values for a run of this many steps: evaluated twenty times, sampled eight times."""
    warmup = min(values["warmup_steps"], max(steps // 10, 1))
    rhythm = {"eval_every": max(steps // 20, 5), "sample_every": max(steps // 8, 1)}
    return {**values, **rhythm, "steps": steps, "warmup_steps": warmup}


def size_of(values: Mapping[str, Any]) -> str | None:
    """The size with this shape; None if no size has it."""
    shape = [field.name for field in FIELDS if field.group == "shape"]
    if values.get("source") == OWN_TEXT:
        shape.remove("context_length")  # a short text has a short context
    for size in SIZES:
        known = size_values(size, values.get("source"))
        if all(same(values[name], known[name]) for name in shape):
            return size
    return None


def for_another_text(
    values: Mapping[str, Any], source: str, base: Callable[[str], Mapping[str, Any]]
) -> dict[str, Any]:
    """The settings after another text is chosen: those set by hand stay, the rest come from the new text's `base`."""
    usual, new = [base(other) for other in texts.SOURCES], base(source)
    kept = {name for name in BY_NAME if not any(same(values[name], known[name]) for known in usual)}
    if values["tokenizer"] not in texts.TOKENIZERS_OF[source]:
        kept.discard("tokenizer")
    return {name: values[name] if name in kept else new[name] for name in BY_NAME}


def nearest(values: Mapping[str, Any], source: str, own: Own = UNKNOWN) -> str:
    """The size from which these settings differ least."""
    return min(SIZES, key=lambda name: len(changed(values, base_values(name, source, own))))


# ---- the form to a run, and back -------------------------------------------------------------------------------------


def model_config(values: Mapping[str, Any]) -> ModelConfig:
    """The config that these settings describe, with an estimated vocabulary; the `parent`'s if one is trained further.

    Raises ValueError.
    """
    if parent := values.get("parent"):
        return parent.config
    chosen = {name: _settled(name, values[name]) for name in _MODEL_NAMES}
    chosen |= {name: chosen[name] or None for name in _MAY_FOLLOW}
    tokenizer = values["tokenizer"]
    learned = _settled("vocab_size", values["vocab_size"]) if tokenizer == "bpe" else None
    own, _ = remembered(values)
    known = own.vocabulary if values.get("source") == OWN_TEXT and own.tokenizer == tokenizer else 0
    vocabulary = learned or known or expected_vocabulary(values.get("source"), tokenizer)
    return ModelConfig(vocab_size=vocabulary, **chosen)


def train_config(values: Mapping[str, Any]) -> TrainConfig:
    """The TrainConfig for these settings. Raises ValueError."""
    parent = values.get("parent")
    context = parent.config.context_length if parent else max(_settled("context_length", values["context_length"]), 1)
    return TrainConfig(
        **{name: _settled(name, values[name]) for name in _TRAIN_NAMES},
        # scoring takes about as long for any context, so that it never delays Stop
        eval_windows=max(EVALUATION_TOKENS // context, 8),
        sample_prompt=str(values.get("prompt") or ""),
        sample_tokens=7 if values.get("source") == SENTENCES else 120 if texts.pieces_of(values) == "char" else 40,
    )


def run_spec(values: Mapping[str, Any], source: Source, limits: Limits) -> RunSpec:
    """The run that the form describes. Raises ValueError if a setting makes no sense or exceeds its bounds."""
    parent, values = values.get("parent"), {**values, **read(FIELDS, values, limits)}
    kind = texts.pieces_of(values)
    begun = beginning_of(source.text, kind) if source.kind == OWN_TEXT else ""
    values["prompt"] = values.get("prompt") or begun
    if parent:
        return RunSpec(source, parent.config, train_config(values), kind, parent=values["model"])
    check_tokenizer(source, values["tokenizer"])
    return RunSpec(
        source=source,
        model=model_config(values),
        training=train_config(values),
        tokenizer=values["tokenizer"],
        vocab_size=values["vocab_size"] if values["tokenizer"] == "bpe" else None,
        size=str(values.get("size") or "custom"),
    )


def values_of(spec: RunSpec) -> dict[str, Any]:
    """The form's values for this run, by name; its base is the size with the fewest differences."""
    own_text = spec.source.kind == OWN_TEXT
    values = _values_of(spec.model, spec.training) | {
        "tokenizer": spec.tokenizer,
        "vocab_size": spec.vocab_size or 512,
        "eval_every": spec.training.eval_every or max(spec.training.steps // 20, 5),
        "prompt": "" if own_text and spec.prompt == beginning_of(spec.source.text, spec.tokenizer) else spec.prompt,
        **texts.values_of(spec.source),
    }
    own = texts.own_of(values["text"], spec.tokenizer)
    base = nearest(values, values["source"], own)
    return values | {"base": base, "size": size_of(values), "suited": written(own)}


def written(own: Own, size: str = "") -> str:
    """A note in the form: the text for which its settings were last chosen, and the size that suited it best, or
    BY_HAND."""
    return f"{own.tokens} {own.tokenizer} {own.vocabulary} {size or best_size(own)}"


def remembered(values: Mapping[str, Any]) -> tuple[Own, str]:
    """The inverse of `written`; an empty text and the first size if there is no such note."""
    found = re.fullmatch(r"(\d{1,12}) (\w{1,20}) (\d{1,9}) (\w{1,20})", str(values.get("suited") or ""))
    if not found:
        return Own(tokenizer=values.get("tokenizer") or "char"), FIRST_SIZE
    tokens, tokenizer, vocabulary, size = found.groups()
    return Own(int(tokens), tokenizer, int(vocabulary)), size


def _settled(name: str, value: Any) -> Any:
    """The value, as an int if the field takes whole numbers."""
    field = BY_NAME[name]
    return whole(field.label, value) if isinstance(field.least, int) else value


# ---- what a change means ---------------------------------------------------------------------------------------------


def changed(values: Mapping[str, Any], base: Mapping[str, Any]) -> list[Field]:
    """The fields whose values differ from the base."""
    return [field for field in FIELDS if not same(values.get(field.name), base.get(field.name))]


def changes(values: Mapping[str, Any], base: Mapping[str, Any]) -> list[str]:
    """Every field that differs from the base, with the old and the new value."""
    return [
        f"{field.label}: {field.shown(base.get(field.name))} → {field.shown(values.get(field.name))}"
        for field in changed(values, base)
    ]
