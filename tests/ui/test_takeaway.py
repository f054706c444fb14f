"""Models from elsewhere: within this place's limits, their visitor's alone, whoever else sends the same file."""

import io
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from gradio.utils import get_upload_folder
from starlette.applications import Starlette
from starlette.testclient import TestClient

from playground.data.tokenizers import CharTokenizer
from playground.model import ModelConfig, Transformer
from playground.service.models import SHIPPED_FOLDER, Registry
from playground.storage import Checkpoint
from playground.storage.archive import pack
from playground.training import History
from playground.ui import made_files
from playground.ui.forms import run as form
from playground.ui.panel import Asked
from playground.ui.tabs.train.takeaway import Make, Selection, _giving, bring, files, received, show

from .panels import page_of
from .runs import ANNA, BERT, small_limits


def zipped(tmp_path, name: str = "mine.zip", **config):
    """A model's zip, as another page would have made it."""
    made = ModelConfig(**{"vocab_size": 6, "context_length": 8, "n_layers": 1, "d_model": 8, "n_heads": 2, **config})
    return pack(Checkpoint(Transformer(made), CharTokenizer("abcde"), History(), "Anna's"), tmp_path / name)


@pytest.mark.parametrize(
    ("name", "limits", "complaint"),
    [
        ("model.safetensors", {}, "Upload.*file"),
        ("mine.zip", {"parameters": 500}, "parameters.*many"),
        ("mine.zip", {"parameters": -2_499_900}, "MB.*machine"),
    ],
)
def test_models_beyond_a_limit_are_refused(tmp_path, name, limits, complaint):
    with pytest.raises(ValueError, match=complaint):
        received(zipped(tmp_path, name), SimpleNamespace(limits=small_limits(**limits)))


def served(link: str) -> tuple[int, bytes]:
    """What the route of made files answers for a link."""
    answer = TestClient(Starlette(routes=[made_files.made_route()])).get(f"/{link}")
    return answer.status_code, answer.content


def a_zip(seen: list[Path]) -> Make:
    def make(visitor, model_id, folder):
        path = folder / "run 1.zip"
        seen.append(path)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a", "b")
        return path, "here it is"

    return make


def test_what_is_made_to_be_taken_away_does_not_stay():
    seen = []
    answer = _giving(a_zip(seen))(Asked(ANNA, {"model": "a-model"}))
    link = answer["save"]
    status, content = served(link)
    assert status == 200 and zipfile.is_zipfile(io.BytesIO(content)) and "Here it" in answer["shows"]["said"]
    assert link.endswith("/run%201.zip") and not seen[0].exists() and not seen[0].parent.exists()
    assert served("made/guess/run.zip") == (404, b"This file is not here any more: make it again.")


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), OSError(30, "Read-only file system")])
def test_on_a_full_or_read_only_disk_a_model_is_downloaded_from_memory(monkeypatch, tmp_path, problem):
    """The page said to take it along, and the press answered that something had gone wrong."""
    seen, whole = [], a_zip([])

    def make(visitor, model_id, folder):
        seen.append(folder)
        if folder.is_relative_to(tmp_path):
            return whole(visitor, model_id, folder)
        raise problem

    monkeypatch.setattr(made_files, "MEMORY", tmp_path)
    asked = Asked(ANNA, {"model": "a-model"})
    assert served(_giving(make)(asked)["save"])[0] == 200 and len(seen) == 2
    monkeypatch.setattr(made_files, "MEMORY", tmp_path / "none")
    with pytest.raises(ValueError, match="page's server"):
        _giving(make)(asked)


def test_the_panel_works_out_nothing_until_it_is_unfolded_and_says_why_none_can_be_exported(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # Transformers takes long to import
    page = page_of(Registry(small_limits(), SHIPPED_FOLDER))
    usual = form.model_config(form.size_values("tiny", "stories") | {"source": "stories"})
    small = usual.replace(vocab_size=6, context_length=8, n_layers=1, d_model=16, n_heads=2)
    able = page.registry.add(ANNA, received(zipped(tmp_path, **small.to_dict()), page))
    assert not show(page, Asked(ANNA, Selection(model=able).to_dict())).slots
    for model_id, can in ((able, True), ("shipped-stories", False)):
        slots = show(page, Asked(ANNA, Selection(model=model_id, take=True).to_dict())).slots
        assert (not slots["why"].make()) is can is (" disabled" not in slots["files"].make())
    taken, _ = files(page, lambda *_: None)["transformers"](ANNA, able, tmp_path)
    again, ids = received(taken, page), torch.tensor([[1, 2, 3]])
    torch.testing.assert_close(again.model(ids).logits, page.registry.get(able, ANNA).model(ids).logits)


def test_only_what_was_uploaded_here_is_brought(tmp_path):
    page, folder = page_of(Registry(small_limits(), SHIPPED_FOLDER)), Path(get_upload_folder()) / "takeaway-test"
    folder.mkdir(parents=True, exist_ok=True)
    inside = zipped(folder, "brought.zip")
    answer = bring(page, Asked(ANNA, {"file": {"path": str(inside)}}))
    assert page.registry.has(answer["choose"], ANNA) and not page.registry.has(answer["choose"], BERT)
    assert "is here" in answer["shows"]["brought"]
    for path in (str(zipped(tmp_path)), "/etc/passwd", None, 7):
        with pytest.raises(ValueError, match="it again"):
            bring(page, Asked(ANNA, {"file": {"path": path}}))
