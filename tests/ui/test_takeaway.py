"""Models from elsewhere: within this place's limits, their visitor's alone, whoever else sends the same file."""

from __future__ import annotations

import zipfile
from types import SimpleNamespace

import gradio as gr
import pytest

from playground.data.tokenizers import CharTokenizer
from playground.model import ModelConfig, Transformer
from playground.service.models import Registry
from playground.storage import Checkpoint
from playground.storage.archive import pack
from playground.storage.transformers_families import family_for
from playground.training import History
from playground.ui.forms import run as form
from playground.ui.forms import texts
from playground.ui.tabs.train.takeaway import _giving, _lines_in_words, received

from .runs import ANNA, BERT, small_limits


def zipped(tmp_path, name: str = "mine.zip", **config):
    """A model's zip, as another page would have made it."""
    made = ModelConfig(**{"vocab_size": 6, "context_length": 8, "n_layers": 1, "d_model": 8, "n_heads": 2, **config})
    return pack(Checkpoint(Transformer(made), CharTokenizer("abcde"), History(), "Anna's"), tmp_path / name)


def place(**limits):
    """As much of a page as is needed."""
    return SimpleNamespace(limits=small_limits(**limits))


def test_an_uploaded_model_is_its_visitors_own(tmp_path):
    checkpoint = received(zipped(tmp_path), place())
    assert checkpoint.name == "Anna's (uploaded)"
    registry = Registry(small_limits(models_per_visitor=2), shipped=tmp_path / "none")
    ids = [registry.add(ANNA, checkpoint) for _ in range(3)]
    assert [registry.has(i, ANNA) for i in ids] == [False, True, True], "as many as a visitor may keep"
    assert not any(registry.has(i, BERT) for i in ids)


@pytest.mark.parametrize(
    ("name", "config", "limits", "complaint"),
    [
        ("model.safetensors", {}, {}, "Upload a zip file"),
        ("mine.zip", {"n_layers": 3}, {"layers": 2}, "3 layers are too many"),
        ("mine.zip", {"context_length": 32}, {"context": 16}, "32 tokens of context"),
        ("mine.zip", {"vocab_size": 60}, {"vocabulary": 50}, "60 different tokens"),
        ("mine.zip", {}, {"parameters": 500}, "parameters are too many"),
        ("mine.zip", {}, {"parameters": -2_499_900}, "MB; this machine takes at most"),
    ],
)
def test_models_beyond_a_limit_are_refused(tmp_path, name, config, limits, complaint):
    with pytest.raises(ValueError, match=complaint):
        received(zipped(tmp_path, name, **config), place(**limits))


def test_two_visitors_who_send_the_same_file_share_its_path(tmp_path):
    """Uploads are stored by what they hold: what one visitor's upload leaves behind is what the next one reads."""
    path = zipped(tmp_path)
    first, second = (received(path, place()) for _ in range(2))
    assert first.model is not second.model and first.name == second.name


def test_what_is_made_to_be_taken_away_does_not_stay(tmp_path):
    seen = []

    def make(visitor, model_id, folder):
        path = folder / "x.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a", "b")
        seen.append(path)
        return path, "here it is"

    giving = _giving(make, "Wait …")(ANNA, "a-model")
    assert "Wait …" in next(giving)[1] and not seen
    for path, words in giving:
        assert zipfile.is_zipfile(path) and "Here it is." in words
    assert not seen[0].exists() and not seen[0].parent.exists()


def test_a_history_of_which_not_every_step_was_kept_says_so():
    """“one line per step” was said of 401 of 2,400."""
    history = History()
    for column in history.steps.values():
        column.extend(range(1, 2401))
    assert "one line per step" in _lines_in_words(history)
    assert "each of 401 of its 2,400 steps and for each of its evaluations" in _lines_in_words(history.thinned())


def test_a_model_that_is_somebody_elses_ends_in_a_sentence(tmp_path):
    registry = Registry(small_limits(), shipped=tmp_path / "none")
    model_id = registry.add(ANNA, received(zipped(tmp_path), place()))

    def make(visitor, wanted, folder):
        return pack(registry.get(wanted, visitor), folder / "x.zip"), ""

    said = []
    with pytest.raises(gr.Error, match="no longer here"):
        for _, words in _giving(make, "Wait …")(BERT, model_id):
            said.append(words)
    assert "Wait …" in said[0] and "Wait" not in said[-1], "nobody waits for what has failed"


@pytest.mark.parametrize("source", texts.SOURCES)
@pytest.mark.parametrize("size", form.SIZES)
def test_every_size_as_it_is_has_a_home_in_transformers(size, source):
    family_for(form.model_config(form.size_values(size, source) | {"source": source}))  # raises where there is none
