"""A visitor's run keeps its best weights: offered where they are better, its model at a press, gone with it."""

import contextlib
import threading
from pathlib import Path

import pytest
import torch

import playground
from playground.data import corpus_from_text
from playground.model import PRESETS
from playground.service.runs import RunSpec, Source, predict
from playground.storage.archive import pack
from playground.storage.opening import load_archive
from playground.training import TrainConfig, evaluate
from playground.ui.tabs.train import verdict, watch
from playground.ui.tabs.train.report import report_html
from tests.ui.runs import ANNA, BERT, ended
from tests.ui.runs import house as house_in

TEXT = (Path(playground.__file__).parent / "data/texts/lighthouse.txt").read_text(encoding="utf-8")[:1500]
SHAPE = PRESETS["tiny"].replace(context_length=32, n_layers=1)


def spec(**changes) -> RunSpec:
    """Far too short a text: validation rises while training falls."""
    settings = {"steps": 80, "batch_size": 8, "eval_every": 4, "eval_windows": 12, "schedule": "constant", **changes}
    return RunSpec(Source("text", text=TEXT), SHAPE, TrainConfig(**settings, device="cpu", precision="fp32"))


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """Board and registry, and a run of Anna's that learned by heart."""
    board = house_in(tmp_path_factory.mktemp("best"))
    return board, ended(board.start(ANNA, spec()), 120)


def loss_of(checkpoint) -> float:
    corpus = corpus_from_text(TEXT, checkpoint.tokenizer)
    return evaluate(checkpoint.model, *corpus.windows("val", 32, 12))


def test_a_run_that_learned_by_heart_says_so_and_offers_its_best_step(house):
    _, job = house
    view = job.view()
    step, lowest = view.history.best
    assert view.standing.kind == "overfitting" and view.kept == step < 80
    losses = job._history.evaluations["val_loss"]
    last, losses[-1] = losses[-1], lowest + 0.005
    assert job.view().kept is None, "hardly better than the last is not worth a press"
    losses[-1] = last


def test_others_are_answered_while_the_best_weights_are_read(house, monkeypatch):
    board, job = house
    reading, go_on = threading.Event(), threading.Event()

    def slow(model, asked):
        reading.set()
        assert go_on.wait(20)
        raise ValueError("enough")

    monkeypatch.setattr("playground.service.run_job.predict", slow)

    def use() -> None:
        with contextlib.suppress(ValueError):
            board.use_best(ANNA, job.id)

    using = threading.Thread(target=use)
    using.start()
    assert reading.wait(20)
    answered = threading.Thread(target=lambda: (board.counts(), board.of(BERT), board.registry.models(BERT)))
    answered.start()
    answered.join(10)
    held = answered.is_alive()
    go_on.set()
    using.join(20)
    assert not held and job.checkpoint.best is not None


def test_used_the_best_weights_are_the_runs_model_everywhere(house, tmp_path):
    board, job = house
    last, whole = board.registry.get(job.id, ANNA), job.view()
    step, lowest = whole.history.best
    assert loss_of(last) == pytest.approx(whole.history.val_loss, abs=1e-5)
    board.use_best(ANNA, job.id)
    used, view = board.registry.get(job.id, ANNA), job.view()
    assert loss_of(used) == pytest.approx(lowest, abs=1e-5) and used.history.val_loss == lowest
    assert (view.used, view.kept) == (step, None) and view.history.last_step == 80
    assert f"<b>{lowest:.3f}</b>" in verdict.numbers(view)
    assert "Overfitting" in verdict.headline(whole) and "Overfitting" not in verdict.headline(view)
    assert "its training text" in verdict.why(whole) and verdict.why(view) == ""
    first = corpus_from_text(TEXT, used.tokenizer).val[:1].tolist()
    assert torch.equal(view.now, predict(used.model, first)) and not torch.allclose(view.now, whole.now)
    assert f"Validation loss {lowest:.4f} at step {step}" in report_html(view)
    job.state = "training"
    assert job.view().used is None and torch.equal(job.view().now, whole.now), "what goes on is the run"
    job.state = "finished"
    packed = load_archive(pack(used, tmp_path / "model.zip"), max_bytes=10_000_000)
    assert loss_of(packed) == pytest.approx(lowest, abs=1e-5) and packed.history.last_step == step
    for best in (True, False, False):
        with contextlib.suppress(ValueError):
            board.use_best(ANNA, job.id, best=best)  # only the second has other weights to use
    back = board.registry.get(job.id, ANNA)
    assert torch.equal(back.model.head.weight, last.model.head.weight) and back.history.best == whole.history.best
    assert job.view().used is None and job.view().kept == step and torch.equal(job.view().now, whole.now)
    # after a restart, too, it has ended as it did; the run itself goes on from its last step
    board.use_best(ANNA, job.id)
    row = {"state": "over", "id": job.id, "visitor": ANNA, "name": job.name}
    again = type(job).found(row, job.noted(), board.limits, board.registry).view()
    assert again.used == step and watch.resume_label(again) == watch.resume_label(job.view()) != "Resume"
    board.resume(ANNA, job.id, more_steps=5)
    ended(job, 120)
    assert job.view().history.last_step == 85 and job.view().used is None and job.view().kept == step


def test_a_run_that_was_patient_long_enough_goes_on_when_asked(tmp_path):
    board = house_in(tmp_path)
    job = ended(board.start(ANNA, spec(patience=3, steps=99)), 120)
    assert job.view().history.last_step < 99 and job.view().history.finished["reason"] == "risen"
    board.resume(ANNA, job.id)
    assert ended(job, 120).view().history.last_step == 99
