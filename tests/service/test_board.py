"""Runs and their models live in the server: found again, stopped, ended by limits; each its visitor's own."""

import contextlib
import math
import threading
import time
from contextlib import closing

import pytest
import torch

from playground.data import corpus_from_text
from playground.model import Transformer
from playground.service import comparisons
from playground.service.board import Board
from playground.service.comparisons import ComparisonJob
from playground.service.data_folder import DataFolder, new_id
from playground.service.limits import FAILED_RUNS, LimitError
from playground.service.models import Registry
from playground.service.runs import RunSpec
from playground.service.views import RunView
from playground.storage import Checkpoint
from playground.training import History
from tests.service.test_comparisons import TRAINING, spec
from tests.ui.runs import (
    ANNA,
    BERT,
    MODEL,
    TEXT,
    ScriptedRunner,
    at_once,
    ended,
    house,
    small_limits,
    small_spec,
    until,
)


def test_a_run_ends_in_the_registry_with_its_curve_and_ladder(tmp_path):
    jobs = house(tmp_path)
    view = ended(jobs.start(ANNA, small_spec())).view()
    assert view.state == "finished" and "30" in view.message
    assert view.history.steps["step"] == list(range(1, 31))
    assert view.history.evaluations["step"] == [0, 10, 20, 30]
    assert view.baselines.uniform > view.baselines.bigram and view.baselines.floor is None
    checkpoint = jobs.registry.get(view.id, ANNA)
    assert checkpoint.history.last_step == 30 and checkpoint.about["ladder"] == view.baselines.to_dict()
    assert checkpoint.tokenizer.decode(checkpoint.tokenizer.encode("the cat")) == "the cat"
    assert math.isclose(float(view.before.sum()), 1.0, rel_tol=1e-5)
    assert not view.before.equal(view.now)
    again = RunView.of_checkpoint(view.id, checkpoint)
    assert again.baselines == view.baselines and again.planned_steps == 30


def test_a_page_sees_columns_of_equal_length_at_any_moment(tmp_path):
    jobs = house(tmp_path, ScriptedRunner())
    job = jobs.start(ANNA, small_spec(steps=40))
    while job.active:
        view = job.view()
        assert len({len(column) for column in view.history.steps.values()}) == 1
        assert len({len(column) for column in view.history.evaluations.values()}) == 1
    assert job.view().version == job.version


def test_stop_is_quick_keeps_what_was_learned_and_resume_goes_on_with_the_same_curve(tmp_path):
    jobs = house(tmp_path)
    job = jobs.start(ANNA, small_spec(steps=5000))
    until(lambda: job.view().history.last_step > 20)
    asked = time.monotonic()
    assert jobs.stop(ANNA) is job
    until(lambda: not job.active)
    assert time.monotonic() - asked < 1.0
    stopped = ended(job).view()
    done = stopped.history.last_step
    assert stopped.history.finished["reason"] == "stopped" and stopped.can_resume
    loss_when_stopped = stopped.history.val_loss
    first_model = jobs.registry.get(job.id, ANNA).model

    jobs.resume(ANNA, job.id)
    until(lambda: job.view().history.last_step > done + 20)
    jobs.stop(ANNA)
    resumed = ended(job).view()
    steps = resumed.history.steps["step"]
    assert steps == list(range(1, len(steps) + 1)), "one curve, without a gap or a repeated step"
    assert resumed.history.steps["seconds"] == sorted(resumed.history.steps["seconds"])
    assert resumed.history.val_loss < loss_when_stopped + 0.1
    assert jobs.registry.get(job.id, ANNA).model is not first_model, "what others may be reading is never changed"


def test_a_run_ends_by_the_clock_and_a_finished_one_can_be_trained_longer_up_to_the_limit(tmp_path):
    jobs = house(tmp_path, steps=50)
    job = ended(jobs.start(ANNA, small_spec(steps=30)))
    jobs.resume(ANNA, job.id, more_steps=15)
    longer = ended(job).view()
    assert longer.history.last_step == 45
    (change,) = longer.history.changes
    assert change["step"] == 30 and change["settings"]["steps"] == [30, 45]
    assert jobs.registry.get(job.id, ANNA).history.changes == [change]
    with pytest.raises(LimitError, match=r"60.*50"):
        jobs.resume(ANNA, job.id, more_steps=15)
    jobs = house(tmp_path, seconds=0.3)
    view = ended(jobs.start(ANNA, small_spec(steps=100_000))).view()
    assert view.history.finished["reason"] == "time" and view.history.last_step > 0
    assert jobs.registry.has(view.id, ANNA) and view.can_resume


def test_stopping_before_training_began_ends_at_once_and_the_late_thread_changes_nothing(tmp_path):
    runner = ScriptedRunner(hold_preparing=True)
    jobs = house(tmp_path, runner)
    job = jobs.start(ANNA, small_spec())
    jobs.stop(ANNA)
    assert job.state == "failed" and "to keep" in job.view().message
    second = jobs.start(ANNA, small_spec())
    runner.may_prepare.set()
    assert ended(second).view().state == "finished"
    until(lambda: not job.busy)
    assert job.state == "failed" and not jobs.registry.has(job.id, ANNA)


@pytest.mark.parametrize("stranger", [None, "", 7, [], "x" * 30])
def test_whoever_has_no_id_has_no_runs(tmp_path, stranger):
    jobs = house(tmp_path, ScriptedRunner())
    job = ended(jobs.start(ANNA, small_spec()))
    assert jobs.of(stranger) == [] and jobs.active(stranger) is None and jobs.find(stranger, job.id) is None
    assert jobs.registry.models(stranger) == [] and not jobs.registry.has(job.id, stranger)


def test_many_presses_at_once_start_one_run(tmp_path):
    jobs = house(tmp_path, ScriptedRunner())
    started = []

    def press(_: int) -> None:
        with contextlib.suppress(LimitError):
            started.append(jobs.start(ANNA, small_spec(steps=500)))

    at_once(8, press)
    assert len(started) == 1
    jobs.stop(ANNA)


def test_models_leave_least_recently_used_first_and_their_runs_and_files_with_them(tmp_path):
    jobs = house(tmp_path, models_per_visitor=2, models=3)
    first = ended(jobs.start(ANNA, small_spec()))
    assert first.folder.exists()
    second = ended(jobs.start(ANNA, small_spec(seed=1)))
    jobs.registry.get(first.id, ANNA)  # used: now the second is the one that nobody has asked for
    third = ended(jobs.start(ANNA, small_spec(seed=2)))
    assert {entry.id for entry in jobs.registry.models(ANNA)} == {first.id, third.id}
    assert jobs.find(ANNA, second.id) is None and not second.folder.exists()
    # the house has room for three: each newcomer takes the place of whoever was not asked for longest
    for number in range(3):
        ended(jobs.start(f"visitor-{number}-" + "v" * 20, small_spec()))
    assert jobs.registry.models(ANNA) == [] and jobs.of(ANNA) == []


def test_a_text_that_is_too_short_or_of_too_many_tokens_fails_with_a_sentence(tmp_path):
    jobs = house(tmp_path)
    job = jobs.start(ANNA, small_spec(text="too short"))
    view = ended(job).view()
    assert view.state == "failed" and "only 9 tokens" in view.message
    assert jobs.registry.models(ANNA) == [] and not view.can_resume
    after = ended(jobs.start(ANNA, small_spec()))
    assert jobs.find(ANNA, job.id) is None and after.name.startswith("Run 1 ·")  # nothing was called so
    failed = ended(jobs.start(ANNA, small_spec(text="short")))
    jobs.dismiss(ANNA)
    assert jobs.find(ANNA, failed.id) is None
    jobs = house(tmp_path)
    for number in range(FAILED_RUNS + 5):
        ended(jobs.start(f"visitor-{number}-" + "v" * 20, small_spec(text="short")))
    assert len(jobs._jobs) <= FAILED_RUNS + 1
    jobs = house(tmp_path, vocabulary=10)
    spec = small_spec()
    with pytest.raises(LimitError, match="32 different"):
        jobs.start(ANNA, spec)
    guessed = RunSpec(spec.source, MODEL.replace(vocab_size=8), spec.training)
    view = ended(jobs.start(ANNA, guessed)).view()
    assert view.state == "failed" and "different tokens" in view.message
    view = ended(house(tmp_path).start(ANNA, small_spec(sample_prompt="the Ω"))).view()
    assert any("'Ω'" in notice for notice in view.notices)


@pytest.mark.parametrize("kind", ["job", "model", "moment"])
def test_whatever_is_deleted_while_it_is_written_is_no_trouble_of_the_disk(tmp_path, kind):
    data, work = DataFolder(tmp_path), new_id()

    def write() -> None:
        data.folder_of(work).mkdir(parents=True)
        data.delete(work)
        data.folder_of(work).mkdir(parents=True)
        raise FileNotFoundError("a file of a folder that was removed")

    assert not data.keep(kind, work, write)
    assert data.problem == "" and not data._late and not data.folder_of(work).exists()

    def fails() -> None:
        raise PermissionError("somebody else's folder")

    assert not data.keep(kind, new_id(), fails) and data.problem, "what was not deleted waits"


@pytest.mark.parametrize(("problem", "said"), [(RuntimeError, "our side"), (ValueError, "the run's")])
def test_neither_our_own_bugs_nor_where_a_run_lies_reach_the_visitor(tmp_path, caplog, problem, said):
    def broken(spec, limits, *, folder, **_):
        raise problem(f"{folder / 'run.safetensors'} is damaged and cannot be resumed")
        yield

    view = ended(house(tmp_path, broken).start(ANNA, small_spec())).view()
    assert view.state == "failed" and said in view.message and "/" not in view.message.split(" ")[0]
    assert problem is ValueError or "run.safetensors is damaged" in caplog.text, "but it is logged"


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
    assert job.learned == [job.model_ids["moe"]]
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
