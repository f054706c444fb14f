"""The form: every setting of a run with its one-line why, as a table; from there to components and back to a RunSpec.

`FIELDS` is the one list: a field's `name` is the name in ModelConfig, TrainConfig or RunSpec. Sizes and presets are
dictionaries of the same names, so that setting the form is always "these values, in this order".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from ....data import LANGUAGES
from ....model import PRESETS, ModelConfig, Preset
from ....model.config import ACTIVATIONS, ATTENTION_LAYOUTS, NORM_PLACEMENTS, NORMS, POSITIONS
from ....service.limits import Limits
from ....service.runs import HUB_FILE, OWN_TEXT, SENTENCES, RunSpec, Source
from ....training import RECIPES, TrainConfig
from ....training.config import OPTIMIZERS, SCHEDULES
from ...lenient import LenientDropdown

FOLLOWS = 0  # stands for None where a number follows from others


@dataclass(frozen=True)
class Field:
    """One setting: what it is called, why one would touch it, and what it may be."""

    name: str
    label: str
    why: str
    group: str
    """text, shape, parts or learning: the part of Advanced it stands in."""
    choices: tuple[Any, ...] = ()
    """What may be chosen; empty for switches and numbers."""
    least: float | None = None
    most: str | float | None = None
    """The largest number, or the name of the limit that says it."""
    step: float | None = None
    """None makes a free number, anything else a slider."""

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off."""
        return not self.choices and self.least is None

    def upper(self, limits: Limits) -> float:
        """The largest number it may be here."""
        return getattr(limits, self.most) if isinstance(self.most, str) else self.most

    def check(self, value: Any, limits: Limits) -> None:
        """Raise ValueError unless this is a choice, a switch's position, or a number within bounds."""
        if self.choices:
            fits, allowed = value in [v for _, v in self.choices], "one of " + ", ".join(t for t, _ in self.choices)
        elif self.is_switch:
            fits, allowed = isinstance(value, bool), "on or off"
        else:
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            fits = number and self.least <= value <= self.upper(limits)
            allowed = f"from {self.least:g} to {self.upper(limits):,g}"
        if not fits:
            raise ValueError(f"{self.label} must be {allowed}, not {value!r}")

    def build(self, limits: Limits, value: Any) -> gr.components.Component:
        """Its component, holding this value."""
        if self.choices:
            # another text may allow other choices while an event is under way: `check` holds the value to them
            return LenientDropdown(list(self.choices), label=self.label, info=self.why, value=value)
        if self.is_switch:
            return gr.Checkbox(value, label=self.label, info=self.why)
        if self.step is None:
            return gr.Number(label=self.label, info=self.why, value=value)
        most = self.upper(limits)
        return gr.Slider(
            self.least, most, value=value, step=self.step, label=self.label, info=self.why, buttons=["reset"]
        )


def _named(values: tuple[str, ...], **titles: str) -> tuple[tuple[str, str], ...]:
    return tuple((titles.get(value, value), value) for value in values)


TOKENIZERS = _named(
    ("char", "word", "bpe", "gpt2", "cl100k_base", "o200k_base"),
    char="characters",
    word="words",
    bpe="byte pairs learned from the text (BPE)",
    gpt2="GPT-2's byte pairs",
    cl100k_base="GPT-4's byte pairs (cl100k)",
    o200k_base="GPT-4o's byte pairs (o200k)",
)

FIELDS: tuple[Field, ...] = (
    Field("tokenizer", "Pieces of text (tokens)", "Small pieces are easy to learn, large ones see further.", "text",
          TOKENIZERS),
    Field("vocab_size", "Size of a learned BPE vocabulary", "More pieces mean shorter texts but a larger table.",
          "text", least=257, most=16384),
    Field("n_layers", "Layers", "More steps of thought; time and size grow in proportion.", "shape", least=1,
          most="layers", step=1),
    Field("d_model", "Width (d_model)", "Numbers per token; size grows with its square.", "shape", least=8,
          most=1024, step=8),
    Field("n_heads", "Attention heads", "Each looks for something of its own; must divide the width.", "shape",
          least=1, most=32, step=1),
    Field("n_kv_heads", "Key/value heads", "Fewer than heads shares them: a smaller cache. 0: as many as heads.",
          "shape", least=0, most=32),
    Field("d_ff", "Feed-forward width (d_ff)", "Where most parameters are. 0: 4 times the width, or 8/3 with SwiGLU.",
          "shape", least=0, most=8192),
    Field("context_length", "Context", "How many tokens it sees at once.", "shape", least=8, most="context", step=8),
    Field("positions", "Positions", "How it knows the order of tokens.", "parts",
          _named(POSITIONS, learned="learned table", sinusoidal="sinusoidal", rotary="rotary (RoPE)",
          none="none at all")),
    Field("norm", "Norm", "Keeps the numbers in range.", "parts",
          _named(NORMS, layernorm="LayerNorm", rmsnorm="RMSNorm")),
    Field("norm_placement", "Norm placement", "Before each part trains calmly; after each sum is the original.",
          "parts", _named(NORM_PLACEMENTS, pre="before each part (pre)", post="after each sum (post)")),
    Field("activation", "Activation", "The bend in the feed-forward layer.", "parts",
          _named(ACTIVATIONS, relu="ReLU", gelu="GELU", relu2="squared ReLU", swiglu="SwiGLU (gated)")),
    Field("attention_layout", "Attention weights", "One matrix, or a list of small heads: the same function.",
          "parts", _named(ATTENTION_LAYOUTS, fused="one projection", separate_heads="list of heads")),
    Field("init_std", "First weights", "Their spread before training.", "parts",
          (("1/√inputs", FOLLOWS), ("0.02 (GPT-2)", 0.02))),
    Field("qk_norm", "Normalise queries and keys", "Keeps scores small at high learning rates.", "parts"),
    Field("tie_embeddings", "Tie the output to the embedding",
          "One table for reading and writing: fewer parameters.", "parts"),
    Field("scale_embeddings", "Embedding × √width", "As in the first transformer.", "parts"),
    Field("qkv_bias", "Biases on Q, K, V", "Three more vectors per layer.", "parts"),
    Field("attention_output_bias", "Bias after attention", "One more vector per layer.", "parts"),
    Field("feedforward_bias", "Biases in the feed-forward", "Two more vectors per layer.", "parts"),
    Field("head_bias", "Bias on the output", "One number per token of the vocabulary.", "parts"),
    Field("zero_init_outputs", "Start every block as nothing", "Output projections begin at zero: a calm start.",
          "parts"),
    Field("causal", "Hide the future (causal mask)",
          "Off: it may peek at what it should predict. See what goes wrong.", "parts"),
    Field("dropout", "Dropout", "Zeroes numbers at random, against learning by heart.", "learning", least=0.0,
          most=0.6, step=0.05),
    Field("steps", "Steps", "Updates of the weights; time grows in proportion.", "learning", least=1, most="steps"),
    Field("batch_size", "Batch", "Windows per step: steadier, but slower steps.", "learning", least=1, most="batch",
          step=1),
    Field("optimizer", "Optimizer", "Muon learns faster per step, AdamW is the classic.", "learning",
          _named(OPTIMIZERS, muon="Muon + AdamW", adamw="AdamW")),
    Field("learning_rate", "Learning rate", "Too low learns slowly, too high blows up.", "learning", least=1e-6,
          most=1.0),
    Field("muon_learning_rate", "Muon's rate", "For the matrices, where Muon trains them.", "learning", least=1e-6,
          most=1.0),
    Field("muon_momentum", "Muon's memory", "How long it remembers the gradient.", "learning", least=0.0, most=0.999),
    Field("schedule", "Schedule", "How the rate falls after the warm-up.", "learning",
          _named(SCHEDULES, linear="linear to the end", cosine="cosine", constant="constant")),
    Field("warmup_steps", "Warm-up", "Steps over which the rate rises from zero.", "learning", least=0, most="steps"),
    Field("weight_decay", "Weight decay", "Pulls weights towards zero.", "learning", least=0.0, most=1.0, step=0.01),
    Field("gradient_clip", "Gradient clip", "Longest allowed step of the gradient; 0 is off.", "learning", least=0.0,
          most=10.0, step=0.1),
    Field("precision", "Precision", "bf16 is faster where the processor has it.", "learning",
          (("automatic", "auto"), ("fp32", "fp32"), ("bf16", "bf16"), ("fp16 (GPU)", "fp16"))),
    Field("eval_every", "Steps between evaluations", "More points on the curve, a little slower.", "learning",
          least=5, most="steps"),
    Field("sample_every", "Steps between samples", "How often it shows what it can say; 0 is never.", "learning",
          least=0, most="steps"),
    Field("seed", "Seed", "The same seed gives the same run on the same kind of machine.", "learning", least=0,
          most=2**31),
)  # fmt: skip

BY_NAME = {field.name: field for field in FIELDS}
GROUPS = {
    "text": "Text",
    "shape": "Shape",
    "parts": "Parts of the model",
    "learning": "Learning",
}
_MODEL_NAMES = tuple(f.name for f in FIELDS if f.name in ModelConfig.__dataclass_fields__ and f.name != "vocab_size")
_MAY_FOLLOW = ("n_kv_heads", "d_ff", "init_std")
_TRAIN_NAMES = tuple(f.name for f in FIELDS if f.name in TrainConfig.__dataclass_fields__)

SIZES = {"tiny": "Tiny", "small": "Small", "medium": "Medium"}
SYSTEMS = ("s1", "s2", "s3", "s4", "s5", "gpt2-small", "nanogpt-cpu")
_TWIN = {"n_layers": 4, "d_model": 128, "n_heads": 4, "context_length": 64, "d_ff": None}

OWN_KINDS = {"paste": "Paste it", "upload": "Upload a file", "hub": "A file on the Hub"}
SOURCES = {
    **{name: language.title for name, language in LANGUAGES.items()},
    SENTENCES: "Twenty sentences",
    OWN_TEXT: "My own text",
}
NOTES = {
    **{name: language.note for name, language in LANGUAGES.items()},
    SENTENCES: "Twenty short sentences in words, far too few to hold any out: watch it learn them by heart.",
    OWN_TEXT: "A page is enough to see something, 100,000 characters make it good.",
}
PROMPTS = {
    **{name: language.prompt for name, language in LANGUAGES.items()},
    SENTENCES: "the cat",
    OWN_TEXT: "",
}
TOKENIZERS_OF = {
    **{name: ("char", "word") for name in LANGUAGES},
    SENTENCES: ("word",),
    OWN_TEXT: tuple(value for _, value in TOKENIZERS),
}
# as many different tokens as our own texts have, and about as many as others will
_KNOWN_VOCABULARY = {
    ("stories", "char"): 41, ("stories", "word"): 111, ("copy", "char"): 11, ("copy", "word"): 4610,
    ("brackets", "char"): 8, ("brackets", "word"): 8, ("addition", "char"): 14, ("addition", "word"): 203,
    ("dialects", "char"): 26, ("dialects", "word"): 46, (SENTENCES, "word"): 28,
}  # fmt: skip
_GUESSED_VOCABULARY = {
    "char": 64,
    "word": 2000,
    "bpe": 512,
    "gpt2": 50_257,
    "cl100k_base": 100_277,
    "o200k_base": 200_019,
}

EVALUATION_TOKENS = 8192


# ---- sizes and presets: values by field name -------------------------------------------------------------------------


def setting_name(name: str) -> str:
    """What the page calls a setting: its control's label, or its name in words."""
    return BY_NAME[name].label if name in BY_NAME else name.replace("_", " ")


def size_values(size: str, source: str) -> dict[str, Any]:
    """What the form holds at this position of the dial, for this text."""
    if source == SENTENCES and size == "tiny":
        values = _values_of(PRESETS["s5"].config, RECIPES["s5"])
    else:
        values = _values_of(PRESETS[size].config, RECIPES[size])
        if source == SENTENCES:
            values |= {"context_length": 32, "steps": 200, "warmup_steps": 20}
        elif size == "medium":
            values["steps"] = 600  # some minutes on a CPU
    tokenizer = "word" if source == SENTENCES else "char"
    return values | {
        "tokenizer": tokenizer,
        "vocab_size": 512,
        "eval_every": max(values["steps"] // 20, 5),
        "sample_every": max(values["steps"] // 8, 1),
        "seed": 0,
    }


def preset_values(preset: Preset, limits: Limits) -> tuple[dict[str, Any], bool]:
    """A teaching system's settings, and whether its shape had to shrink to a twin that can be trained here."""
    config, training = preset.config, RECIPES.get(preset.name, RECIPES["small"])
    too_large = config.n_parameters > min(limits.parameters, 10_000_000)
    if too_large:
        config = config.replace(**_TWIN)
    tokenizer = "word" if preset.name == "s5" else "char"
    return _values_of(config, training) | {
        "tokenizer": tokenizer,
        "sample_every": max(training.steps // 8, 1),
    }, too_large


def _values_of(config: ModelConfig, training: TrainConfig) -> dict[str, Any]:
    values = {name: getattr(config, name) for name in _MODEL_NAMES}
    values |= {name: getattr(training, name) for name in _TRAIN_NAMES}
    return {name: FOLLOWS if value is None and name in _MAY_FOLLOW else value for name, value in values.items()}


# ---- the form back to a run ------------------------------------------------------------------------------------------


def model_config(values: Mapping[str, Any]) -> ModelConfig:
    """The model that these settings describe; its vocabulary is estimated. Raises ValueError."""
    chosen = {name: values[name] for name in _MODEL_NAMES}
    for name in ("n_layers", "d_model", "n_heads", "n_kv_heads", "d_ff", "context_length"):
        chosen[name] = _whole(name, chosen[name])
    for name in _MAY_FOLLOW:
        chosen[name] = chosen[name] or None
    tokenizer = values["tokenizer"]
    learned = _whole("vocab_size", values["vocab_size"]) if tokenizer == "bpe" else None
    return ModelConfig(vocab_size=learned or expected_vocabulary(values.get("source"), tokenizer), **chosen)


def expected_vocabulary(source: Any, tokenizer: str) -> int:
    """How many tokens there will be; of a text that has not been read, about how many."""
    return _KNOWN_VOCABULARY.get((source, tokenizer)) or _GUESSED_VOCABULARY.get(tokenizer, 64)


def knows_vocabulary(source: Any, tokenizer: str) -> bool:
    """Whether `expected_vocabulary` is sure."""
    return (source, tokenizer) in _KNOWN_VOCABULARY


def train_config(values: Mapping[str, Any]) -> TrainConfig:
    """How these settings train. Raises ValueError."""
    chosen = {name: values[name] for name in _TRAIN_NAMES}
    for name in ("steps", "batch_size", "warmup_steps", "eval_every", "sample_every", "seed"):
        chosen[name] = _whole(name, chosen[name])
    context = max(_whole("context_length", values["context_length"]), 1)
    return TrainConfig(
        **chosen,
        # scoring takes about as long whatever the context, so that Stop is never held up by it
        eval_windows=max(EVALUATION_TOKENS // context, 8),
        sample_prompt=str(values.get("prompt") or ""),
        sample_tokens=7 if values.get("source") == SENTENCES else 120 if values["tokenizer"] == "char" else 40,
    )


def run_spec(values: Mapping[str, Any], source: Source, limits: Limits) -> RunSpec:
    """The run that the form describes. Raises ValueError where a setting makes no sense or exceeds its bounds."""
    for field in FIELDS:
        field.check(values[field.name], limits)
    if values["tokenizer"] not in TOKENIZERS_OF.get(source.kind, TOKENIZERS_OF[OWN_TEXT]):
        raise ValueError(
            f"{source.title} cannot be read in pieces of {values['tokenizer']!r}: choose another tokenizer"
        )
    return RunSpec(
        source=source,
        model=model_config(values),
        training=train_config(values),
        tokenizer=values["tokenizer"],
        vocab_size=_whole("vocab_size", values["vocab_size"]) if values["tokenizer"] == "bpe" else None,
        size=str(values.get("size") or "custom"),
    )


def source_of(values: Mapping[str, Any], limits: Limits) -> Source:
    """What the form says to learn from; an uploaded file is read here. Raises ValueError."""
    from pathlib import Path

    from ....data import TextError, decode_upload

    kind = values["source"]
    if kind != OWN_TEXT:
        if kind not in SOURCES:
            raise TextError("choose a language or your own text to learn from")
        return Source(kind)
    how = values["own_kind"]
    if how == "hub":
        repo, filename = str(values["hub_repo"] or "").strip(), str(values["hub_file"] or "").strip()
        if not repo or not filename:
            raise TextError("name a repository of the Hub as user/name, and a text file in it")
        return Source(HUB_FILE, repo=repo, filename=filename, repo_type=values["hub_type"])
    if how == "upload":
        if not values["upload"]:
            raise TextError("choose a file to upload first, or paste your text")
        path = Path(values["upload"])
        if path.stat().st_size > limits.text_bytes:
            limits.check_size(path.stat().st_size)
        return Source(OWN_TEXT, text=decode_upload(path.read_bytes(), name=path.name, max_bytes=limits.text_bytes))
    text = str(values["text"] or "")
    if not text.strip():
        raise TextError("there is no text yet: paste a page or more, or choose a language")
    limits.check_text(text)
    return Source(OWN_TEXT, text=text)


# ---- what a change means ---------------------------------------------------------------------------------------------


def changes(values: Mapping[str, Any], base: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(setting, what it changes) for every field that differs from the base."""
    told = []
    for field in FIELDS:
        now, was = values.get(field.name), base.get(field.name)
        if _same(now, was):
            continue
        told.append((f"{field.label}: {_shown(field, was)} → {_shown(field, now)}", _effect(field, values, base)))
    return told


def _effect(field: Field, values: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    """What this one change does to the base's size and speed."""
    if field.name in ("steps", "batch_size"):
        before, after = float(base[field.name] or 1), float(values[field.name] or 1)
        return (
            f"{after / before:.2g}× the time" if field.name == "steps" else f"{after / before:.2g}× the text per step"
        )
    if field.name == "causal" and not values["causal"]:
        return "training looks wonderful and writing fails: each token sees its own answer"
    if field.name not in (*_MODEL_NAMES, "tokenizer", "vocab_size"):
        return ""
    try:
        before, after = model_config(base), model_config({**base, field.name: values[field.name]})
    except ValueError as problem:
        return f"not possible: {problem}"
    more = after.n_parameters - before.n_parameters
    work = after.flops_per_token() / before.flops_per_token()
    parts = [f"{more:+,} parameters"] if more else []
    if abs(work - 1) > 0.02:
        parts.append(f"{work:.2g}× the work per token")
    return ", ".join(parts) or "the size stays the same"


def _shown(field: Field, value: Any) -> str:
    if field.choices:
        return str(next((title for title, v in field.choices if v == value), value))
    if field.is_switch:
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1e-9)
    return a == b


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise ValueError(f"{BY_NAME[name].label if name in BY_NAME else name} must be a whole number, not {value!r}")
    return int(value)
