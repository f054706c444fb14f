"""Tensors in safetensors files: which ones a config needs, which ones a file claims to hold, and reading them.

A header's size is bounded, and it is checked before any numbers are read: https://huggingface.co/docs/safetensors.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from ..model import ModelConfig, Transformer
from .errors import CheckpointError
from .json_files import parse_json

MAX_HEADER_BYTES = 4_000_000
MAX_VALUES = 250_000
LOADABLE = ("F32", "F16", "BF16")

Shapes = dict[str, tuple[int, ...]]
State = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Stored:
    """One tensor of a file."""

    dtype: str
    """The name that safetensors uses."""
    shape: tuple[int, ...]


def expected_shapes(config: ModelConfig) -> Shapes:
    """Name → shape of every tensor in a checkpoint with this config, except a tied head and position tables.

    One block of each kind is built, without allocating memory; the others have the same shapes.
    """
    dense = _shapes_of_one_block(config.replace(n_experts=0))
    mixture = _shapes_of_one_block(config) if config.n_experts else {}
    shapes = {name: shape for name, shape in dense.items() if not name.startswith("blocks.")}
    if config.positions == "learned":
        shapes["position_embedding.weight"] = (config.context_length, config.d_model)
    if config.tie_embeddings:
        del shapes["head.weight"]
    for layer in range(config.n_layers):
        block = mixture if config.has_experts(layer) else dense
        shapes |= {n.replace("blocks.0.", f"blocks.{layer}."): s for n, s in block.items() if n.startswith("blocks.")}
    return shapes


def _shapes_of_one_block(config: ModelConfig) -> Shapes:
    with torch.device("meta"):
        state = Transformer(config.replace(n_layers=1, moe_every=1, context_length=1)).state_dict()
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


def read_header(path: Path) -> dict[str, Stored]:
    """Name → what is stored under it. Raises CheckpointError for a file that does not match its header.

    The header's length, JSON and keys are checked here; safetensors itself checks types, shapes and offsets.
    """
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
    for name, entry in header.items():
        known = isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "data_offsets"}
        if name != "__metadata__" and not known:
            raise CheckpointError(f"{path.name} is damaged: its header does not say what {_cut(name)} is")
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (the file is no mapping)
            return {name: Stored(part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()}
    except SafetensorError as problem:
        raise CheckpointError(f"{path.name} is damaged: {_cut(str(problem))}") from problem


def check_belongs(header: dict[str, Stored], expected: Shapes, file: str) -> None:
    """Raise CheckpointError unless a header lists exactly these tensors, in number types that can be loaded."""
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


def read_tensors(path: Path, names: Iterable[str]) -> State:
    """Read these tensors as float32 from a file whose header was checked. Raises CheckpointError for NaN and inf."""
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            tensors = {name: file.get_tensor(name).float() for name in names}
    except SafetensorError as problem:
        raise CheckpointError(f"{path.name} is damaged: {problem}") from problem
    broken = next((name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()), None)
    if broken is not None:
        raise CheckpointError(f"{path.name} holds values that are not numbers, in {broken}: its run had gone wrong")
    return tensors


def _cut(name: str) -> str:
    return name if len(name) <= 100 else name[:100] + "…"
