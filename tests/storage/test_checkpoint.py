"""Save then load gives equal logits, of each kept moment too; damage and other models become a sentence."""

import itertools
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from playground.data import corpus_from_language
from playground.data.tokenizers import CharTokenizer
from playground.model import Transformer
from playground.storage import CheckpointError, load, save
from playground.storage.snapshots import FOLDER, MOST, drop_after, find_snapshots, keep_snapshot, save_snapshots
from playground.training import evaluate
from tests.model.configs import TINY, VARIANTS

SHIPPED = Path(__file__).resolve().parents[2] / "checkpoints"
TOKENIZER = CharTokenizer("abcdefghij")


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS.keys())
def test_save_then_load_gives_equal_logits(tmp_path, config):
    model = Transformer(config, seed=3)
    save(tmp_path / "m", model, TOKENIZER)
    ids = torch.arange(11)[None]
    loaded = load(tmp_path / "m")
    assert torch.equal(loaded.model(ids).logits, model(ids).logits)
    assert loaded.config == config and loaded.tokenizer.to_dict() == TOKENIZER.to_dict()


def test_shipped_checkpoints_are_small_good_and_say_what_they_are():
    folders = [path.parent for path in SHIPPED.glob("*/config.json")]
    assert sum(f.stat().st_size for folder in folders for f in folder.iterdir()) <= 20e6
    names = {folder.name for folder in folders}
    assert {"stories", "sentences", "prose", "induction", "dialects-dense", "dialects-moe"} <= names
    for folder in folders:
        checkpoint = load(folder)
        assert checkpoint.history.val_loss < checkpoint.about["ladder"]["bigram"]
        assert checkpoint.history.samples and checkpoint.about["prompt"]
    # Scored again here, on text it never saw: within 0.05 nats of the exact floor.
    checkpoint = load(SHIPPED / "stories")
    assert checkpoint.history.val_loss - checkpoint.about["ladder"]["floor"] <= 0.05
    corpus = corpus_from_language("stories", seed=77, n_characters=1_000, n_validation=20_000)
    context = checkpoint.config.context_length
    loss = evaluate(checkpoint.model, *corpus.windows("val", context, 100))
    assert loss - corpus.baselines(context, 100).floor <= 0.05


IDS = torch.arange(11)[None]


@pytest.mark.parametrize("name", ["learned", "tied", "experts, swiglu, shared, every other layer"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_moment_comes_back_as_its_model_to_half_precision(tmp_path, name, whole):
    config = VARIANTS[name]
    models = {step: Transformer(config, seed=step) for step in (0, 7, 300)}
    if whole:
        save_snapshots(tmp_path, [(s, m.state_dict()) for s, m in models.items()], tied=config.tie_embeddings)
    else:
        for step, model in models.items():
            keep_snapshot(tmp_path, step, model.state_dict(), tied=config.tie_embeddings)
    found = find_snapshots(tmp_path, config)
    assert found.steps == (0, 7, 300)
    for step, model in models.items():
        again = found.model(step)
        for key, tensor in model.state_dict().items():
            assert torch.equal(again.state_dict()[key], tensor.half().float()), key
        assert torch.allclose(again(IDS).logits, model(IDS).logits, atol=2e-2)


def test_a_checkpoint_carries_its_snapshots_and_a_run_without_end_a_bounded_number(tmp_path):
    model = Transformer(TINY)
    save(tmp_path / "m", model, CharTokenizer("abcdefghij"))
    assert load(tmp_path / "m").snapshots is None and find_snapshots(None, TINY) is None
    save_snapshots(tmp_path / "m", [(5, model.state_dict())])
    assert load(tmp_path / "m").snapshots.steps == (5,)
    state = {"x": torch.zeros(1)}
    for step in range(0, 10 * (MOST + 20), 10):
        keep_snapshot(tmp_path, step, state)
    steps = find_snapshots(tmp_path, TINY).steps
    assert len(steps) == MOST and steps[0] == 0 and steps[-1] == 10 * (MOST + 19)
    gaps = [b - a for a, b in itertools.pairwise(steps)]
    assert gaps[0] <= gaps[-1] and max(gaps) <= 100
    drop_after(tmp_path, 200)
    assert max(find_snapshots(tmp_path, TINY).steps) <= 200


def test_damage_is_a_sentence(tmp_path):
    model = Transformer(TINY)
    keep_snapshot(tmp_path, 3, model.state_dict())
    found = find_snapshots(tmp_path, TINY)
    with pytest.raises(CheckpointError, match=r"weights.*4"):
        found.model(4)
    with pytest.raises(CheckpointError, match="belong"):
        find_snapshots(tmp_path, TINY.replace(n_layers=3)).model(3)
    path = tmp_path / FOLDER / "00000003.safetensors"
    tensors = load_file(path)
    tensors["embedding.weight"][0, 0] = float("inf")
    save_file(tensors, path)
    with pytest.raises(CheckpointError, match="not numbers"):
        found.model(3)
    path.write_bytes(b"\0" * 100)
    with pytest.raises(CheckpointError, match=r"cannot.*read"):
        found.model(3)
