"""Headers: what a safetensors file says it holds, checked in every respect before a byte of it is read.

The format is eight bytes with the header's length, the header as JSON, and the numbers, one tensor after the other
without a gap: https://huggingface.co/docs/safetensors.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from .errors import CheckpointError
from .values import parse_json

MAX_HEADER_BYTES = 4_000_000
MAX_VALUES = 250_000
LOADABLE = ("F32", "F16", "BF16")
_BYTES = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "I32": 4, "U32": 4, "I64": 8, "U64": 8, "F64": 8} | {
    "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """One tensor of a file."""

    dtype: str
    """As safetensors calls it."""
    shape: tuple[int, ...]


def read_header(path: Path) -> dict[str, Stored]:
    """Name → what is stored under it. Raises CheckpointError for a file that is not as its header says."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = file.read(8)
        if len(start) < 8:
            raise CheckpointError(f"{path.name} is damaged: it is too short to be a safetensors file")
        (length,) = struct.unpack("<Q", start)
        if length > MAX_HEADER_BYTES or length > size - 8:
            raise CheckpointError(f"{path.name} is damaged: its header claims {length:,} bytes")
        header = parse_json(file.read(length), f"the header of {path.name}", MAX_VALUES)
    if not isinstance(header, dict):
        raise CheckpointError(f"{path.name} is damaged: its header is not a table of tensors")
    notes = header.pop("__metadata__", {})
    if not isinstance(notes, dict) or not all(isinstance(note, str) for note in notes.values()):
        raise CheckpointError(f"{path.name} is damaged: its header's notes are not texts")
    stored, ranges = {}, []
    for name, entry in header.items():
        stored[name], place = _entry(entry, name, path.name)
        ranges.append((*place, name))
    end = 0
    for start, stop, name in sorted(ranges):
        if start != end:
            raise CheckpointError(f"{path.name} is damaged: the bytes of {_cut(name)} are not where its header says")
        end = stop
    if end != size - 8 - length:
        raise CheckpointError(f"{path.name} is damaged: it has another size than its header says")
    return stored


def check_belongs(header: dict[str, Stored], expected: dict[str, tuple[int, ...]], file: str) -> None:
    """Raise CheckpointError unless a header holds just these tensors, as numbers that can be loaded."""
    missing, extra = sorted(expected.keys() - header.keys()), sorted(header.keys() - expected.keys())
    if missing or extra:
        what = f"lacks {missing[0]}" if missing else f"holds {_cut(extra[0])}, which the config does not know"
        more = len(missing) + len(extra) - 1
        raise CheckpointError(
            f"weights and config do not belong together: {file} {what}" + (f" (and {more} more)" if more else "")
        )
    for name, shape in expected.items():
        if header[name].shape != shape:
            raise CheckpointError(
                f"weights and config do not belong together: {name} is {header[name].shape}, the config needs {shape}"
            )
        if header[name].dtype not in LOADABLE:
            raise CheckpointError(
                f"{name} is stored as {header[name].dtype}; only float32, float16 and bfloat16 can be loaded"
            )


def read_tensors(path: Path, names: Iterable[str]) -> dict[str, torch.Tensor]:
    """These tensors of a file whose header was found in order, as float32. Raises CheckpointError for NaN and inf."""
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            tensors = {name: file.get_tensor(name).float() for name in names}
    except SafetensorError as problem:
        raise CheckpointError(f"{path.name} is damaged: {problem}") from problem
    broken = next((name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()), None)
    if broken is not None:
        raise CheckpointError(f"{path.name} holds values that are not numbers, in {broken}: its run had gone wrong")
    return tensors


def _entry(entry: Any, name: str, file: str) -> tuple[Stored, tuple[int, int]]:
    """What is stored, and where it begins and ends."""
    damaged = CheckpointError(f"{file} is damaged: its header does not say what {_cut(name)} is")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise damaged
    dtype, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or not _are_whole(shape) or len(shape) > 8 or not _are_whole(place):
        raise damaged
    if dtype not in _BYTES:
        raise CheckpointError(
            f"{_cut(name)} is stored as {_cut(dtype)}; only float32, float16 and bfloat16 can be loaded"
        )
    if len(place) != 2 or place[1] - place[0] != math.prod(shape) * _BYTES[dtype]:
        raise CheckpointError(f"{file} is damaged: the bytes of {_cut(name)} are not where its header says")
    return Stored(dtype, tuple(shape)), (place[0], place[1])


def _are_whole(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(number) is int and number >= 0 for number in numbers)


def _cut(name: str) -> str:
    return name if len(name) <= 100 else name[:100] + "…"
