"""Programs: the documented examples run, answers are what the model computes, and a stranger gets only sentences."""

import re
import sys
from pathlib import Path

import httpx
import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError

from playground.engine import SamplingConfig
from playground.engine import generate as decode
from playground.model import trace
from playground.service.limits import AWAY_SECONDS
from playground.ui.app import build_app

from .raw import serving, web
from .runs import ANNA, BERT, TEXT, ended, small_limits, small_spec, until

ROOT = Path(__file__).resolve().parents[2]
TINY = {"n_layers": 1, "d_model": 16, "n_heads": 2, "context_length": 16, "batch_size": 4, "eval_every": 10, "seed": 3}


@pytest.fixture(scope="module")
def served():
    """A client, the jobs and the registry behind it, and the address."""
    limits = small_limits(text_bytes=20_000, steps=3000, prompt=100, context=128, new_tokens=150, parameters=900_000)
    with serving(build_app(limits)) as (page, address):
        yield Client(address, verbose=False, analytics_enabled=False), page.board, page.registry, address


@pytest.fixture(scope="module")
def trained(served):
    """The events of a small run."""
    client, *_ = served
    return list(client.submit(text=TEXT, steps=30, prompt="the ", settings=TINY, api_name="/train"))


def test_the_example_runs(served, capsys):
    *_, address = served
    (script,) = re.findall(r"```python\n(from gradio_client.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    script = script.replace("http://127.0.0.1:7860", address).replace("steps=200", "steps=5")
    exec(compile(script, "README.md", "exec"), {})
    printed = r"^5 \d\.\d+$(.|\n)*attends most to"
    assert re.search(printed, capsys.readouterr().out.strip(), re.MULTILINE)


def test_a_run_streams_its_story_and_its_model_can_be_used(served, trained):
    client, _, registry, _ = served
    kinds = [event["event"] for event in trained]
    assert kinds[0] == "accepted" and kinds[-1] == "finished"
    last = trained[-1]
    assert last["reason"] == "done" and last["step"] == 30
    assert (last["visitor"], last["model"]) == (trained[0]["visitor"], trained[0]["model"])
    evaluated = [event for event in trained if event["event"] == "evaluated"]
    assert [event["step"] for event in evaluated] == [0, 10, 20, 30]
    checkpoint = registry.get(last["model"], last["visitor"])
    assert [event["val_loss"] for event in evaluated] == checkpoint.history.evaluations["val_loss"]
    assert next(event for event in trained if event["event"] == "baselines")["unigram"] > 0
    mine = client.predict(last["visitor"], api_name="/models")
    assert {"id": last["model"], "name": trained[0]["name"], "shipped": False} in mine


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_text_is_the_decoders(served, trained, precision):
    client, _, registry, _ = served
    mine = {"model": trained[-1]["model"], "visitor": trained[-1]["visitor"], "precision": precision}
    answers = list(
        client.submit("the cat ", **mine, max_new_tokens=20, temperature=0.7, top_k=5, seed=9, api_name="/generate")
    )
    checkpoint = registry.get(mine["model"], mine["visitor"])
    ids = checkpoint.tokenizer.encode("the cat ")
    rules = SamplingConfig(temperature=0.7, top_k=5, seed=9)
    steps = list(decode(checkpoint.model, ids, 20, rules, precision=precision))
    written = [step.tokens[0] for step in steps]
    assert answers[-1]["done"] and not any(answer["done"] for answer in answers[:-1])
    assert answers[-1]["text"] == checkpoint.tokenizer.decode(written)
    chances = [token["probability"] for token in answers[-1]["tokens"]]
    assert chances == pytest.approx([step.model_probability[0] for step in steps], rel=1e-5)


def test_the_head_is_the_models(served, trained):
    client, _, registry, _ = served
    mine = {"model": trained[-1]["model"], "visitor": trained[-1]["visitor"]}
    answer = client.predict("the cat sat", **mine, layer=0, head=1, vectors=True, api_name="/inspect")
    checkpoint = registry.get(mine["model"], mine["visitor"])
    seen = trace(checkpoint.model, torch.tensor([checkpoint.tokenizer.encode("the cat sat")]))
    pattern = torch.tensor(answer["pattern"])
    assert "".join(answer["tokens"]) == "the cat sat"
    assert torch.allclose(pattern, seen["pattern", 0][0, 1], atol=1e-6)
    assert torch.allclose(pattern.sum(dim=1), torch.ones(11), atol=1e-5) and not pattern.triu(1).any()
    assert torch.allclose(torch.tensor(answer["values"]), seen["v", 0][0, :, 1], atol=1e-5)
    scores = torch.tensor(answer["queries"]) @ torch.tensor(answer["keys"]).T / 8**0.5
    assert torch.allclose(scores, torch.tensor(answer["scores"]), atol=1e-4)
    assert "queries" not in client.predict("the cat", **mine, api_name="/inspect")


@pytest.mark.parametrize(
    ("endpoint", "asked", "sentence"),
    [
        ("/train", {"steps": 3001}, "from 1 to 3,000"),
        ("/train", {"text": "x" * 20_001}, "at most"),
        ("/train", {"text": 7}, "a text"),
        ("/train", {"language": "klingon"}, "called 'klingon'"),
        ("/train", {"size": "huge"}, "one of"),
        ("/train", {"settings": {"d_model": 10**9}}, "number from 8"),
        ("/train", {"settings": {"device": "cuda"}}, "called 'device'"),
        ("/train", {"settings": [1]}, "dictionary"),
        ("/train", {"visitor": "short"}, "set up"),
        ("/generate", {"prompt": ""}, "is empty"),
        ("/generate", {"prompt": "p" * 101}, "has 101 characters"),
        ("/generate", {"prompt": "x", "max_new_tokens": 151}, "151 new tokens"),
        ("/generate", {"prompt": "x", "temperature": "hot"}, "from 0 to 100"),
        ("/generate", {"prompt": "x", "model": "nobodys"}, "longer here"),
        ("/generate", {"prompt": "x", "precision": "fp8"}, "'fp8' to"),
        ("/inspect", {"prompt": "Mia", "layer": 99}, "from 0 to"),
        ("/models", {"visitor": {"a": 1}}, "set up"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(served, endpoint, asked, sentence):
    client, jobs, *_ = served
    before = len(jobs._jobs)
    with pytest.raises(AppError, match=re.escape(sentence)):
        client.predict(**asked, api_name=endpoint)
    assert len(jobs._jobs) == before


def test_a_visitors_models_are_nobody_elses(served, trained):
    client, *_ = served
    model = trained[-1]["model"]
    for visitor in ("", ANNA):
        assert model not in str(client.predict(visitor, api_name="/models"))
        for endpoint in ("/generate", "/inspect"):
            with pytest.raises(AppError, match="longer here"):
                client.predict(prompt="the ", model=model, visitor=visitor, api_name=endpoint)


def test_a_client_that_is_gone_without_a_word_gives_its_place_back(served):
    """Its connection is closed, as when the program ends; nobody cancels anything."""
    _, jobs, registry, address = served
    body = {"data": [TEXT, "stories", "tiny", 3000, "", TINY, BERT]}
    event = web("POST", f"{address}gradio_api/call/train", json=body).json()["event_id"]
    with httpx.stream("GET", f"{address}gradio_api/call/train/{event}", verify=False, timeout=60) as stream:
        next(line for line in stream.iter_lines() if "stepped" in line)
    (job,) = jobs.of(BERT)
    ended(job, seconds=AWAY_SECONDS)
    history = job.view().history
    assert history.finished["reason"] == "stopped" and 0 < history.last_step < 3000
    assert registry.has(job.id, BERT), "what was learned is kept"


def test_where_all_places_are_taken_a_caller_is_told_its_place_and_waits(served):
    client, board, *_ = served
    others = [f"other-{number}-" + "o" * 20 for number in range(board.limits.jobs)]
    for other in others:
        board.start(other, small_spec(steps=3000))
    run = client.submit(text=TEXT, steps=20, settings=TINY, api_name="/train")
    events = []
    for event in run:
        events.append(event)
        if event["event"] == "waiting":
            for other in others:
                board.stop(other)
    assert [event["event"] for event in events[:2]] == ["accepted", "waiting"] and events[1]["place"] == 1
    assert events[1]["seconds"] > 0 and events[-1]["event"] == "finished" and events[-1]["step"] == 20
    until(lambda: board.counts()["working"] == 0)


def test_mcp_without_its_package_is_a_sentence(monkeypatch):
    import importlib.util

    import app

    monkeypatch.setattr(sys, "argv", ["app.py", "--mcp"])
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "mcp" else find(name, *rest))
    with pytest.raises(SystemExit, match=r"install 'gradio\[mcp\]'"):
        app.main()
