"""One model's whole way out of the page: trained, zipped, opened by Transformers, pushed and pulled, trained again."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from playground.links import RunCard
from playground.model import PRESETS
from playground.service.board import Board
from playground.service.hub_page import hub_page
from playground.service.limits import LOCAL
from playground.service.models import Registry
from playground.storage.archive import pack
from playground.storage.hub import pull, push
from playground.storage.opening import load_archive
from playground.storage.transformers_export import export
from playground.ui.tabs.train.linked import match, run_letters
from playground.words.card import exported_card, parity_in_words

from ..standins.hub import Account, hub_for_tests
from .runs import ANNA, small_limits, small_spec, until

transformers = pytest.importorskip("transformers")


def test_what_was_trained_in_the_page_outlives_it(tmp_path, monkeypatch):
    registry = Registry(small_limits(), shipped=tmp_path / "none")
    jobs = Board(registry, small_limits())
    shape = PRESETS["nanogpt-cpu"].replace(context_length=16, n_layers=2, d_model=32, n_heads=2)
    spec = dataclasses.replace(small_spec(steps=40), model=shape)
    job = jobs.start(ANNA, spec)
    until(lambda: job.settled)
    trained = registry.get(job.id, ANNA)
    ids = torch.randint(0, trained.config.vocab_size, (1, 16))
    with torch.inference_mode():
        logits = trained.model(ids).logits

        # downloaded as a zip, and opened from it
        unzipped = load_archive(pack(trained, tmp_path / "model.zip"), max_bytes=LOCAL.archive_bytes)
        assert torch.equal(unzipped.model(ids).logits, logits)

        # opened in Transformers, which agrees
        parity = export(unzipped, tmp_path / "theirs", card=exported_card)
        assert parity.transformers == transformers.__version__
        assert parity.same_text and parity.largest_difference <= 1e-4
        theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "theirs", local_files_only=True).eval()
        assert (theirs(ids).logits - logits).abs().max() <= 1e-4
        assert parity_in_words(parity) in (tmp_path / "theirs" / "README.md").read_text()

        # pushed to a Hub and pulled from it
        with hub_for_tests(monkeypatch, tmp_path) as hub:
            hub.accounts["hf_annas"] = Account("anna")
            push(unzipped, "anna/cats", hub_page, token="hf_annas")
            assert torch.equal(pull("anna/cats", token=False).model(ids).logits, logits)

    # trained again from its link
    repeated = jobs.start(ANNA, spec, repeats=_card(job))
    until(lambda: repeated.settled)
    assert "Matched to 4 decimals" in match(repeated.view(), repeated.spec)


def _card(job):
    return RunCard.from_letters(run_letters(job.view(), job.spec))
