"""Models leave with their files and with a word; the list may be read meanwhile; names are their visitors'."""

import threading
from contextlib import closing

import pytest
import torch

from playground.data import corpus_from_text
from playground.model import Transformer
from playground.service import comparisons
from playground.service.board import Board
from playground.service.comparisons import ComparisonJob
from playground.service.data_folder import DataFolder
from playground.service.models import Registry
from playground.storage import Checkpoint
from playground.training import History
from tests.service.test_comparisons import TRAINING, spec
from tests.ui.runs import ANNA, BERT, MODEL, TEXT, ScriptedRunner, ended, house, small_limits, small_spec, until


def checkpoint(name: str = "a model") -> Checkpoint:
    tokenizer = corpus_from_text(TEXT).tokenizer
    return Checkpoint(Transformer(MODEL), tokenizer, History(), name)


def test_the_house_lets_the_network_with_most_models_make_room(tmp_path):
    registry = Registry(small_limits(models=4), shipped=tmp_path / "none")
    mine = registry.add(ANNA, checkpoint("mine"), share="a home pages")
    crowd = [registry.add(f"visitor {i}", checkpoint(), share="an office programs") for i in range(20)]
    assert registry.has(mine, ANNA)
    assert [registry.has(model_id, f"visitor {i}") for i, model_id in enumerate(crowd)] == [False] * 17 + [True] * 3


def test_models_are_put_down_when_memory_gets_short_and_read_again_when_asked_for(tmp_path):
    size = sum(p.numel() * p.element_size() for p in checkpoint().model.parameters())
    registry = Registry(small_limits(model_bytes=3 * size + 1), shipped=tmp_path / "none")
    ids = [registry.add(visitor, checkpoint(visitor)) for visitor in (ANNA, BERT, ANNA)]
    assert registry.counts()["bytes"] == 3 * size
    registry.get(ids[0], ANNA)
    before = registry.get(ids[1], BERT).model.state_dict()
    registry.get(ids[0], ANNA), registry.get(ids[2], ANNA)
    ids.append(registry.add(BERT, checkpoint("the fourth")))
    owners = (ANNA, BERT, ANNA, BERT)
    assert [registry.has(model_id, owner) for model_id, owner in zip(ids, owners)] == [True] * 4
    assert [registry.here(model_id) is not None for model_id in ids] == [True, False, True, True]
    again = registry.get(ids[1], BERT)
    assert all(torch.equal(tensor, before[name]) for name, tensor in again.model.state_dict().items())
    assert again.name == BERT and registry.counts()["bytes"] == 3 * size


def test_a_visitor_renames_and_deletes_their_own_runs_and_nobody_elses(tmp_path):
    board = house(tmp_path, ScriptedRunner())
    job = board.start(ANNA, small_spec())
    with pytest.raises(ValueError, match=r"still.*trained"):
        board.delete(ANNA, job.id)
    ended(job)
    version = job.version
    board.rename(ANNA, job.id, "  The\nbest ")
    assert job.view().name == job.checkpoint.name == "The best" and job.version > version
    assert [entry.name for entry in board.registry.models(ANNA)] == ["The best"]
    assert board.registry.get(job.id, ANNA) is job.checkpoint and board.source_of(job.checkpoint) is job.spec.source
    for name in ("", " ", "x" * 61, None, 7):
        with pytest.raises(ValueError, match="60 characters"):
            board.rename(ANNA, job.id, name)
    for change in (lambda: board.rename(BERT, job.id, "mine"), lambda: board.delete(BERT, job.id)):
        with pytest.raises(ValueError, match="longer here"):
            change()
    job.folder.mkdir(exist_ok=True)
    board.delete(ANNA, job.id)
    assert board.of(ANNA) == [] and board.registry.models(ANNA) == [] and not job.folder.exists()


def test_a_shared_model_can_be_used_by_whoever_has_its_id_and_changed_by_its_owner_alone(tmp_path):
    with closing(DataFolder(tmp_path)) as data:
        board = Board(Registry(small_limits(), data=data), small_limits())
        job = ended(board.start(ANNA, small_spec(steps=5)))
        registry, shared = board.registry, data.shared_id(job.id)
        assert not registry.has(job.id, BERT) and registry.has(shared, BERT)
        assert registry.get(shared, BERT).model is registry.get(job.id, ANNA).model
        assert board.source_of(registry.get(job.id, ANNA)) is job.spec.source
        assert board.source_of(registry.get(shared, BERT)) is None, "its text stays its owner's"
        assert shared not in [model_id for _, model_id in registry.choices(BERT)]
        assert not data.knows(shared.replace(".", "")), "no visitor's secret can be made of it"
        for theirs in (shared, registry.default):  # or the house's
            with pytest.raises(ValueError, match="only your own runs can be"):
                board.rename(BERT, theirs, "mine")
            with pytest.raises(ValueError, match="only your own runs can be"):
                board.delete(BERT, theirs)
        for wrong in (f"{job.id}.", f"{job.id}.{'a' * 24}", f"{shared}x", f"{'x' * 24}.{shared[25:]}", f"ä.{shared}"):
            assert not registry.has(wrong, BERT)
        board.delete(ANNA, job.id)
        assert not registry.has(shared, BERT)


def test_when_one_of_two_leaves_the_other_keeps_its_moments(tmp_path):
    board = house(tmp_path, ScriptedRunner())
    job = ended(board.compare(ANNA, spec(seeds=1, training=TRAINING.replace(snapshots=4))))
    moe = board.registry.get(job.model_ids["moe"], ANNA)
    board.registry.remove(job.model_ids["dense"], ANNA)
    assert (
        not board.data.folder_of(job.model_ids["dense"]).exists()
        and board.find(ANNA, job.id, kind=ComparisonJob) is job
    )
    assert [moe.snapshots.model(step).config for step in moe.snapshots.steps] == [moe.config] * len(moe.snapshots.steps)
    assert job.view().sides["dense"].model_id is None and job.view().sides["moe"].model_id
    board.registry.remove(job.model_ids["moe"], ANNA)
    assert board.find(ANNA, job.id, kind=ComparisonJob) is None and not job.folder.exists()


def test_when_both_leave_while_further_seeds_are_trained_all_is_freed_at_the_end(tmp_path, monkeypatch):
    board, may_end = house(tmp_path, ScriptedRunner()), threading.Event()
    whole = comparisons.run_comparison

    def held(*arguments, **named):
        yield from whole(*arguments, **named)
        assert may_end.wait(30)

    monkeypatch.setattr(ComparisonJob, "runner", staticmethod(held))
    job = board.compare(ANNA, spec(seeds=2))
    until(lambda: len(job.learned) == 2)
    for side in ("dense", "moe"):
        board.registry.remove(job.model_ids[side], ANNA)
    assert job.active and job.learned == [] and board.counts()["remembered"] == 1
    may_end.set()
    until(lambda: board.counts()["remembered"] == 0)
    assert not job.folder.exists() and board.counts()["working"] == 0
