"""Run cards: all that it takes to repeat a run, and the losses by which one knows that it was repeated.

Settings are kept as differences from the nearest preset, a text by its hash. Whatever a card says is checked here for
its form and by ModelConfig and TrainConfig for its sense.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..data import LANGUAGES
from ..model import PRESETS, ModelConfig
from ..training import TrainConfig
from ..training.recipes import recipe_for
from .letters import LinkError, cut, packed, unpacked

MAX_PROMPT = 300
MAX_LOSSES = 6
MAX_MACHINE = 160
HASH_LETTERS = 16
SENTENCES, OWN_TEXT, HUB_FILE = "sentences", "text", "hub"
TOKENIZERS = ("char", "word", "bpe", "gpt2", "cl100k_base", "o200k_base")

SEEN_ONLY = ("eval_every", "sample_every", "sample_prompt", "sample_tokens", "sample_temperature")
"""Training settings that change what is seen of a run, not what it learns."""
LINKED = (
    "steps", "batch_size", "accumulation", "optimizer", "learning_rate", "muon_learning_rate",
    "muon_momentum", "schedule",
    "warmup_steps", "final_fraction", "weight_decay", "beta1", "beta2", "gradient_clip", "precision", "seed",
    "eval_windows", "patience", *SEEN_ONLY,
)  # fmt: skip
"""Training settings that a link may hold; where and for how long something runs is not for a link to say."""


@dataclass(frozen=True)
class RunCard:
    """All that it takes to repeat a run, and the losses by which one knows that it was repeated."""

    text: str
    """A language's name, `sentences`, `text` (the visitor's own) or `hub`."""
    model: ModelConfig
    """Its vocab_size follows from the text and does not count."""
    training: TrainConfig
    """Only the settings in LINKED count."""
    tokenizer: str = "char"
    """How the text was taken apart, one of TOKENIZERS."""
    vocab_size: int | None = None
    """Of a byte-pair vocabulary learned from the text."""
    text_hash: str = ""
    """The beginning of the text's SHA-256, see `text_hash`; empty if unknown."""
    hub: tuple[str, str, str] | None = None
    """(user/name, file, kind of repository) for `hub`."""
    losses: tuple[tuple[int, float, float], ...] = ()
    """(step, training loss, validation loss) of a few evaluations, the last one among them."""
    machine: str = ""
    """The kind of machine that came to these losses, see `machine_kind`."""

    def __post_init__(self) -> None:
        if self.text not in (*LANGUAGES, SENTENCES, OWN_TEXT, HUB_FILE):
            raise LinkError(f"it names a text that this page does not have: {cut(self.text)}")
        if self.tokenizer not in TOKENIZERS:
            raise LinkError(f"it names a tokenizer that this page does not have: {cut(self.tokenizer)}")
        if self.vocab_size is not None and (type(self.vocab_size) is not int or not 0 < self.vocab_size < 10**6):
            raise LinkError("its size of the vocabulary is not a number that makes sense")
        if not re.fullmatch(r"[0-9a-f]{0,64}", self.text_hash):
            raise LinkError("its hash of the text is damaged")
        if (self.text == HUB_FILE) != (self.hub is not None):
            raise LinkError("it does not say which file of the Hub to learn from")
        if self.hub and (len("".join(self.hub)) > 300 or self.hub[2] not in ("dataset", "model", "space")):
            raise LinkError("it does not say which file of the Hub to learn from")

    @property
    def base(self) -> str:
        """The preset that it differs least from."""
        sizes_first = sorted(PRESETS, key=lambda name: name not in ("small", "tiny", "medium"))
        return min(sizes_first, key=lambda name: sum(map(len, _changes(self, name))))

    def differing(self, other: RunCard) -> list[str]:
        """Names of what differs between the two and changes what is learned."""
        names = [
            name for name in ("text", "tokenizer", "vocab_size", "hub") if getattr(self, name) != getattr(other, name)
        ]
        names += [name for name in self.model.differences(other.model) if name != "vocab_size"]
        mine, theirs = self.training, other.training
        return names + [
            name for name in LINKED if name not in SEEN_ONLY and getattr(mine, name) != getattr(theirs, name)
        ]

    def to_letters(self) -> str:
        """What stands after `?run=`. Raises LinkError where that would be too long."""
        base = self.base
        model, training = _changes(self, base)
        if len(str(training.get("sample_prompt", ""))) > MAX_PROMPT:
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
            "model": _regular(model),
            "training": _regular(training),
            "losses": [[step, round(1e4 * train), round(1e4 * val)] for step, train, val in self.losses],
            "machine": self.machine,
        }
        record |= {name: value for name, value in optional.items() if value}
        return packed(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode())

    @classmethod
    def from_letters(cls, letters: str) -> RunCard:
        """The inverse of `to_letters`, whoever wrote them. Raises LinkError."""
        record = unpacked(letters)
        try:
            return _from_record(record)
        except LinkError:
            raise
        except ValueError as problem:  # of ModelConfig and TrainConfig, which name the setting
            raise LinkError(f"its settings make no sense: {problem}") from problem
        except (TypeError, KeyError, IndexError, AttributeError, OverflowError) as problem:
            raise LinkError("what it holds is not a run") from problem


def text_hash(text: str) -> str:
    """What links hold in place of a text: the beginning of the SHA-256 of its UTF-8, line ends made regular."""
    regular = text.replace("\r\n", "\n").encode("utf-8", errors="surrogatepass")
    return hashlib.sha256(regular).hexdigest()[:HASH_LETTERS]


def chosen_losses(evaluations: Mapping[str, Sequence[float]], every: int, steps: int) -> tuple:
    """A few of a run's evaluations for its card: those that a repeated run makes, too, spread to the last.

    `evaluations` has the columns of `training.History`. A run that was stopped was evaluated where it stopped; nobody
    else will be there.
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


# ---- what stands in a record ----------------------------------------------------------------------------------------


def _from_record(record: dict[str, Any]) -> RunCard:
    known = {"base", "text", "print", "tokenizer", "vocab_size", "hash", "model", "training", "losses", "machine"}
    if set(record) - known or not isinstance(record["base"], str) or record["base"] not in PRESETS:
        raise LinkError("it was made by another version of this page")
    changed, trained = record.get("model", {}), record.get("training", {})
    if set(trained) - set(LINKED) or "vocab_size" in changed:
        raise LinkError("it sets what a link may not set")
    model = PRESETS[record["base"]].replace(**changed)
    training = _linked_only(recipe_for(record["base"])).replace(**trained)
    if not isinstance(training.sample_prompt, str) or len(training.sample_prompt) > MAX_PROMPT:
        raise LinkError("its prompt is no text of a sane length")
    if record["print"] != _fingerprint(model, training):
        raise LinkError(f"the settings of preset {record['base']!r} have changed since it was made")
    rows = record.get("losses", [])
    lists = (record["text"], rows, *(rows if isinstance(rows, list) else ()))
    if not all(isinstance(part, list) for part in lists) or not record["text"] or any(len(row) != 3 for row in rows):
        raise LinkError("what it holds is not a run")
    if len(rows) > MAX_LOSSES:
        raise LinkError("it holds more losses than a link may hold")
    losses = tuple((_whole(step), _loss(train), _loss(val)) for step, train, val in rows)
    text, *hub = record["text"]
    words = (text, *hub, record.get("tokenizer", "char"), record.get("hash", ""), record.get("machine", ""))
    if not all(isinstance(word, str) and word.isprintable() for word in words) or len(hub) not in (0, 3):
        raise LinkError("what it holds is not a run")
    return RunCard(
        text=text,
        model=model,
        training=training,
        tokenizer=record.get("tokenizer", "char"),
        vocab_size=record.get("vocab_size"),
        text_hash=record.get("hash", ""),
        hub=(hub[0], hub[1], hub[2]) if hub else None,
        losses=losses,
        machine=record.get("machine", "")[:MAX_MACHINE],
    )


def _changes(card: RunCard, base: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of model and training in which the card differs from a preset."""
    model = {n: mine for n, (mine, _) in card.model.differences(PRESETS[base]).items() if n != "vocab_size"}
    recipe = _linked_only(recipe_for(base))
    training = {n: getattr(card.training, n) for n in LINKED if getattr(card.training, n) != getattr(recipe, n)}
    return model, training


def _linked_only(training: TrainConfig) -> TrainConfig:
    """The settings a link may hold, all others as they are by default."""
    return TrainConfig(**{name: getattr(training, name) for name in LINKED})


def _fingerprint(model: ModelConfig, training: TrainConfig) -> int:
    """Changes if a preset does, so that an old link does not quietly come to mean something else."""
    said = {n: mine for n, (mine, _) in model.differences(ModelConfig()).items() if n != "vocab_size"}
    default = TrainConfig()
    said |= {n: getattr(training, n) for n in LINKED if getattr(training, n) != getattr(default, n)}
    said.pop("sample_prompt", None)
    return zlib.crc32(json.dumps(_regular(said), sort_keys=True).encode()) & 0xFFFFFF


def _regular(values: dict[str, Any]) -> dict[str, Any]:
    """Whole numbers written as such: a page makes 0 of 0.0."""
    return {n: int(v) if isinstance(v, float) and v.is_integer() else v for n, v in values.items()}


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 10**9:
        raise LinkError("its steps or losses are not numbers that make sense")
    return value


def _loss(value: Any) -> float:
    return _whole(value) / 1e4
