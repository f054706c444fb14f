"""Run cards: all that it takes to repeat a run, and the losses that show whether it was repeated.

Settings are kept as differences from the nearest preset, a text as its hash. Here a card is checked for its form;
ModelConfig and TrainConfig check that its values make sense.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from ..data import LANGUAGES
from ..model import PRESETS, ModelConfig
from ..training import TrainConfig
from ..training.recipes import recipe_for
from .letters import LinkError, packed, unpacked

MAX_PROMPT = 300
MAX_LOSSES = 6
MAX_MACHINE = 160
HASH_LETTERS = 16
SENTENCES, OWN_TEXT, HUB_FILE = "sentences", "text", "hub"
TOKENIZERS = ("char", "word", "bpe", "gpt2", "cl100k_base", "o200k_base")

SEEN_ONLY = ("eval_every", "sample_every", "sample_prompt", "sample_tokens", "sample_temperature")
"""Training settings that change what is shown of a run, not what it learns."""
LINKED = (
    "steps", "batch_size", "accumulation", "optimizer", "learning_rate", "muon_learning_rate",
    "muon_momentum", "schedule",
    "warmup_steps", "final_fraction", "weight_decay", "beta1", "beta2", "gradient_clip", "precision", "seed",
    "eval_windows", "patience", *SEEN_ONLY,
)  # fmt: skip
"""Training settings that a link may hold; a link must not say where or for how long something runs."""


@dataclass(frozen=True)
class RunCard:
    """All that it takes to repeat a run, and the losses by which one knows that it was repeated."""

    text: str
    """A language's name, `sentences`, `text` (the visitor's own) or `hub`."""
    model: ModelConfig
    """The model; its vocab_size follows from the text and does not count."""
    training: TrainConfig
    """The training settings; only those in LINKED count."""
    tokenizer: str = "char"
    """How the text was split into tokens, one of TOKENIZERS."""
    vocab_size: int | None = None
    """Size of a byte-pair vocabulary learned from the text."""
    text_hash: str = ""
    """The beginning of the text's SHA-256, see `text_hash`; empty if unknown."""
    hub: tuple[str, str, str] | None = None
    """(user/name, file, kind of repository) for `hub`."""
    losses: tuple[tuple[int, float, float], ...] = ()
    """(step, training loss, validation loss) of a few evaluations, the last one among them."""
    machine: str = ""
    """The kind of machine on which these losses were measured, see `machine_kind`."""

    @property
    def base(self) -> str:
        """The preset from which the card differs least."""
        sizes_first = sorted(PRESETS, key=lambda name: name not in ("small", "tiny", "medium"))
        return min(sizes_first, key=lambda name: sum(map(len, self._changes(name))))

    def _changes(self, preset: str) -> tuple[dict[str, Any], dict[str, Any]]:
        return _differences(self.model, self.training, PRESETS[preset], recipe_for(preset))

    def differing(self, other: RunCard) -> list[str]:
        """Names of the settings that differ between two cards and change what is learned."""
        names = ("text", "tokenizer", "vocab_size", "hub")
        model, training = _differences(self.model, self.training, other.model, other.training)
        found = [name for name in names if getattr(self, name) != getattr(other, name)]
        return found + list(model) + [name for name in training if name not in SEEN_ONLY]

    def to_letters(self) -> str:
        """The part after `?run=`. Raises LinkError if it would be too long."""
        base = self.base
        model, training = self._changes(base)
        if "sample_prompt" in training:
            training["sample_prompt"] = training["sample_prompt"][:MAX_PROMPT]
        record: dict[str, Any] = {
            "base": base,
            "text": [self.text, *(self.hub or ())],
            "print": _fingerprint(self.model, self.training),
        }
        optional = {
            "tokenizer": self.tokenizer if self.tokenizer != "char" else None,
            "vocab_size": self.vocab_size,
            "hash": self.text_hash[:HASH_LETTERS],
            "model": model,
            "training": training,
            "losses": [[step, round(1e4 * train), round(1e4 * val)] for step, train, val in self.losses],
            "machine": self.machine,
        }
        record |= {name: value for name, value in optional.items() if value}
        return packed(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode())

    @classmethod
    def from_letters(cls, letters: str) -> RunCard:
        """The inverse of `to_letters`, for untrusted letters. Raises LinkError."""
        try:
            record = _Record.model_validate_json(unpacked(letters))
        except ValidationError as problem:
            raise LinkError("it holds no run, or one from another version of this page") from problem
        preset, recipe = PRESETS[record.base], recipe_for(record.base)
        try:
            model = preset.replace(**record.model, vocab_size=preset.vocab_size)
            training = TrainConfig(**{name: getattr(recipe, name) for name in LINKED}).replace(**record.training)
        except (TypeError, ValueError, OverflowError) as problem:
            raise LinkError(f"its settings make no sense: {problem}") from problem
        if record.print != _fingerprint(model, training):
            raise LinkError(f"the settings of preset {record.base!r} have changed since it was made")
        text, *hub = record.text
        losses = tuple((step, train / 1e4, val / 1e4) for step, train, val in record.losses)
        return cls(
            text, model, training, record.tokenizer, record.vocab_size, record.hash, tuple(hub) or None, losses,
            record.machine,
        )  # fmt: skip


def text_hash(text: str) -> str:
    """What links hold in place of a text: the beginning of its UTF-8's SHA-256, after making line ends regular."""
    regular = text.replace("\r\n", "\n").encode("utf-8", errors="surrogatepass")
    return hashlib.sha256(regular).hexdigest()[:HASH_LETTERS]


def chosen_losses(evaluations: Mapping[str, Sequence[float]], every: int, steps: int) -> tuple:
    """A few of a run's evaluations for its card: only ones that a repeated run also makes, spread up to the last.

    `evaluations` has the columns of `training.History`. A stopped run was also evaluated where it stopped, but a
    repeated run is not.
    """
    rows = [
        (int(step), float(train), float(val))
        for step, train, val in zip(evaluations["step"], evaluations["train_loss"], evaluations["val_loss"])
        if (step == steps or (every > 0 and step % every == 0)) and train < 9e4 and val < 9e4
    ]
    if len(rows) <= MAX_LOSSES:
        return tuple(rows)
    at = {round(i * (len(rows) - 1) / (MAX_LOSSES - 1)) for i in range(MAX_LOSSES)}
    return tuple(rows[i] for i in sorted(at))


# ---- the contents of a record ---------------------------------------------------------------------------------------


_Word = Annotated[str, Field(max_length=MAX_PROMPT, pattern=r"^\P{C}*$")]
_Setting = bool | int | float | Annotated[str, Field(max_length=MAX_PROMPT)] | None
_Number = Annotated[int, Field(ge=0, lt=10**9)]


class _Record(BaseModel, extra="forbid", strict=True, allow_inf_nan=False):
    """What a card's letters hold, as JSON; losses are in ten thousandths of a nat."""

    base: Literal[tuple(PRESETS)]
    text: (
        tuple[Literal[(*LANGUAGES, SENTENCES, OWN_TEXT)]]
        | tuple[Literal["hub"], _Word, _Word, Literal["dataset", "model", "space"]]
    )
    print: int
    model: dict[str, _Setting] = {}
    training: dict[Literal[LINKED], _Setting] = {}
    losses: Annotated[list[tuple[_Number, _Number, _Number]], Field(max_length=MAX_LOSSES)] = []
    tokenizer: Literal[TOKENIZERS] = "char"
    vocab_size: Annotated[int, Field(gt=0, lt=10**6)] | None = None
    hash: Annotated[str, Field(pattern="^[0-9a-f]{0,64}$")] = ""
    machine: Annotated[_Word, Field(max_length=MAX_MACHINE)] = ""


def _differences(
    model: ModelConfig, training: TrainConfig, other: ModelConfig, others: TrainConfig
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings in which one model and its training differ from another's, as far as links hold them.

    Whole numbers are written without a point: a page turns 0.0 into 0.
    """
    mine = {name: value for name, (value, _) in model.differences(other).items() if name != "vocab_size"}
    trained = {name: getattr(training, name) for name in LINKED if getattr(training, name) != getattr(others, name)}
    whole = lambda value: int(value) if isinstance(value, float) and value.is_integer() else value  # noqa: E731
    return {n: whole(value) for n, value in mine.items()}, {n: whole(value) for n, value in trained.items()}


def _fingerprint(model: ModelConfig, training: TrainConfig) -> int:
    """Changes if a preset does, so that an old link does not silently change its meaning."""
    mine, trained = _differences(model, training, ModelConfig(), TrainConfig())
    trained.pop("sample_prompt", None)
    return zlib.crc32(json.dumps(mine | trained, sort_keys=True).encode()) & 0xFFFFFF
