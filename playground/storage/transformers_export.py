"""To Hugging Face Transformers: folders that its Auto classes open without custom code, and a proof that they do.

Reading and writing needs only safetensors and JSON. The proof that Transformers computes the same needs Transformers
itself, which is not among the app's requirements: it would double the app's start-up time for the one moment in
which a visitor exports. If it is not installed, our own importer reads the folder back.
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import tokenizers
import torch
from safetensors.torch import save_file

from ..atomic_files import write_folder
from ..engine import SamplingConfig, generate
from ..model import Transformer
from ..model.head_layouts import fuse_heads
from ..training.history import History
from .checkpoint import Checkpoint
from .errors import CheckpointError
from .json_files import write_json
from .tokenizers_io import tokenizer_files
from .transformers_families import family_for
from .transformers_import import import_folder

TOLERANCE = 1e-3  # logits of healthy weights differ by far less; a swapped matrix by far more


@dataclass(frozen=True)
class Parity:
    """How closely an exported folder, read back, agrees with the model it was made from."""

    transformers: str | None
    """The version of Transformers that read it back; None if it is not installed and our own importer did so."""
    largest_difference: float
    """The largest difference in any logit, on random tokens."""
    same_text: bool
    """Whether both continue a prompt with the same greedy text, each with its own tokenizer."""
    tokens: int
    """How many positions were compared."""
    texts: int
    """How many texts were read and written by both tokenizers."""
    other_texts: int
    """How many of the texts came out differently."""


def export(
    checkpoint: Checkpoint,
    folder: str | Path,
    *,
    prompt: str | None = None,
    card: Callable[[Checkpoint, Parity], str] | None = None,
) -> Parity:
    """Write a folder that AutoModelForCausalLM and AutoTokenizer open; read it back and compare.

    `card` makes the README.md.

    Raises CheckpointError if the config or the tokenizer has no counterpart, if the folder is not empty, or if the
    written model does not compute the same (then it is removed).
    """
    config, folder = checkpoint.config, Path(folder)
    family = family_for(config)
    files = tokenizer_files(checkpoint.tokenizer)
    if folder.exists() and not folder.is_dir():
        raise CheckpointError(f"{folder} is a file: name a new folder")
    if folder.exists() and any(folder.iterdir()):
        raise CheckpointError(f"{folder} is not empty: name a new folder")

    def fill(made: Path) -> Parity:
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
            raise CheckpointError("the exported model does not compute the same: nothing was written")
        if card:
            (made / "README.md").write_text(card(checkpoint, parity), encoding="utf-8")
        return parity

    return write_folder(folder, fill)


def compare(checkpoint: Checkpoint, folder: str | Path, *, prompt: str | None = None, new_tokens: int = 32) -> Parity:
    """Open an exported folder, with Transformers if it is installed; compare logits, greedy text and the tokenizers.

    The prompt and its continuation go through the folder's own tokenizer there, and through ours here.
    """
    config, model, ours = checkpoint.config, checkpoint.model, checkpoint.tokenizer
    theirs = tokenizers.Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))  # which AutoTokenizer wraps
    encode = lambda text: theirs.encode(text, add_special_tokens=False).ids  # noqa: E731
    decode = lambda ids: theirs.decode(ids, skip_special_tokens=False)  # noqa: E731
    ids = torch.randint(
        0, config.vocab_size, (2, min(config.context_length, 64)), generator=torch.Generator().manual_seed(0)
    )
    prompt = prompt or checkpoint.about.get("prompt") or "The"
    begun, begun_there = ([*tokens(prompt)[: config.context_length // 2]] or [0] for tokens in (ours.encode, encode))
    room = max(min(new_tokens, config.context_length - max(len(begun), len(begun_there))), 1)
    version = None
    if importlib.util.find_spec("transformers"):
        import transformers

        transformers.utils.logging.disable_progress_bar()
        version = transformers.__version__
        again = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True).eval()
        prefix = torch.tensor([begun_there])
        with torch.inference_mode():
            written_there = again.generate(
                prefix, attention_mask=torch.ones_like(prefix), max_new_tokens=room, do_sample=False, pad_token_id=0
            )[0, len(begun_there) :].tolist()
    else:
        again = import_folder(folder).model
        written_there = _greedy(again, begun_there, room)
    with torch.inference_mode():
        difference = (again(ids).logits - model(ids).logits).abs().max().item()
    same_text = ours.decode(begun + _greedy(model, begun, room)) == decode(begun_there + written_there)
    texts = _texts(prompt, checkpoint.history)
    other = sum(encode(text) != (found := ours.encode(text)) or decode(found) != ours.decode(found) for text in texts)
    return Parity(version, difference, same_text, ids.numel(), len(texts), other)


def _greedy(model: Transformer, prompt: list[int], room: int) -> list[int]:
    return [step.tokens[0] for step in generate(model, prompt, room, SamplingConfig(greedy=True))]


def _texts(prompt: str, history: History, count: int = 200) -> list[str]:
    """Texts to try tokenizers on: the run's own, and random ones made of their characters and of odd ones."""
    own = [prompt, *(sample["text"] for sample in history.samples[-5:])]
    odd = "aé漢я1²①٣_'’.,;:!?()[]{}<>|\"-– \t\n\r\x1c\u00a0\u0301\u200d\ufffd😀"
    characters = "".join(own)[:500] + odd
    rng = random.Random(0)
    words = ["<unk>", "<|endoftext|>", "don't", "  ", "\n\n", "x."]
    return own + [
        "".join(
            rng.choice(words) if rng.random() < 0.1 else rng.choice(characters) for _ in range(rng.randrange(1, 30))
        )
        for _ in range(count - len(own))
    ]
