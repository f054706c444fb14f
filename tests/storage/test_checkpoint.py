"""Save then load gives equal logits; whatever is wrong with a folder becomes a sentence before memory is taken."""

import json
import os
import struct
from functools import partial

import pytest
import torch
from safetensors.torch import load_file, save_file

from playground.data.tokenizers import CharTokenizer
from playground.model import Transformer
from playground.storage import CheckpointError, load, save
from playground.storage.bounds import check_bounds
from playground.training import History
from tests.model.configs import TINY, VARIANTS

TOKENIZER = CharTokenizer("abcdefghij")


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS.keys())
def test_save_then_load_gives_equal_logits(tmp_path, config):
    model = Transformer(config, seed=3)
    save(tmp_path / "m", model, TOKENIZER)
    ids = torch.arange(11)[None]
    loaded = load(tmp_path / "m")
    assert torch.equal(loaded.model(ids).logits, model(ids).logits)
    assert loaded.config == config and loaded.tokenizer.to_dict() == TOKENIZER.to_dict()


def test_history_and_origin_come_along(tmp_path):
    history = History()
    history.evaluations = {"step": [0, 10], "train_loss": [2.0, 1.0], "val_loss": [2.1, 1.1], "seconds": [0.0, 1.0]}
    history.samples = [{"step": 10, "prompt": "ab", "text": "cd```"}]
    about = {"corpus": "letters", "ladder": {"uniform": 2.4, "unigram": 2.0, "bigram": 1.5, "floor": 1.0}}
    save(tmp_path / "m", Transformer(TINY), TOKENIZER, history, name="My model", about=about)
    loaded = load(tmp_path / "m")
    assert loaded.history == history and loaded.name == "My model" and loaded.about == about


def test_half_precision_is_half_the_size_and_nearly_the_model(tmp_path):
    model = Transformer(TINY)
    save(tmp_path / "full", model, TOKENIZER)
    save(tmp_path / "half", model, TOKENIZER, half=True)
    full, half = ((tmp_path / n / "model.safetensors").stat().st_size for n in ("full", "half"))
    assert half < 0.7 * full
    ids = torch.arange(11)[None]
    assert torch.allclose(load(tmp_path / "half").model(ids).logits, model(ids).logits, atol=1e-2)


def test_an_interrupted_save_leaves_the_old_folder(tmp_path, monkeypatch):
    model = Transformer(TINY)
    save(tmp_path / "m", model, TOKENIZER, name="old")

    def fail(*arguments, **options):
        raise OSError("disk full")

    monkeypatch.setattr("playground.storage.checkpoint.save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        save(tmp_path / "m", Transformer(TINY, seed=9), TOKENIZER, name="new")
    assert load(tmp_path / "m").name == "old"
    assert os.listdir(tmp_path) == ["m"]


@pytest.fixture
def folder(tmp_path):
    return save(tmp_path / "m", Transformer(TINY), TOKENIZER)


def change_config(folder, **changes):
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(values | changes))


def change_weights(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


def first_bytes(folder, new):
    path = folder / "model.safetensors"
    path.write_bytes(new + path.read_bytes()[len(new) :])


def raw_header(folder, header):
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)


def poison(tensors):
    tensors["embedding.weight"][3, 2] = float("nan")


BREAKS = {
    "no config": (lambda f: (f / "config.json").unlink(), "has no config.json"),
    "a pickle instead": (
        lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"),
        "pytorch_model.bin is a pickle, which can run code",
    ),
    "config is no JSON": (lambda f: (f / "config.json").write_text("{"), "config.json is damaged"),
    "config is a list": (lambda f: (f / "config.json").write_text("[]"), "not a table"),
    "nested too deeply": (lambda f: (f / "config.json").write_text("[" * 10_000), "config.json is damaged"),
    "another format": (lambda f: change_config(f, format=99), "not of this playground's format"),
    "unknown setting": (lambda f: change_config(f, rm="-rf"), "no setting called 'rm'"),
    "impossible setting": (lambda f: change_config(f, d_model=17), "not divisible"),
    "absurd size": (lambda f: change_config(f, d_ff=10**12), "parameters; at most"),
    "other shape": (lambda f: change_config(f, d_ff=32), "weights and config do not belong together"),
    "more layers": (lambda f: change_config(f, n_layers=3), "lacks blocks.2"),
    "vocabulary": (
        lambda f: (f / "tokenizer.json").write_text(json.dumps({"kind": "char", "characters": "abcdefghijklmno"})),
        "tokenizer has 16 tokens but the model only 11",
    ),
    "tokenizer": (lambda f: (f / "tokenizer.json").write_text("{}"), "tokenizer.json cannot be used"),
    "truncated": (lambda f: os.truncate(f / "model.safetensors", 3000), "damaged"),
    "empty": (lambda f: (f / "model.safetensors").write_bytes(b""), "too short"),
    "huge header": (lambda f: first_bytes(f, struct.pack("<Q", 2**60)), "its header claims"),
    "header no JSON": (lambda f: first_bytes(f, struct.pack("<Q", 20) + b"x" * 20), "is damaged: it is not JSON"),
    "header a list": (lambda f: raw_header(f, [1, 2]), "not a table of tensors"),
    "lying offsets": (
        lambda f: raw_header(
            f, {n: {"dtype": "F32", "shape": list(t.shape), "data_offsets": [0, 10**15]}
                for n, t in Transformer(TINY).state_dict().items()}
        ),
        "is damaged",
    ),
    "extra tensor": (lambda f: change_weights(f, lambda t: t.update(extra=torch.zeros(1))), "holds extra"),
    "missing tensor": (lambda f: change_weights(f, lambda t: t.pop("head.weight")), "lacks head.weight"),
    "integers": (
        lambda f: change_weights(f, lambda t: t.update({"head.weight": t["head.weight"].int()})),
        "stored as I32",
    ),
    "not a number": (lambda f: change_weights(f, poison), "not numbers, in embedding.weight"),
    "history": (lambda f: (f / "history.json").write_text('{"steps": {"step": ["x"]}}'), "history.json cannot be used"),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "sentence"), BREAKS.values(), ids=BREAKS.keys())
def test_a_damaged_or_hostile_folder_becomes_a_sentence(folder, damage, sentence):
    damage(folder)
    with pytest.raises(CheckpointError, match=sentence):
        load(folder)


def test_nothing_is_allocated_for_a_model_over_the_limit(folder, monkeypatch):
    change_config(folder, vocab_size=10**9)
    monkeypatch.setattr("playground.storage.checkpoint.Transformer", lambda *a: pytest.fail("it allocated"))
    with pytest.raises(CheckpointError, match=r"1,000.*opened"):
        load(folder, check=partial(check_bounds, max_parameters=1_000))


def test_not_a_folder_is_a_sentence(tmp_path):
    with pytest.raises(CheckpointError, match=r"nowhere.*checkpoint"):
        load(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match=r"file.*folder"):
        load(tmp_path / "file")


def test_shipped_checkpoints_are_small_good_and_say_what_they_are():
    from pathlib import Path

    root = Path(__file__).resolve().parents[2] / "checkpoints"
    folders = [p.parent for p in root.glob("*/config.json")]
    assert sum(f.stat().st_size for folder in folders for f in folder.iterdir()) <= 20e6
    names = {folder.name for folder in folders}
    assert {"stories", "sentences", "prose", "induction", "dialects-dense", "dialects-moe"} <= names
    for folder in folders:
        checkpoint = load(folder)
        assert checkpoint.history.val_loss < checkpoint.about["ladder"]["bigram"]
        assert checkpoint.history.samples and checkpoint.about["prompt"]
    stories = load(root / "stories")
    assert stories.history.val_loss - stories.about["ladder"]["floor"] <= 0.05


def test_the_stories_model_really_is_that_good():
    """Scored again here, on text it never saw: within 0.05 nats of the exact floor."""
    from pathlib import Path

    from playground.data import corpus_from_language
    from playground.training import evaluate

    checkpoint = load(Path(__file__).resolve().parents[2] / "checkpoints" / "stories")
    corpus = corpus_from_language("stories", seed=77, n_characters=1_000, n_validation=20_000)
    context = checkpoint.config.context_length
    loss = evaluate(checkpoint.model, *corpus.windows("val", context, 100))
    assert loss - corpus.baselines(context, 100).floor <= 0.05
