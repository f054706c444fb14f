"""Runs live in the server: found again, stopped, resumed, ended by limits; each its visitor's own and nobody else's."""

import contextlib
import math
import time

import pytest

from playground.service.data_folder import DataFolder, new_id
from playground.service.limits import FAILED_RUNS, LimitError
from playground.service.runs import RunSpec
from playground.service.views import RunView
from tests.ui.runs import ANNA, MODEL, ScriptedRunner, at_once, ended, house, small_spec, until


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
