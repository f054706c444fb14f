"""JSON files: read and write them, of sane size and depth.

The memory that a file would take as Python objects is bounded before parsing: by its bytes, and by the
characters that can begin a value.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from .errors import CheckpointError

MAX_BYTES = {"config.json": 100_000, "tokenizer.json": 16_000_000, "history.json": 16_000_000}
"""Most bytes of the files that have their own bound."""
_OTHERS = 1_000_000
MAX_VALUES = {"config.json": 20_000, "tokenizer.json": 650_000, "history.json": 400_000}
"""Roughly how many values each may hold: commas and opening brackets, those inside strings included."""
MAX_DEPTH = 40
_MAX_DIGITS = 18  # what fits 64 bits


def read_json(path: Path) -> Any:
    """The values in a JSON file. Raises CheckpointError if there are none, or far too many."""
    most = MAX_BYTES.get(path.name, _OTHERS)
    if path.stat().st_size > most:
        raise CheckpointError(f"{path.name} has more than {most / 1e6:g} MB, which is too large to be what it says")
    return parse_json(path.read_bytes(), path.name, MAX_VALUES.get(path.name, _OTHERS // 50))


def parse_json(data: bytes, name: str, most: int) -> Any:
    """The values in JSON text. Raises CheckpointError, also for more than `most` values."""
    if count_values(data) > most:
        raise CheckpointError(f"{name} holds far more values than such a file has")
    try:
        values = json.loads(data, parse_int=_whole, object_pairs_hook=_unique)
    except _Odd as problem:
        raise CheckpointError(f"{name} cannot be used: {problem}") from problem
    except (ValueError, RecursionError) as problem:
        raise CheckpointError(f"{name} is damaged: it is not JSON") from problem
    if _depth(values) > MAX_DEPTH:
        raise CheckpointError(f"{name} cannot be used: its values lie within one another too deeply")
    return values


def count_values(data: bytes) -> int:
    """An upper bound on how many values JSON text holds."""
    return sum(map(data.count, (b",", b"[", b"{")))


def as_json(values: Any) -> bytes:
    """Values as compact JSON text."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def write_json(path: Path, values: Any) -> None:
    """Write values as compact JSON."""
    path.write_bytes(as_json(values))


def finite(value: Any, digits: int | None = None) -> Any:
    """The values with null for every NaN or infinity, and perhaps rounded to this many significant digits."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return value if digits is None else float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {k: finite(v, digits) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(v, digits) for v in value]
    return value


class _Odd(ValueError):
    """Valid JSON, but nothing that anybody would write in earnest."""


def _whole(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise _Odd(f"{digits[:20]}… is no sensible number")
    return int(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise _Odd(f"it names {twice[:60]!r} twice")
    return table


def _depth(values: Any) -> int:
    """How deeply tables and lists are nested."""
    deepest, level = 0, [values]
    while level := [part for part in level if isinstance(part, (dict, list))]:
        deepest += 1
        if deepest > MAX_DEPTH:
            break
        level = [part for outer in level for part in (outer.values() if isinstance(outer, dict) else outer)]
    return deepest
