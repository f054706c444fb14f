"""Links: a run as a few letters of a URL from which anybody can replay it, and a view of a tab in readable words.

    ?run=1q1YqVrJ…                                          text, settings and the losses they led to
    ?tab=inspect&model=stories&prompt=Mia&layer=2&head=0&cell=7,3

A run's letters hold a version, then deflated JSON and its checksum in URL-safe base64: settings as differences from the
nearest preset, a hash instead of a text. Whatever a link says is checked here for its form and by ModelConfig and
TrainConfig for its sense; what may be trained is for the limits of the place where it is opened. All that is wrong
becomes a LinkError, a sentence meant to be shown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .data import LANGUAGES
from .model import PRESETS, ModelConfig
from .training import TrainConfig
from .training.recipes import recipe_for

VERSION = "1"
MAX_LETTERS = 2000
MAX_JSON = 6000
MAX_PROMPT = 300
MAX_LOSSES = 6
HASH_LETTERS = 16
SENTENCES, OWN_TEXT, HUB_FILE = "sentences", "text", "hub"
TOKENIZERS = ("char", "word", "bpe", "gpt2", "cl100k_base", "o200k_base")

SEEN_ONLY = ("eval_every", "sample_every", "sample_prompt", "sample_tokens", "sample_temperature")
"""Training settings that change what is seen of a run, not what it learns."""
LINKED = (
    "steps", "batch_size", "accumulation", "optimizer", "learning_rate", "muon_learning_rate",
    "muon_momentum", "schedule",
    "warmup_steps", "final_fraction", "weight_decay", "beta1", "beta2", "gradient_clip", "precision", "seed",
    "eval_windows", *SEEN_ONLY,
)  # fmt: skip
"""Training settings that a link may hold; where and for how long something runs is not for a link to say."""

# What links of version 1 are packed with: never to be changed, or they can no longer be read.
_WORDS = (
    b'"schedule":"constant""optimizer":"adamw""positions":"sinusoidal""norm_placement":"post""activation":"swiglu"'
    b'"norm":"layernorm""attention_layout":"separate_heads""sample_tokens":"sample_temperature":"accumulation":'
    b'"tie_embeddings":true,"qkv_bias":false,"head_bias":true,"feedforward_bias":false,"attention_output_bias":false'
    b'"n_experts":8,"experts_per_token":2,"moe_every":"shared_expert":"balance":"router_z_weight":"init_std":null,'
    b'"muon_learning_rate":0.02,"learning_rate":0.003,"weight_decay":0.1,"gradient_clip":"final_fraction":"precision":'
    b'"dropout":0.1,"batch_size":32,"warmup_steps":20,"eval_windows":128,"sample_every":"eval_every":50,"steps":300,'
    b'"context_length":64,"n_kv_heads":"n_layers":2,"n_heads":2,"d_model":64,"d_ff":"sample_prompt":"Once upon a time"'
    b'"text":"sentences""hub""dataset""dialects""brackets""addition""copy""stories""tokenizer":"char""word""bpe"'
    b'"machine":"cpu AVX512 AVX2 bfloat16 float32, 2 threads, torch 2.","losses":[[0,"training":{"seed":1},"model":{},'
    b'"text":["stories"],"hash":"","print":,"base":"nanogpt-cpu""gpt2-small""medium""tiny""small"{'
)


class LinkError(ValueError):
    """What is wrong with a link, in a sentence meant to be shown."""


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
            raise LinkError(f"it names a text that this page does not have: {_cut(self.text)}")
        if self.tokenizer not in TOKENIZERS:
            raise LinkError(f"it names a tokenizer that this page does not have: {_cut(self.tokenizer)}")
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
        letters = VERSION + _pack(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode())
        if len(letters) > MAX_LETTERS:
            raise LinkError("this run has too many settings of its own for a link")
        return letters

    @classmethod
    def from_letters(cls, letters: str) -> RunCard:
        """The inverse of `to_letters`, whoever wrote them. Raises LinkError."""
        record = _unpacked(letters)
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


def machine_kind(device: str, precision: str) -> str:
    """What decides the last digits of a loss: processor, number format, threads, torch."""
    version = ".".join(torch.__version__.split(".")[:2])
    if device == "cuda" and torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()[:40]} {precision}, torch {version}"
    if device == "cpu":
        processor = torch.backends.cpu.get_cpu_capability()
        threads = torch.get_num_threads()
        return f"cpu {processor} {precision}, {threads} thread{'s' if threads > 1 else ''}, torch {version}"
    return f"{device} {precision}, torch {version}"


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


# ---- was it repeated? ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """How a repeated run compares with its card."""

    kind: str
    """matched, differs, or open (nothing to compare yet)."""
    sentence: str


def verdict(card: RunCard, evaluations: Mapping[str, Sequence[float]], machine: str, *, over: bool) -> Verdict:
    """Compare the evaluations of a run of the same text and settings with the losses of a card, to four decimals.

    Args:
        evaluations: columns of `training.History.evaluations`.
        machine: the kind of machine it runs on.
        over: whether no more evaluations will come.
    """
    found = {
        int(step): (train, val)
        for step, train, val in zip(evaluations["step"], evaluations["train_loss"], evaluations["val_loss"])
    }
    common = [row for row in card.losses if row[0] in found]
    if not common:
        why = "This run was evaluated at none of the link's steps" if over else "The first loss comes in a moment"
        return Verdict("open", f"{why}, so there is nothing to compare." if over else f"{why}.")
    gaps = [
        (step, name, got, expected)
        for step, *pair in common
        for name, expected, got in zip(("training", "validation"), pair, found[step])
        if f"{got:.4f}" != f"{expected:.4f}"
    ]
    n = len(common)
    if not gaps:
        step, _, val = common[-1]
        losses = f"the training and validation losses at {n} evaluation{'s' if n > 1 else ''}"
        end = f"the last at step {step:,}: validation loss {val:.4f}"
        if n == len(card.losses):
            return Verdict("matched", f"Matched to 4 decimals: {losses} are the link's, {end}.")
        missing = "this run ended before the others" if over else "it goes on"
        return Verdict(
            "matched" if over else "open", f"Matched to 4 decimals so far: {losses} are the link's, {end}; {missing}."
        )
    step, name, got, expected = gaps[-1]
    first = min(gap[0] for gap in gaps)
    words = f"Not the same: the {name} loss at step {step:,} is {got:.4f}, the link says {expected:.4f} "
    words += f"({abs(got - expected):.4f} {'more' if got > expected else 'less'})."
    words += f" The first difference is at step {first:,}." if first != step else ""
    if not card.machine:
        words += " The link does not say on what kind of machine its losses were made."
    elif card.machine != machine:
        words += (
            f" The link's losses were made on another kind of machine ({card.machine}; this one: {machine}), "
            "which rounds differently."
        )
    else:
        what = "the program has" if card.text_hash else "the text or the program has"
        words += f" Both were made on the same kind of machine ({machine}), so {what} changed since."
    return Verdict("differs", words)


# ---- views of a tab --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """Where to look: a tab, and what should stand in its controls. None leaves a control as it is."""

    tab: str
    model: str | None = None
    """A shipped model's name."""
    prompt: str | None = None
    layer: int | None = None
    """From 0."""
    head: int | None = None
    """From 0."""
    cell: tuple[int, int] | None = None
    """(query, key) of a map, from 0."""
    view: str | None = None
    """One of the views that the tab has."""

    def to_query(self) -> dict[str, str]:
        """The words of the URL's query."""
        words = {"tab": self.tab, "model": self.model, "prompt": self.prompt, "layer": self.layer, "head": self.head}
        words["view"] = self.view
        words["cell"] = None if self.cell is None else f"{self.cell[0]},{self.cell[1]}"
        return {name: str(value) for name, value in words.items() if value is not None}

    @classmethod
    def from_query(cls, query: Mapping[str, str], tabs: Sequence[str]) -> View:
        """From the words of a query, whoever wrote it. `tabs` are those there are. Raises LinkError."""
        tab = str(query.get("tab", ""))
        if tab not in tabs:
            raise LinkError(f"there is no tab called “{_cut(tab)}” here; there are {', '.join(tabs)}")
        model = query.get("model") or None
        if model is not None and not re.fullmatch(r"[\w.-]{1,80}", model):
            raise LinkError("its model has no name that a model could have")
        view = query.get("view") or None
        if view is not None and not re.fullmatch(r"[a-z_-]{1,30}", view):
            raise LinkError("its view has no name that a view could have")
        prompt = query.get("prompt")
        if prompt is not None and len(prompt) > MAX_LETTERS:
            raise LinkError(f"its prompt has {len(prompt):,} characters; a link holds at most {MAX_LETTERS:,}")
        cell = query.get("cell") or None
        if cell is not None and len(cell.split(",")) != 2:
            raise LinkError("its cell should be two numbers, like 7,3")
        numbers = [_number("cell", part) for part in cell.split(",")] if cell else None
        return cls(
            tab,
            model,
            prompt,
            _number("layer", query["layer"]) if query.get("layer") else None,
            _number("head", query["head"]) if query.get("head") else None,
            (numbers[0], numbers[1]) if numbers else None,
            view,
        )


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", text):
        raise LinkError(f"its {name} should be a whole number, not “{_cut(text)}”")
    return int(text)


# ---- letters ---------------------------------------------------------------------------------------------------------


def _pack(data: bytes) -> str:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=_WORDS)
    packed = packer.compress(data) + packer.flush()
    return base64.urlsafe_b64encode(packed + zlib.crc32(data).to_bytes(4, "big")).decode().rstrip("=")


def _unpacked(letters: str) -> dict[str, Any]:
    """The record inside, its size bounded before and while it is inflated."""
    if not isinstance(letters, str) or len(letters) > MAX_LETTERS:
        raise LinkError(f"it is longer than the {MAX_LETTERS:,} letters that a link may have")
    broken = LinkError("a part of it was lost or changed on the way: ask for it again, and copy all of it")
    if not re.fullmatch(r"[A-Za-z0-9_-]{8,}", letters):
        raise broken
    if letters[0] != VERSION:
        raise LinkError("it was made by another version of this page, or damaged on the way")
    try:
        data = base64.urlsafe_b64decode(letters[1:] + "=" * (-len(letters[1:]) % 4))
        unpacker = zlib.decompressobj(-15, zdict=_WORDS)
        text = unpacker.decompress(data[:-4], MAX_JSON)
    except (binascii.Error, zlib.error, ValueError) as problem:
        raise broken from problem
    if not unpacker.eof or unpacker.unused_data or zlib.crc32(text).to_bytes(4, "big") != data[-4:]:
        raise broken
    try:
        record = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        raise LinkError("what it holds is not a run") from problem
    if not isinstance(record, dict):
        raise LinkError("what it holds is not a run")
    return record


def _from_record(record: dict[str, Any]) -> RunCard:
    known = {"base", "text", "print", "tokenizer", "vocab_size", "hash", "model", "training", "losses", "machine"}
    if set(record) - known or not isinstance(record["base"], str) or record["base"] not in PRESETS:
        raise LinkError("it was made by another version of this page")
    changed, trained = record.get("model", {}), record.get("training", {})
    if set(trained) - set(LINKED) or "vocab_size" in changed:
        raise LinkError("it sets what a link may not set")
    model = PRESETS[record["base"]].config.replace(**changed)
    training = _linked_only(recipe_for(record["base"])).replace(**trained)
    if not isinstance(training.sample_prompt, str) or len(training.sample_prompt) > MAX_PROMPT:
        raise LinkError("its prompt is no text of a sane length")
    if record["print"] != _fingerprint(model, training):
        raise LinkError(f"the settings of {PRESETS[record['base']].title} have changed since it was made")
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
        machine=record.get("machine", "")[:100],
    )


def _changes(card: RunCard, base: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of model and training in which the card differs from a preset."""
    model = {n: mine for n, (mine, _) in card.model.differences(PRESETS[base].config).items() if n != "vocab_size"}
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


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _cut(text: Any) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in str(text)[:40])
    return shown + ("…" if len(str(text)) > 40 else "")
