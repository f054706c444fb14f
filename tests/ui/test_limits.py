"""Limits hold in Python, whatever the page allows: raw calls to the page's endpoints meet the same sentences."""

import html
import json

import pytest

from playground.ui.api import ENDPOINTS
from playground.ui.app import build_app

from .panels import PanelCaller
from .raw import RawCaller, serving
from .runs import ANNA, BERT, TEXT, ended, small_limits

# ---- raw calls -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served():
    """The whole page under tight limits, its jobs, and its address."""
    limits = small_limits(text_bytes=20_000, steps=400, prompt=100, context=64, parameters=300_000, seconds=20.0)
    with serving(build_app(limits)) as (page, address):
        yield address, page.board


def press_train(caller: RawCaller, visitor: str, **changes) -> tuple[int, str]:
    """What pressing Train with this form would send."""
    form = {"learn": "text", "text": TEXT, "size": "tiny", "prompt": "the ", "context_length": 16, "n_layers": 1}
    form |= {"d_model": 16, "n_heads": 2, "steps": 20, "eval_every": 100, "sample_every": 0}
    return caller.form("train_form", visitor, **{**form, **changes})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"text": "x" * 20_001}, "0.0 MB"),
        ({"steps": 401}, "from 1 to 400"),
        ({"steps": "many"}, "not 'many'"),
        ({"steps": None}, "Steps is empty"),
        ({"context_length": 72}, "from 8 to 64"),
        ({"d_model": 400, "n_heads": 4, "n_layers": 3}, "too many"),
        ({"n_heads": 3}, "heads” 3"),
        ({"prompt": "p" * 101}, "101 characters"),
        ({"learning_rate": 1e30}, "Learning rate"),
        ({"optimizer": "magic"}, "Optimizer must"),
        ({"learn": "example", "source": "klingon"}, "an example"),
        ({"tokenizer": "telepathy"}, "one of"),
        ({"causal": "maybe"}, "on or"),
        ({"own_kind": "carrier pigeon"}, "went wrong"),
        ({"text": ["a text"]}, "went wrong"),
    ],
)
def test_raw_calls_out_of_range_are_refused_with_a_sentence_and_start_nothing(served, changes, complaint):
    address, jobs = served
    status, answer = press_train(RawCaller(address), ANNA, **changes)
    assert complaint in html.unescape(str(json.loads(answer))) and status == 200
    assert jobs.of(ANNA) == []


def test_a_setting_touched_before_the_page_heard_of_another_texts_choices_is_no_error(served):
    caller = RawCaller(served[0], "a-quick-visitors-session")
    fits = {"context_length": 64, "source": "sentences"}  # read in words alone
    for causes in (["source"], ["fields"]):
        status, answer = caller.form("train_form", ANNA, causes, **fits, tokenizer="char")
        assert status == 200 and "problem" not in json.loads(answer), answer


def test_a_raw_call_within_the_limits_trains_and_no_other_visitor_can_touch_the_run(served):
    address, jobs = served
    anna, bert = RawCaller(address, "annas-session"), RawCaller(address, "berts-session")
    status, answer = press_train(anna, ANNA, steps=200)
    assert status == 200, answer
    (job,) = jobs.of(ANNA)
    panel = PanelCaller(address, BERT, "train", job.id)
    for deed in ("stop_run", "resume_run", "use_best", "rename_run", "delete_run"):
        assert job.name not in str(panel.do(deed, of=job.id, rename="mine")), f"{deed} let it be seen"
    _, answer = bert.call("renew-models", browserstate=BERT, model=job.id)
    assert job.name not in answer + str(panel.look()) + str(panel.news())
    assert not job._stop.is_set(), "someone else pressed Stop"
    ended(job)
    assert job.view().history.last_step == 200 and job.name in str(PanelCaller(address, ANNA, "train", job.id).look())


@pytest.mark.parametrize("visitor", ["x" * 48, "x" * 24, ANNA[:-1] + "-", "", "short", None, 7, [ANNA], {"visitor": 1}])
def test_a_visitor_whom_the_server_has_not_made_trains_nothing(served, visitor):
    """The page's own handler took any id of 20 to 64 letters: 64 invented ones filled the line."""
    address, jobs = served
    before = jobs.counts()["remembered"]
    status, answer = press_train(RawCaller(address, "invented"), visitor, steps=400)
    assert status == 400 and "the page" in json.loads(answer)["problem"] and jobs.counts()["remembered"] == before


def test_only_the_endpoints_for_programs_are_public(served):
    address, _ = served
    config = RawCaller(address).config
    public = {d["api_name"] for d in config["dependencies"] if d["backend_fn"] and d["api_visibility"] != "private"}
    assert public == set(ENDPOINTS)


def test_no_handler_keeps_all_other_visitors_waiting():
    """Gradio takes one event at a time of every handler that says nothing else."""
    app = build_app(small_limits())
    lanes = {fn.api_name: fn.concurrency_limit for fn in app.fns.values() if fn.fn and fn.queue is not False}
    assert lanes.keys() == set(ENDPOINTS) and not [most for most in lanes.values() if most is not None and most < 2]
