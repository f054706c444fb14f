"""The best weights: kept as they were, through stops and resumes, and a run that stops when validation has risen."""

import copy
from pathlib import Path

import pytest
import torch

import playground
from playground.data import corpus_from_text
from playground.model import PRESETS, ModelConfig, Transformer
from playground.training import BestKept, Finished, History, TrainConfig, evaluate, train
from playground.training.resume import SavedRun
from playground.training.states import risen_for
from tests.training.runs import stop_after

TEXT = Path(playground.__file__).parent / "data/texts/lighthouse.txt"
CORPUS = corpus_from_text(TEXT.read_text(encoding="utf-8")[:1500])  # too little to learn but by heart
SHAPE = PRESETS["tiny"].replace(vocab_size=CORPUS.vocab_size, context_length=32, n_layers=1)
CONFIG = TrainConfig(
    steps=60, batch_size=8, eval_every=4, eval_windows=12, warmup_steps=20, schedule="constant",
    device="cpu", precision="fp32", seed=3,
)  # fmt: skip


def tiny() -> Transformer:
    return Transformer(SHAPE)


def told(events) -> tuple[History, list[BestKept], Finished]:
    history, kept = History(), []
    for event in events:
        history.add(event)
        if isinstance(event, BestKept):
            kept.append(event)
    return history, kept, event


def val_loss(weights) -> float:
    model = tiny()
    model.load_state_dict(weights)
    return evaluate(model, *CORPUS.windows("val", 32))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the run below was saved."""
    return tmp_path_factory.mktemp("best")


@pytest.fixture(scope="module")
def overfitted(folder):
    return told(train(tiny(), CORPUS, CONFIG, folder=folder))


def test_the_best_weights_are_handed_over_where_they_are_not_the_last_and_no_step_changes(overfitted, monkeypatch):
    history, kept, finished = overfitted
    step, lowest = history.best
    assert finished.reason == "done" and step < 60 and history.val_loss > lowest + 0.1
    assert kept[-1].best_step == step and kept[-1].val_loss == lowest
    assert val_loss(kept[-1].state) == pytest.approx(lowest, abs=1e-6)
    assert "state" not in kept[-1].to_dict()
    assert len({event.best_step for event in kept}) == len(kept)  # each once
    import playground.training.loop as loop

    monkeypatch.setattr(loop.Run, "_best_behind", lambda self: iter(()))
    assert told(train(tiny(), CORPUS, CONFIG))[0].steps["loss"] == overfitted[0].steps["loss"]
    text = corpus_from_text("a stitch in time saves nine. " * 60)
    model = Transformer(ModelConfig(text.vocab_size, context_length=16, n_layers=1, d_model=16, n_heads=2))
    history, kept, _ = told(train(model, text, CONFIG.replace(steps=12, learning_rate=2e-3)))
    assert history.best[0] == 12 and not kept


@pytest.mark.parametrize("stop_at", [7, 50])  # before and after the best
def test_a_resumed_run_keeps_the_best_of_the_whole(tmp_path, overfitted, stop_at):
    whole, kept, _ = overfitted
    list(train(tiny(), CORPUS, CONFIG, folder=tmp_path, should_stop=stop_after(stop_at)))
    _, again, _ = told(train(tiny(), CORPUS, CONFIG, folder=tmp_path, resume=True))
    assert again[-1].best_step == kept[-1].best_step and again[-1].val_loss == pytest.approx(kept[-1].val_loss)
    assert all(torch.equal(again[-1].state[name], tensor) for name, tensor in kept[-1].state.items())
    if stop_at == 50:
        assert again[0].step == 50 and again[0].best_step == whole.best[0]  # told at once, for whoever asks meanwhile


def test_a_saved_state_holds_the_best_once(tmp_path, folder, overfitted):
    """Its tensors are written only where they are not the model's own."""
    saved = SavedRun.of(folder)
    assert saved.best == {"step": overfitted[0].best[0], "val_loss": overfitted[0].best[1]}
    names = [name.split("/")[0] for name in saved.tensors]
    assert names.count("best") == names.count("model") > 0
    list(train(tiny(), CORPUS, CONFIG.replace(steps=4), folder=tmp_path))
    saved = SavedRun.of(tmp_path)
    assert saved.best["step"] == 4 and not any(name.startswith("best/") for name in saved.tensors)


PATIENT = CONFIG.replace(patience=3)


@pytest.fixture(scope="module")
def patient():
    return told(train(tiny(), CORPUS, PATIENT))


def test_a_run_stops_when_validation_has_risen_for_long_enough_resumed_or_not(overfitted, patient, tmp_path):
    history, kept, finished = patient
    assert finished.reason == "risen" and finished.step < 60
    before = copy.deepcopy(history)
    for column in before.evaluations.values():
        column.pop()
    assert risen_for(before, 4) < PATIENT.patience <= risen_for(history, 4), "no sooner and no later"
    assert kept[-1].best_step == history.best[0] < finished.step
    whole = overfitted[0].evaluations["val_loss"]
    assert history.evaluations["val_loss"] == whole[: len(history.evaluations["val_loss"])]
    _, _, whole = patient
    list(train(tiny(), CORPUS, PATIENT, folder=tmp_path, should_stop=stop_after(whole.step - 5)))
    _, _, resumed = told(train(tiny(), CORPUS, PATIENT, folder=tmp_path, resume=True))
    assert (resumed.step, resumed.reason, resumed.val_loss) == (whole.step, "risen", whole.val_loss)
    # and whoever wants more than that says so, which is noted
    more = PATIENT.replace(patience=0, steps=whole.step + 2)
    history, _, after = told(train(tiny(), CORPUS, more, folder=tmp_path, resume=True))
    assert after.reason == "done" and history.changes[-1]["settings"]["patience"] == [3, 0]
    assert SavedRun.of(tmp_path).training.patience == 0


def test_a_comparison_goes_to_the_end(monkeypatch):
    from playground.training.comparison import PairPlan, Trained, compare

    dense = tiny().config
    plan = PairPlan(dense, dense.replace(n_experts=2, experts_per_token=1), PATIENT)
    ended = [event for event in compare(plan, CORPUS) if isinstance(event, Trained)]
    assert [event.reason for event in ended] == ["done", "done"]
