"""Training in borrowed slices is training in one piece, whatever becomes of the worker; checked with a stand-in."""

import itertools
import os

import pytest
import torch

from playground.data import corpus_from_text
from playground.devices import pick_device
from playground.model import Transformer
from playground.service import zerogpu
from playground.service.runs import Predicted, run_training
from playground.service.zerogpu import run_in_slices, train_in_slices
from playground.training import Finished, Noticed, Saved, SettingsChanged, Stepped, TrainConfig, train
from playground.training.events import NO_GPU
from tests.standins.zerogpu import Lender
from tests.ui.runs import MODEL, TEXT, small_limits, small_spec

SETTINGS = {"batch_size": 4, "eval_every": 6, "eval_windows": 8, "warmup_steps": 2, "sample_every": 8}
CONFIG = TrainConfig(steps=24, sample_prompt="the ", sample_tokens=8, precision="fp32", **SETTINGS)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """As a forked worker has: on two, sums are added in another order, and what rounding makes of them grows."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def lender(monkeypatch):
    """Slices of six steps each on a pretended GPU, which is the processor of a forked worker."""
    if torch.cuda.is_available():
        pytest.skip("beside a GPU, a process that has trained, even on the CPU, cannot be forked")
    lender, clock = Lender(), itertools.count()
    monkeypatch.setattr(zerogpu, "on_gpu", lender.GPU(zerogpu.REQUESTED_SECONDS)(zerogpu.work))
    monkeypatch.setattr(zerogpu, "DEVICE", "cpu")
    monkeypatch.setattr(zerogpu, "monotonic", lambda: next(clock))  # asked after every state
    monkeypatch.setattr(zerogpu, "SLICE_SECONDS", 6)
    monkeypatch.setattr(zerogpu, "STATE_SECONDS", 0.0)
    yield lender
    lender.close()


def corpus_and_model(**changes):
    corpus = corpus_from_text(TEXT)
    return corpus, Transformer(MODEL.replace(**{"vocab_size": corpus.vocab_size, **changes}), seed=3)


def told(events) -> list[dict]:
    """What happened, without wall-clock times and without saves, of which slices make more."""
    kept = [event for event in events if not isinstance(event, (Saved, Noticed))]
    clock = ("seconds", "tokens_per_second", "time_left")
    return [{k: v for k, v in event.to_dict().items() if k not in clock} for event in kept]


@torch.no_grad()
def assert_same(told, model, one_piece) -> None:
    """Event by event, losses to six digits (another process may add in another order).

    Not every weight need be equal: a bias of the keys changes nothing, so its gradient is rounding noise.
    """
    expected, whole = one_piece
    assert [(e["event"], e["step"]) for e in told] == [(e["event"], e["step"]) for e in expected]
    for a, b in zip(told, expected):
        numbers = {k: v for k, v in b.items() if isinstance(v, float)}
        assert {k: a[k] for k in numbers} == pytest.approx(numbers, rel=1e-5)
        assert a.get("norms", {}) == pytest.approx(b.get("norms", {}), rel=1e-4)
        words = ("text", "prompt", "reason", "message", "steps", "n_parameters")
        assert {k: a[k] for k in words if k in a} == {k: b[k] for k in words if k in b}
    ids = torch.arange(12)[None]
    assert torch.allclose(model(ids).logits, whole(ids).logits, atol=1e-4)


@pytest.fixture(scope="module")
def in_one_piece():
    """The same run without slices, as (story, model). Made first, so that forked workers find torch warmed up."""
    corpus, model = corpus_and_model()
    return told(train(model, corpus, CONFIG.replace(device="cpu"))), model


def test_a_run_in_slices_is_the_run_in_one_piece_and_its_samples_belong_to_their_steps(in_one_piece, lender):
    corpus, model = corpus_and_model()
    events = list(train_in_slices(model, corpus, CONFIG))
    assert lender.slices == 4 and os.getpid() not in lender.pids
    assert set(lender.durations) == {zerogpu.REQUESTED_SECONDS} and 10 <= zerogpu.REQUESTED_SECONDS <= 30
    assert_same(told(events), model, in_one_piece)
    assert {p.device.type for p in model.parameters()} == {"cpu"}
    # Predicted probabilities belong to their step, though the worker is ahead by then.
    limits, settings = small_limits(), {"steps": 24, "sample_every": 8, "precision": "fp32"}
    here = run_training(small_spec(**settings, device="cpu"), limits)
    expected = [event for event in here if isinstance(event, Predicted)]
    seen = [event for event in run_in_slices(small_spec(**settings), limits) if isinstance(event, Predicted)]
    assert [event.step for event in seen] == [event.step for event in expected] == [0, 0, 8, 16, 24, 24]
    assert all(torch.allclose(a.probabilities, b.probabilities, atol=1e-5) for a, b in zip(seen, expected))


def test_stop_keeps_what_was_shown_and_resume_goes_on_from_there(in_one_piece, lender, tmp_path):
    corpus, model = corpus_and_model()
    steps: list[int] = []
    events = []
    for event in train_in_slices(model, corpus, CONFIG, folder=tmp_path, should_stop=lambda: len(steps) >= 5):
        events.append(event)
        if isinstance(event, Stepped):
            steps.append(event.step)
    finished = events[-1]
    assert isinstance(finished, Finished) and finished.reason == "stopped" and 5 <= finished.step < 24
    assert steps == list(range(1, finished.step + 1)), "not a step is shown that is not kept"
    corpus, again = corpus_and_model()
    more = list(train_in_slices(again, corpus, CONFIG, folder=tmp_path, resume=True))
    expected, whole = in_one_piece
    later, whole_story = (
        [e for e in story if e["event"] == "stepped" and e["step"] > finished.step] for story in (told(more), expected)
    )
    assert len(later) == 24 - finished.step
    assert_same(later, again, (whole_story, whole))


def test_slices_keep_the_rules_of_resuming(in_one_piece, lender, tmp_path):
    corpus, model = corpus_and_model()
    list(train(model, corpus, CONFIG.replace(steps=8, device="cpu"), folder=tmp_path))
    with pytest.raises(ValueError, match="now 8"):
        list(train_in_slices(model, corpus, CONFIG.replace(batch_size=8), folder=tmp_path, resume=True))
    events = list(train_in_slices(model, corpus, CONFIG, folder=tmp_path, resume=True))
    changed = [event for event in events if isinstance(event, SettingsChanged)]
    assert lender.slices > 2 and [event.settings["steps"] for event in changed] == [[8, 24]], "once, not in every slice"


@pytest.mark.parametrize("slices", [0, 1])
def test_without_a_gpu_the_run_goes_on_on_the_processor(in_one_piece, lender, slices):
    lender.calls_left = slices
    corpus, model = corpus_and_model()
    events = list(train_in_slices(model, corpus, CONFIG))
    assert lender.slices == slices
    assert [event.kind for event in events if isinstance(event, Noticed)] == [NO_GPU]
    assert_same(told(events), model, in_one_piece)


def test_a_worker_that_dies_loses_nothing_that_was_shown(in_one_piece, lender, monkeypatch):
    def work_and_die(sent):
        for i, parcel in enumerate(zerogpu.work(sent)):
            if i == 4:
                os._exit(1)
            yield parcel

    monkeypatch.setattr(zerogpu, "on_gpu", lender.GPU(25)(work_and_die))
    corpus, model = corpus_and_model()
    events = list(train_in_slices(model, corpus, CONFIG))
    assert lender.slices == 1 and NO_GPU in [event.kind for event in events if isinstance(event, Noticed)]
    assert_same(told(events), model, in_one_piece)


def test_what_the_worker_refuses_is_the_same_sentence_and_nobody_takes_a_gpu_unasked(lender, monkeypatch):
    corpus, model = corpus_and_model(vocab_size=4)
    with pytest.raises(ValueError, match=r"different.*4"):
        list(train_in_slices(model, corpus, CONFIG))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # as ZeroGPU pretends in the main process
    assert pick_device("auto").type == "cuda"
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    assert pick_device("auto").type == "cpu" and pick_device("cuda").type == "cuda"
