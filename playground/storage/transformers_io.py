"""To and from Hugging Face Transformers: folders that its Auto classes open with no custom code, and the way back.

Reading and writing needs only safetensors and JSON. The proof that Transformers computes the same needs Transformers
itself, which is not among the app's requirements: it would double the time the app takes to start for the one moment
in which a visitor exports. Where it is installed the proof is done and written into the model card; where it is not,
the folder is read back by our own importer and the card says so.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ..decoding import SamplingConfig, generate
from ..model import ModelConfig, Transformer
from ..model.attention import fuse_heads
from ..training.history import History
from .card import model_card
from .checkpoint import MAX_PARAMETERS, Checkpoint, CheckpointError, read_json, refuse_pickles, write_json
from .tokenizers_io import tokenizer_files, tokenizer_from_files
from .transformers_families import FAMILIES, Family, State

TOLERANCE = 1e-3  # logits of healthy weights differ by far less; a swapped matrix by far more


@dataclass(frozen=True)
class Parity:
    """How closely an exported folder, read back, agrees with the model it was made from."""

    reader: str
    """Who read it back: "Transformers 5.0.0", or "our own importer"."""
    largest_difference: float
    """Of any logit, on random tokens."""
    same_text: bool
    """Whether both continue a prompt greedily alike."""
    tokens: int
    """How many positions were compared."""

    def __str__(self) -> str:
        text = "the same greedy text" if self.same_text else "another greedy text"
        return (
            f"read back by {self.reader}: largest difference of any logit {self.largest_difference:.1e} "
            f"over {self.tokens:,} positions, {text}"
        )


def family_for(config: ModelConfig) -> Family:
    """The family a config belongs to. Raises CheckpointError that names every setting in the way of the nearest one."""
    # among equally near ones the later, which has more of what a model may have
    nearest = min(reversed(FAMILIES), key=lambda family: len(family.obstacles(config)))
    in_the_way = nearest.obstacles(config)
    if in_the_way:
        raise CheckpointError(
            f"this model has no home in Transformers; nearest is {nearest.title}, but for {', '.join(in_the_way)}"
        )
    return nearest


def export(checkpoint: Checkpoint, folder: str | Path, *, prompt: str | None = None) -> Parity:
    """Write a folder that AutoModelForCausalLM and AutoTokenizer open; read it back, compare, and say so in its card.

    Raises CheckpointError where the config or the tokenizer has no counterpart, where the folder already holds
    something, and where what was written does not compute the same (nothing is left behind then).
    """
    config, folder = checkpoint.config, Path(folder)
    family = family_for(config)
    files = tokenizer_files(checkpoint.tokenizer)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CheckpointError(f"{folder} is not empty: name a new folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        state = {name: tensor.detach().cpu().float() for name, tensor in checkpoint.model.state_dict().items()}
        if config.attention_layout == "separate_heads":
            state = fuse_heads(state, config)
        tensors = {name: tensor.contiguous() for name, tensor in family.state_out(state, config).items()}
        save_file(tensors, made / "model.safetensors", metadata={"format": "pt"})
        write_json(made / "config.json", {"dtype": "float32", **family.config_out(config)})
        write_json(made / "generation_config.json", {"do_sample": True})
        for name, values in files.items():
            write_json(made / name, values)
        parity = compare(checkpoint, made, prompt=prompt)
        if parity.largest_difference > TOLERANCE:
            raise CheckpointError(f"the exported model does not compute the same ({parity}): nothing was written")
        (made / "README.md").write_text(_card(checkpoint, parity), encoding="utf-8")
        made.chmod(0o755)
        made.replace(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return parity


def compare(checkpoint: Checkpoint, folder: str | Path, *, prompt: str | None = None, new_tokens: int = 32) -> Parity:
    """Open an exported folder, with Transformers if it is installed, and compare logits and greedy text."""
    config, model = checkpoint.config, checkpoint.model
    ids = torch.randint(
        0, config.vocab_size, (2, min(config.context_length, 64)), generator=torch.Generator().manual_seed(0)
    )
    begun = checkpoint.tokenizer.encode(prompt or checkpoint.about.get("prompt") or "The")[: config.context_length // 2]
    begun = begun or [0]
    room = max(min(new_tokens, config.context_length - len(begun)), 1)
    greedy = SamplingConfig(greedy=True)
    ours = [step.tokens[0] for step in generate(model, begun, room, greedy)]
    if importlib.util.find_spec("transformers"):
        import transformers

        with _no_bars(transformers.utils.logging):
            theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True).eval()
        with torch.inference_mode():
            logits = theirs(ids).logits
            prefix = torch.tensor([begun])
            written = theirs.generate(
                prefix, attention_mask=torch.ones_like(prefix), max_new_tokens=room, do_sample=False, pad_token_id=0
            )[0, len(begun) :].tolist()
        reader = f"Transformers {transformers.__version__}"
    else:
        again = import_folder(folder).model
        with torch.inference_mode():
            logits = again(ids).logits
        written = [step.tokens[0] for step in generate(again, begun, room, greedy)]
        reader = "our own importer (Transformers is not installed here)"
    with torch.inference_mode():
        difference = (logits - model(ids).logits).abs().max().item()
    return Parity(reader, difference, written == ours, ids.numel())


@contextlib.contextmanager
def _no_bars(logging: Any) -> Iterator[None]:
    """Keep Transformers from drawing progress bars into our log."""
    if not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()


def import_folder(
    folder: str | Path,
    *,
    max_parameters: int = MAX_PARAMETERS,
    check: Callable[[ModelConfig], None] = lambda config: None,
) -> Checkpoint:
    """Read a model of one of the FAMILIES that Transformers has saved as safetensors, in one file or in several.

    `check` may raise a ValueError of its own for a config that is too much for this place.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is not a folder: name the folder that Transformers has saved")
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
        config = family.config_in(values)
    except (KeyError, TypeError, ValueError) as problem:
        raise CheckpointError(f"config.json describes a model that cannot be built here: {problem}") from problem
    check(config)
    if config.n_parameters > max_parameters:
        raise CheckpointError(
            f"the model has {config.n_parameters:,} parameters; at most {max_parameters:,} can be opened here"
        )
    tokenizer = tokenizer_from_files(folder)
    if tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(
            f"the tokenizer has {tokenizer.vocab_size} tokens but the model only {config.vocab_size}: "
            "they do not belong together"
        )
    model = Transformer(config)
    try:
        model.load_state_dict(family.state_in(_tensors(folder), config))
    except KeyError as problem:
        raise CheckpointError(f"weights and config do not belong together: there is no {problem.args[0]}") from problem
    except (RuntimeError, ValueError, SafetensorError) as problem:
        if isinstance(problem, CheckpointError):
            raise
        raise CheckpointError(
            f"weights and config do not belong together: {str(problem).splitlines()[-1]}"
        ) from problem
    return Checkpoint(model, tokenizer, History(), folder.name, {"imported_from": family.name})


def _tensors(folder: Path) -> State:
    """All weights of a folder, fp32, the file's own name prefix taken off."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        refuse_pickles(folder)
        raise CheckpointError(f"{folder} has no safetensors weights")
    found: State = {}
    for path in files:
        with safe_open(path, framework="pt", device="cpu") as file:
            for name in file.keys():  # noqa: SIM118 (not a dict)
                tensor = file.get_tensor(name)
                if not torch.isfinite(tensor).all():
                    raise CheckpointError(f"{path.name} holds values that are not numbers, in {name}")
                found[name.removeprefix("transformer.").removeprefix("model.")] = tensor.float()
    return found


def _card(checkpoint: Checkpoint, parity: Parity) -> str:
    """The checkpoint's own card, with how Transformers opens it and the proof that it computes the same."""
    body = model_card(checkpoint).split("## How to use it")[0]
    body = body.replace("library_name: transformer-playground", "library_name: transformers")
    prompt = json.dumps(checkpoint.about.get("prompt") or "The", ensure_ascii=False)
    return f"""{body}## How to use it

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("PATH_OF_THIS_FOLDER")
tokenizer = AutoTokenizer.from_pretrained("PATH_OF_THIS_FOLDER")
tokens = tokenizer({prompt}, return_tensors="pt")
print(tokenizer.decode(model.generate(**tokens, max_new_tokens=100, do_sample=True)[0]))
```

## Does it compute the same?

After it was written, this folder was {parity}.
"""
