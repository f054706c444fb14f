"""From Hugging Face Transformers: turn a folder that it saved, of one of the families, into a model of ours."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from ..model import ModelConfig
from ..training.history import History
from .bounds import Check, check_bounds, roomy
from .checkpoint import Checkpoint, check_fits, with_weights
from .errors import CheckpointError, check_folder_is_there, refuse_pickles
from .json_files import read_json
from .tensors import Shapes, State, Stored, check_belongs, expected_shapes, read_header, read_tensors
from .tokenizers_io import tokenizer_from_files
from .transformers_families import FAMILIES, Family
from .transformers_tensors import short_name

WEIGHTS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors")
"""Transformers' file names for a model's weights, in one file or in several."""


def import_folder(folder: str | Path, *, check: Check = check_bounds) -> Checkpoint:
    """Read a model of one of the FAMILIES that Transformers saved as safetensors, in one file or in several.

    Raises CheckpointError, or what `check` raises for a config that is too large for the caller.
    """
    folder = Path(folder)
    check_folder_is_there(folder, "a model that Transformers has saved")
    family, config = config_of(folder)
    check(config)
    check_bounds(config)
    if (folder / "adapter_config.json").is_file():
        raise CheckpointError(f"{folder} holds an adapter of another model: merge the two before saving")
    weights = _weights_in(folder)
    check_belongs(_stored(weights, config), _their_shapes(family, config), "the folder")
    tokenizer = tokenizer_from_files(folder)
    check_fits(tokenizer, config)
    state = family.state_in(_tensors(weights, _their_shapes(family, config)), config)
    return Checkpoint(with_weights(config, state), tokenizer, History(), folder.name, {"imported_from": family.name})


def config_of(folder: Path) -> tuple[Family, ModelConfig]:
    """The family named in a folder's config.json, and the config as ours. Raises CheckpointError if there is none."""
    if not (folder / "config.json").is_file():
        raise CheckpointError(f"{folder} is not a model: it has no config.json")
    values = read_json(folder / "config.json")
    family = next((f for f in FAMILIES if isinstance(values, dict) and values.get("model_type") == f.name), None)
    if family is None:
        kind = values.get("model_type") if isinstance(values, dict) else None
        names = ", ".join(f.title for f in FAMILIES)
        if kind is None:
            ours = isinstance(values, dict) and "n_layers" in values
            what = "it is a checkpoint of this project already" if ours else "its config.json names no model_type"
            raise CheckpointError(f"{folder} was not saved by Transformers: {what}")
        raise CheckpointError(f"models of type {kind!r} cannot be opened here; known are {names}")
    try:
        config = roomy(family.config_in(values))
    except KeyError as problem:
        raise CheckpointError(f"config.json lacks {problem.args[0]}: it describes no model") from problem
    except (TypeError, ValueError, ArithmeticError, AttributeError) as problem:
        raise CheckpointError(f"config.json describes a model that cannot be built here: {problem}") from problem
    return family, config


Weights = dict[str, tuple[Path, str, Stored]]
"""Name without prefix → file, full name, and what is stored there."""


def _weights_in(folder: Path) -> Weights:
    """What the weight files' headers say. Raises CheckpointError if there are none, or if two share a tensor."""
    files = sorted(path for path in folder.glob("*.safetensors") if WEIGHTS.fullmatch(path.name))
    if not files:
        refuse_pickles(folder)
        raise CheckpointError(f"{folder} has no safetensors weights")
    weights: Weights = {}
    for path in files:
        for name, stored in read_header(path).items():
            short = short_name(name)
            if short in weights:
                raise CheckpointError(f"the weights hold {short[:100]} twice: they are not of one model")
            weights[short] = (path, name, stored)
    return weights


def _their_shapes(family: Family, config: ModelConfig) -> Shapes:
    """Short name → shape of every tensor that the family stores for such a model."""
    ours = {name: torch.empty(shape, device="meta") for name, shape in expected_shapes(config).items()}
    return {short_name(name): tuple(tensor.shape) for name, tensor in family.state_out(ours, config).items()}


def _stored(weights: Weights, config: ModelConfig) -> dict[str, Stored]:
    """Leave out what Transformers does not read either: masks and tables from older versions, a tied head."""
    spare = re.compile(
        r"h\.\d+\.attn\.(masked_)?bias|layers\.\d+\.self_attn\.rotary_emb\.inv_freq|rotary_emb\.inv_freq"
        + (r"|lm_head\.weight" if config.tie_embeddings else "")
    )
    return {name: stored for name, (_, _, stored) in weights.items() if not spare.fullmatch(name)}


def _tensors(weights: Weights, names: Shapes) -> State:
    """Read these tensors, by their short names, as float32."""
    found: State = {}
    for path in sorted({weights[name][0] for name in names}):
        here = {weights[name][1]: name for name in names if weights[name][0] == path}
        found |= {here[full]: tensor for full, tensor in read_tensors(path, here).items()}
    return found
