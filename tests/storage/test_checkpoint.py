"""Save then load gives equal logits; whatever is wrong with a folder becomes a sentence before memory is taken."""

from pathlib import Path

import pytest
import torch

from playground.data import corpus_from_language
from playground.data.tokenizers import CharTokenizer
from playground.model import Transformer
from playground.storage import load, save
from playground.training import evaluate
from tests.model.configs import VARIANTS

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
