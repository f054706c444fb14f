"""Beginnings that a model is offered: its own, whole words, nothing that it cannot read."""

from types import SimpleNamespace

import pytest

from playground.data import build_tokenizer
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.model import Transformer
from playground.service.models import Registry
from playground.service.runs import OWN_TEXT, Source
from playground.service.texts import learned
from playground.storage import Checkpoint
from playground.training import History
from playground.ui.prompts import suggestions
from tests.model.configs import TINY

from .runs import ANNA, small_limits

SALES = "Our pumps are quiet. Order two pumps today and save. We deliver on Monday. Each pump lasts ten years."


def page_with(tmp_path, tokenizer, text="", prompt="", sampled=""):
    """A page with one model that learned this own text and wrote words that it has not."""
    history = History()
    history.samples.append({"step": 9, "prompt": sampled, "text": "Or twopum dada. Monda pumpu we que. Eac lasts ord."})
    source = Source(OWN_TEXT, text) if text else None
    model = Transformer(TINY.replace(vocab_size=tokenizer.vocab_size))
    registry = Registry(small_limits(), shipped=tmp_path / "none")
    about = {"prompt": prompt, "language": None}
    model_id = registry.add(ANNA, Checkpoint(model, tokenizer, history, "Run 1", about))
    board = SimpleNamespace(source_of=lambda checkpoint: source)
    return SimpleNamespace(registry=registry, limits=small_limits(), board=board), model_id


def test_a_model_of_an_own_text_is_offered_words_of_that_text(tmp_path):
    page, model_id = page_with(tmp_path, CharTokenizer.from_text(SALES), text=SALES[3:62], sampled="O")
    found = suggestions(page, model_id, ANNA)
    assert "Once upon a time" not in found and found[0] == "Order two pumps today"
    whole = set(SALES.replace(".", "").split())
    assert all(set(s.replace(".", "").split()) <= whole for s in found if len(s) > 1), f"words are cut: {found}"
    page, model_id = page_with(tmp_path, CharTokenizer.from_text(SALES), sampled="Our pumps")
    assert suggestions(page, model_id, ANNA) == ["Our pumps"], "nothing that it wrote stands in for an unknown text"
    own = build_tokenizer("bpe", SALES, vocab_size=300)
    page, model_id = page_with(tmp_path, own, text=SALES, prompt="Mia lived by the sea.", sampled="�����")
    found = suggestions(page, model_id, ANNA)
    assert found[0] == "Order two pumps today" and all(word in SALES for each in found for word in each.split())
    page, model_id = page_with(tmp_path, own, text=SALES, prompt="two pumps Monday")
    assert suggestions(page, model_id, ANNA)[0] == "two pumps Monday"


@pytest.mark.parametrize("name", ["prose", "sentences"])
def test_a_shipped_model_is_offered_words_of_its_text(tmp_path, name):
    registry = Registry(small_limits())
    page = SimpleNamespace(registry=registry, board=SimpleNamespace(source_of=lambda checkpoint: None))
    text = learned(None, registry.get(f"shipped-{name}", ANNA))
    found = suggestions(page, f"shipped-{name}", ANNA)
    assert len(found) > 2 and all(begun in " ".join(text.split()) for begun in found[1:])


@pytest.mark.parametrize("tokenizer", [CharTokenizer("αβγ"), WordTokenizer(["pump", "two"]), CharTokenizer("a b")])
def test_nothing_is_offered_that_the_model_cannot_read(tmp_path, tokenizer):
    page, model_id = page_with(tmp_path, tokenizer, prompt="Mia lived by the sea.", text="Mia has it.\nTom is sad.\nO")
    (only,) = suggestions(page, model_id, ANNA)
    assert only.strip() and not tokenizer.unknown_parts(only)
