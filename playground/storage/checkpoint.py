"""Checkpoints: a folder of JSON and safetensors from which a model rebuilds alone. Nothing is ever unpickled.

config.json         the ModelConfig, and a format number
tokenizer.json      the tokenizer
model.safetensors   the weights
history.json        the run's curves and samples, its ladder, and how it was made
README.md           a model card
snapshots.safetensors  perhaps: the weights at many moments of the run, see snapshots.py
"""

from __future__ import annotations

import json
import math
import os
import shutil
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ..data.tokenizers import Tokenizer, tokenizer_from_dict
from ..model import ModelConfig, Transformer
from ..training.history import History
from .card import model_card

if TYPE_CHECKING:
    from .snapshots import Snapshots

FORMAT = 1
MAX_PARAMETERS = 1_000_000_000
MAX_JSON_BYTES = 64_000_000
MAX_HEADER_BYTES = 10_000_000
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
_DTYPES = {"F32": 4, "F16": 2, "BF16": 2}


class CheckpointError(ValueError):
    """What is wrong with a checkpoint, in a sentence meant to be shown."""


@dataclass(frozen=True)
class Checkpoint:
    """A model with all that belongs to it."""

    model: Transformer
    tokenizer: Tokenizer
    history: History
    name: str = "model"
    """What to call it."""
    about: dict[str, Any] = field(default_factory=dict)
    """How it was made: corpus, ladder, training settings, prompt. Plain values, any of them may be missing."""
    snapshots: Snapshots | None = None
    """The weights at many moments of the run, where they were kept."""

    @property
    def config(self) -> ModelConfig:
        """The model's config."""
        return self.model.config


def save(
    folder: str | Path,
    model: Transformer,
    tokenizer: Tokenizer,
    history: History | None = None,
    *,
    name: str | None = None,
    about: dict[str, Any] | None = None,
    half: bool = False,
) -> Path:
    """Write a checkpoint folder in one move: an interrupted save leaves the old folder or none, never half of one.

    `half` stores weights as float16, which loses about three decimal digits; they are loaded as float32 again. Files
    that the folder held besides are kept.
    """
    folder = Path(folder)
    checkpoint = Checkpoint(model, tokenizer, history or History(), name or folder.name, about or {})
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        dtype = torch.float16 if half else torch.float32
        tied = {"head.weight"} if model.config.tie_embeddings else set()
        tensors = {n: t.detach().to("cpu", dtype).contiguous() for n, t in model.state_dict().items() if n not in tied}
        save_file(tensors, made / "model.safetensors", metadata={"format": "pt"})
        write_json(made / "config.json", {"format": FORMAT, **model.config.to_dict()})
        write_json(made / "tokenizer.json", tokenizer.to_dict())
        record = {"name": checkpoint.name, "about": checkpoint.about, **checkpoint.history.thinned().to_dict()}
        write_json(made / "history.json", _rounded(record))
        (made / "README.md").write_text(model_card(checkpoint), encoding="utf-8")
        if folder.exists():
            for file in made.iterdir():
                os.replace(file, folder / file.name)
        else:
            made.chmod(0o755)
            made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def load(
    folder: str | Path,
    *,
    max_parameters: int = MAX_PARAMETERS,
    check: Callable[[ModelConfig], None] = lambda config: None,
) -> Checkpoint:
    """Read a checkpoint folder, checking everything before memory is allocated for it. Raises CheckpointError.

    `check` may raise a ValueError of its own for a config that is too much for this place.
    """
    from .snapshots import find_snapshots  # which needs this module

    folder = Path(folder)
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is not a folder: name the folder of a checkpoint")
    for required in ("config.json", "tokenizer.json", "model.safetensors"):
        if not (folder / required).is_file():
            refuse_pickles(folder)
            raise CheckpointError(f"{folder} is not a checkpoint: it has no {required}")
    config = _config(folder)
    check(config)
    if config.n_parameters > max_parameters:
        raise CheckpointError(
            f"the model has {config.n_parameters:,} parameters; at most {max_parameters:,} can be loaded here"
        )
    try:
        tokenizer = tokenizer_from_dict(read_json(folder / "tokenizer.json"))
    except ValueError as problem:
        raise CheckpointError(f"tokenizer.json cannot be used: {problem}") from problem
    if tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(
            f"the tokenizer has {tokenizer.vocab_size} tokens but the model only {config.vocab_size}: "
            "they do not belong together"
        )
    model = load_weights(folder / "model.safetensors", config)
    record = read_json(folder / "history.json") if (folder / "history.json").is_file() else {}
    try:
        history = History.from_dict(record)
    except (ValueError, AttributeError, TypeError) as problem:
        raise CheckpointError(f"history.json cannot be used: {problem}") from problem
    about = record.get("about")
    return Checkpoint(
        model,
        tokenizer,
        history,
        str(record.get("name") or folder.name),
        about if isinstance(about, dict) else {},
        find_snapshots(folder, config),
    )


def load_weights(path: Path, config: ModelConfig) -> Transformer:
    """A model of this config with the weights of a safetensors file, whose header must fit the config exactly."""
    expected = expected_shapes(config)
    _check_header(path, expected)
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            tensors = {name: file.get_tensor(name).float() for name in expected}
    except SafetensorError as problem:
        raise CheckpointError(f"{path.name} is damaged: {problem}") from problem
    broken = next((name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()), None)
    if broken is not None:
        raise CheckpointError(f"{path.name} holds values that are not numbers, in {broken}: its run had gone wrong")
    if config.tie_embeddings:
        tensors["head.weight"] = tensors["embedding.weight"]
    model = Transformer(config)
    model.load_state_dict(tensors)
    return model


def expected_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Name → shape of every tensor that a checkpoint of this config holds, without allocating any."""
    with torch.device("meta"):
        state = Transformer(config).state_dict()
    return {n: tuple(t.shape) for n, t in state.items() if not (config.tie_embeddings and n == "head.weight")}


def _check_header(path: Path, expected: dict[str, tuple[int, ...]]) -> None:
    """Compare a safetensors header with what the config calls for, reading nothing but the header."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = file.read(8)
        if len(start) < 8:
            raise CheckpointError(f"{path.name} is damaged: it is too short to be a safetensors file")
        (length,) = struct.unpack("<Q", start)
        if length > MAX_HEADER_BYTES or length > size - 8:
            raise CheckpointError(f"{path.name} is damaged: its header claims {length:,} bytes")
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError) as problem:
            raise CheckpointError(f"{path.name} is damaged: its header is not JSON") from problem
    if not isinstance(header, dict):
        raise CheckpointError(f"{path.name} is damaged: its header is not a table of tensors")
    header.pop("__metadata__", None)
    missing, extra = sorted(expected.keys() - header.keys()), sorted(header.keys() - expected.keys())
    if missing or extra:
        what = f"lacks {missing[0]}" if missing else f"holds {extra[0]}, which the config does not know"
        more = len(missing) + len(extra) - 1
        raise CheckpointError(
            f"weights and config do not belong together: {path.name} {what}" + (f" (and {more} more)" if more else "")
        )
    for name, shape in expected.items():
        entry = header[name]
        given = tuple(entry.get("shape", ())) if isinstance(entry, dict) else None
        if given != shape:
            raise CheckpointError(
                f"weights and config do not belong together: {name} is {given}, the config needs {shape}"
            )
        dtype, offsets = entry.get("dtype"), entry.get("data_offsets")
        if dtype not in _DTYPES:
            raise CheckpointError(f"{name} is stored as {dtype}; only float32, float16 and bfloat16 can be loaded")
        n_bytes = math.prod(shape) * _DTYPES[dtype]
        if not _lies_within(offsets, n_bytes, size - 8 - length):
            raise CheckpointError(f"{path.name} is damaged: the bytes of {name} are not where its header says")


def _lies_within(offsets: Any, n_bytes: int, room: int) -> bool:
    """Whether [start, end] is a range of just these many bytes inside the file's data."""
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(isinstance(o, int) for o in offsets):
        return False
    start, end = offsets
    return end - start == n_bytes and 0 <= start <= end <= room


def _config(folder: Path) -> ModelConfig:
    values = read_json(folder / "config.json")
    if not isinstance(values, dict):
        raise CheckpointError("config.json is not a table of settings")
    if values.pop("format", None) != FORMAT:
        raise CheckpointError("config.json is not of this playground's format: export or import it first")
    try:
        return ModelConfig.from_dict(values)
    except ValueError as problem:
        raise CheckpointError(f"config.json cannot be used: {problem}") from problem


def refuse_pickles(folder: Path) -> None:
    """Raise CheckpointError that names a pickle, where a folder holds one."""
    pickled = next((p.name for p in sorted(folder.iterdir()) if p.suffix.lower() in PICKLES), None)
    if pickled:
        raise CheckpointError(
            f"{pickled} is a pickle, which can run code when opened, so it is never loaded here: "
            "save the weights as safetensors instead"
        )


def read_json(path: Path) -> Any:
    """The values of a JSON file of a sane size. Raises CheckpointError where there are none."""
    if path.stat().st_size > MAX_JSON_BYTES:
        raise CheckpointError(f"{path.name} is too large to be what it says")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:
        raise CheckpointError(f"{path.name} is damaged: it is not JSON") from problem


def write_json(path: Path, values: Any) -> None:
    """Write values as compact JSON."""
    path.write_text(json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def _rounded(value: Any) -> Any:
    """Six significant digits are plenty for curves, and make the files half as large."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(v) for v in value]
    return value
