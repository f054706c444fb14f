"""To Hugging Face Transformers: folders that its Auto classes open with no custom code, and the proof of it.

Reading and writing needs only safetensors and JSON. The proof that Transformers computes the same needs Transformers
itself, which is not among the app's requirements: it would double the time the app takes to start for the one moment
in which a visitor exports. Where it is installed the proof is done and written into the model card; where it is not,
the folder is read back by our own importer and the card says so.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers
import torch
from safetensors.torch import save_file

from ..data.tokenizers import Tokenizer
from ..decoding import SamplingConfig, generate
from ..model import ModelConfig
from ..model.head_layouts import fuse_heads
from ..training.history import History
from ..whole import write_folder
from .card import model_card
from .errors import CheckpointError
from .held import Checkpoint
from .tokenizers_io import tokenizer_files
from .transformers_families import FAMILIES, Family
from .transformers_import import import_folder
from .values import write_json

TOLERANCE = 1e-3  # logits of healthy weights differ by far less; a swapped matrix by far more


@dataclass(frozen=True)
class Parity:
    """How closely an exported folder, read back, agrees with the model it was made from."""

    reader: str
    """Who read it back: "Transformers 5.0.0", or "our own importer"."""
    largest_difference: float
    """Of any logit, on random tokens."""
    same_text: bool
    """Whether both continue a prompt greedily alike, each reading and writing it with its own tokenizer."""
    tokens: int
    """How many positions were compared."""
    texts: int
    """How many texts were read and written by both tokenizers."""
    other_texts: int
    """How many of them came out otherwise."""

    def __str__(self) -> str:
        greedy = "the same greedy text" if self.same_text else "another greedy text"
        alike = (
            f"all of {self.texts:,} texts"
            if not self.other_texts
            else f"not {self.other_texts} of {self.texts:,} texts"
        )
        return (
            f"read back by {self.reader}: largest difference of any logit {self.largest_difference:.1e} "
            f"over {self.tokens:,} positions, {greedy}; its tokenizer reads and writes {alike} as the model's own"
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
            raise CheckpointError(f"the exported model does not compute the same ({parity}): nothing was written")
        (made / "README.md").write_text(_card(checkpoint, parity), encoding="utf-8")
        return parity

    return write_folder(folder, fill)


def compare(checkpoint: Checkpoint, folder: str | Path, *, prompt: str | None = None, new_tokens: int = 32) -> Parity:
    """Open an exported folder, with Transformers if it is installed; compare logits, greedy text and the tokenizers.

    The text is begun, continued and written down by the folder's own tokenizer there, and by ours here.
    """
    config, model, ours = checkpoint.config, checkpoint.model, checkpoint.tokenizer
    theirs = tokenizers.Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))  # which AutoTokenizer wraps
    ids = torch.randint(
        0, config.vocab_size, (2, min(config.context_length, 64)), generator=torch.Generator().manual_seed(0)
    )
    prompt = prompt or checkpoint.about.get("prompt") or "The"
    begun = [encode(prompt)[: config.context_length // 2] or [0] for encode in (ours.encode, _encoder(theirs))]
    room = max(min(new_tokens, config.context_length - max(map(len, begun))), 1)
    greedy = SamplingConfig(greedy=True)
    written = [step.tokens[0] for step in generate(model, begun[0], room, greedy)]
    if importlib.util.find_spec("transformers"):
        import transformers

        with _no_bars(transformers.utils.logging):
            again = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True).eval()
        with torch.inference_mode():
            logits = again(ids).logits
            prefix = torch.tensor([begun[1]])
            written_there = again.generate(
                prefix, attention_mask=torch.ones_like(prefix), max_new_tokens=room, do_sample=False, pad_token_id=0
            )[0, len(begun[1]) :].tolist()
        reader = f"Transformers {transformers.__version__}"
    else:
        again = import_folder(folder).model
        with torch.inference_mode():
            logits = again(ids).logits
        written_there = [step.tokens[0] for step in generate(again, begun[1], room, greedy)]
        reader = "our own importer (Transformers is not installed here)"
    with torch.inference_mode():
        difference = (logits - model(ids).logits).abs().max().item()
    here, there = ours.decode(begun[0] + written), _decoder(theirs)(begun[1] + written_there)
    texts = _texts(prompt, checkpoint.history)
    return Parity(
        reader, difference, here == there, ids.numel(), len(texts), sum(not _alike(ours, theirs, t) for t in texts)
    )


def _texts(prompt: str, history: History, count: int = 200) -> list[str]:
    """Texts to try tokenizers on: the run's own, and what is made by chance of their characters and of odd ones."""
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


def _alike(ours: Tokenizer, theirs: tokenizers.Tokenizer, text: str) -> bool:
    ids = ours.encode(text)
    return _encoder(theirs)(text) == ids and _decoder(theirs)(ids) == ours.decode(ids)


def _encoder(theirs: tokenizers.Tokenizer) -> Callable[[str], list[int]]:
    return lambda text: theirs.encode(text, add_special_tokens=False).ids


def _decoder(theirs: tokenizers.Tokenizer) -> Callable[[list[int]], str]:
    return lambda ids: theirs.decode(ids, skip_special_tokens=False)


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
