"""Limits hold in Python, whatever the page allows: checked one by one, and by raw calls to the page's endpoints."""

from __future__ import annotations

import dataclasses
import json

import pytest

from playground.model import PRESETS, ModelConfig
from playground.service.board import Jobs
from playground.service.limits import LOCAL, PUBLIC, LimitError, limits_here, training_memory
from playground.service.models import Registry
from playground.training import TrainConfig
from playground.ui.api import ENDPOINTS
from playground.ui.app import build_app, launch

from .raw import RawCaller
from .runs import ANNA, BERT, TEXT, small_limits, until


def test_the_public_space_allows_no_more_than_a_local_start():
    for field in dataclasses.fields(PUBLIC):
        if field.name not in ("where", "models"):
            assert getattr(PUBLIC, field.name) <= getattr(LOCAL, field.name), field.name


def test_the_place_decides(monkeypatch):
    monkeypatch.delenv("SPACE_ID", raising=False)
    assert limits_here() is LOCAL
    monkeypatch.setenv("SPACE_ID", "someone/somewhere")
    assert limits_here() is PUBLIC


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"n_layers": 13}, "13 layers are too many: the public Space allows 12"),
        ({"context_length": 257}, "257 tokens of context"),
        ({"vocab_size": 52_001}, "52,001 different tokens"),
        ({"d_model": 512, "n_layers": 8}, "parameters are too many"),
    ],
)
def test_models_beyond_a_limit_are_refused_with_the_limit_named(changes, complaint):
    within = ModelConfig(n_layers=12, context_length=256, d_model=64)
    PUBLIC.check_model(within)
    with pytest.raises(LimitError, match=complaint):
        PUBLIC.check_model(within.replace(**changes))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"batch_size": 65}, "65 windows per step"),
        ({"batch_size": 33, "accumulation": 2}, "66 windows per step"),
        ({"steps": 5001}, "5,001 steps"),
        ({"sample_prompt": "x" * 4001}, "The prompt has 4,001 characters"),
        ({"sample_tokens": 513}, "513 tokens per sample"),
    ],
)
def test_runs_beyond_a_limit_are_refused(changes, complaint):
    PUBLIC.check_training(ModelConfig(), TrainConfig(batch_size=64, steps=5000))
    with pytest.raises(LimitError, match=complaint):
        PUBLIC.check_training(ModelConfig(), TrainConfig(**{"steps": 5000, **changes}))


def test_texts_are_measured_in_bytes_and_generation_in_tokens():
    limits = small_limits(text_bytes=10, new_tokens=5, samples=2, prompt=3)
    limits.check_text("ten bytes.")
    with pytest.raises(LimitError, match="takes at most"):
        limits.check_text("ä" * 6)
    limits.check_generation(5, 2)
    with pytest.raises(LimitError, match="6 new tokens"):
        limits.check_generation(6)
    with pytest.raises(LimitError, match="3 samples"):
        limits.check_generation(5, 3)
    with pytest.raises(LimitError, match="4 characters"):
        limits.check_prompt("four")


def test_memory_is_bounded_even_where_every_single_number_is_allowed():
    wide = ModelConfig(vocab_size=50_000, context_length=256, n_layers=1, d_model=32, n_heads=2)
    config = TrainConfig(batch_size=64)
    assert training_memory(wide, 64) > PUBLIC.memory
    with pytest.raises(LimitError, match=r"would need about \d+\.\d GB"):
        PUBLIC.check_training(wide, config)
    small = PRESETS["small"].config
    assert training_memory(small, 32) > training_memory(small, 16) > training_memory(small.replace(n_layers=2), 16)


# ---- raw calls -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The whole page under tight limits, its jobs, and its address."""
    limits = small_limits(text_bytes=20_000, steps=400, prompt=100, context=64, parameters=300_000, seconds=20.0)
    registry = Registry(limits)
    jobs = Jobs(registry, limits)
    app = build_app(limits, registry, jobs)
    _, address, _ = launch(app, port=None, prevent_thread_lock=True, quiet=True)
    yield address, jobs
    app.close(verbose=False)


EVENTS = {"timer": "tick", "model": "change"}


def press_train(caller: RawCaller, visitor: str, **changes) -> tuple[int, str]:
    """What pressing Train with this form would send."""
    form = {
        "source": "text",
        "text": TEXT,
        "size": "tiny",
        "Context": 16,
        "Layers": 1,
        "Width (d_model)": 16,
        "Attention heads": 2,
        "Steps": 20,
        "prompt": "the ",
        "Steps between evaluations": 100,
        "Steps between samples": 0,
    }
    return caller.call("train-button", **{"browserstate": visitor, **form, **changes})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"text": "x" * 20_001}, "takes at most 0.0 MB"),
        ({"text": "   "}, "There is no text yet"),
        ({"Steps": 401}, "Steps must be from 1 to 400"),
        ({"Steps": 10**12}, "Steps must be from 1 to 400"),
        ({"Steps": 20.5}, "must be a whole number"),
        ({"Steps": "many"}, ""),
        ({"Context": 72}, "greater than maximum value 64"),
        ({"Batch": 100_000}, "greater than maximum value"),
        ({"Layers": -1}, "less than minimum value"),
        ({"Width (d_model)": 400, "Attention heads": 4, "Layers": 3}, "parameters are too many"),
        ({"Attention heads": 3}, "d_model 16 is not divisible by n_heads 3"),
        ({"prompt": "p" * 101}, "The prompt has 101 characters"),
        ({"Learning rate": -1}, "Learning rate must be from"),
        ({"Learning rate": 1e30}, "Learning rate must be from"),
        ({"Seed": -1}, "Seed must be from"),
        ({"Optimizer": "magic"}, "Optimizer must be one of"),
        ({"source": "klingon"}, "not in the list of choices"),
        ({"Pieces of text (tokens)": "telepathy"}, "must be one of characters"),
        ({"Hide the future (causal mask)": "maybe"}, "must be on or off"),
        ({"browserstate": ""}, "reload it"),
        ({"browserstate": None}, "reload it"),
        ({"browserstate": "short"}, "reload it"),
        ({"browserstate": {"visitor": 1}}, "reload it"),
    ],
)
def test_raw_calls_out_of_range_are_refused_with_a_sentence_and_start_nothing(served, changes, complaint):
    address, jobs = served
    status, answer = press_train(RawCaller(address), ANNA, **changes)
    assert status == 500 and complaint in str(json.loads(answer)["error"] or "")
    assert jobs.of(ANNA) == []


def test_a_setting_touched_before_the_page_heard_of_another_texts_choices_is_no_error(served):
    caller = RawCaller(served[0], "a-quick-visitors-session")
    fits = {"Context": 64, "source": "sentences"}  # read in words alone
    status, answer = caller.call("source", "input", **fits)
    assert status == 200, answer
    status, answer = caller.call("Steps", "input", **fits, **{"Pieces of text (tokens)": "char"})
    assert status == 200, answer


def test_a_raw_call_within_the_limits_trains_and_no_other_visitor_can_touch_the_run(served):
    address, jobs = served
    anna, bert = RawCaller(address, "annas-session"), RawCaller(address, "berts-session")
    status, answer = press_train(anna, ANNA, Steps=400)
    assert status == 200, answer
    (job,) = jobs.of(ANNA)
    for chosen in ({}, {"Model on all tabs": job.id}):
        for name, event in (
            ("stop-button", "click"),
            ("resume-button", "click"),
            ("timer", "tick"),
            ("model", "change"),
        ):
            status, answer = bert.call(name, event, **{"browserstate": BERT, **chosen})
            assert job.name not in answer, f"{name} let it be seen"
    assert not job._stop.is_set(), "someone else pressed Stop"
    until(lambda: job.settled)
    assert job.view().history.last_step == 400
    status, answer = anna.call("stop-button", browserstate=ANNA)
    assert status == 200


def test_only_the_endpoints_for_programs_are_public(served):
    address, _ = served
    config = RawCaller(address).config
    public = {d["api_name"] for d in config["dependencies"] if d["backend_fn"] and d["api_visibility"] != "private"}
    assert public == set(ENDPOINTS)
