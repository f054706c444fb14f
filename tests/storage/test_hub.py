"""Pushing, finding and pulling models: the real huggingface_hub against the stand-in Hub on loopback."""

import dataclasses
import json
import re
import tempfile
import traceback

import pytest
import torch

from playground.cli import main
from playground.data import corpus_from_text
from playground.model import ModelConfig, Transformer
from playground.service.hub_page import hub_page
from playground.storage import CheckpointError, load, save
from playground.storage.hub import HubError, pull, push
from playground.training import History, TrainConfig, train
from tests.standins.hub import ANNAS, BERTS, card_errors, front_matter


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    corpus = corpus_from_text("the lamp burns, the sea turns, the night learns. " * 40)
    model = Transformer(ModelConfig(vocab_size=corpus.vocab_size, context_length=16, n_layers=1, d_model=16, n_heads=2))
    history = History()
    config = TrainConfig(steps=6, batch_size=4, eval_every=2, eval_windows=4, warmup_steps=1, sample_prompt="the ")
    for event in train(model, corpus, config):
        history.add(event)
    about = {
        "corpus": 'lamps: "a test"',
        "ladder": corpus.baselines(16, 4).to_dict(),
        "source": {"text": "/home/anna/private/diary.txt"},
    }
    folder = tmp_path_factory.mktemp("hub") / "lamps"
    save(folder, model, corpus.tokenizer, history, name="lamps", about=about)
    return load(folder)


def same(a, b) -> bool:
    """Whether two checkpoints compute the same, read the same and remember the same."""
    ids = torch.tensor([a.tokenizer.encode("the sea turns")])
    with torch.no_grad():
        equal = torch.equal(a.model(ids).logits, b.model(ids).logits)
    return equal and a.history.to_dict() == b.history.to_dict() and b.tokenizer.encode("the sea") == ids[0, :7].tolist()


def test_what_is_pushed_comes_back_the_same_and_a_second_push_updates_it(hub, checkpoint):
    pushed = push(checkpoint, "anna/lamps", hub_page, token=ANNAS)
    assert pushed.created and pushed.url == f"{hub.address}/anna/lamps"
    repo = hub.repo("anna/lamps")
    assert {name: len(data) for name, data in repo.files.items()} == pushed.files
    assert set(repo.files) == {
        "config.json", "tokenizer.json", "model.safetensors", "history.json", "README.md", "curve.svg",
    }  # fmt: skip
    assert repo.commits == ["Push lamps"], "one commit"
    pulled = pull("anna/lamps", token=False)
    assert same(checkpoint, pulled) and pulled.about["revision"] == repo.commit
    assert not any(b"/home/anna" in data for data in repo.files.values()), "nothing of its owner's disk"
    again = push(dataclasses.replace(checkpoint, name="brighter lamps"), "anna/lamps", hub_page, token=ANNAS)
    assert not again.created and len(hub.repo("anna/lamps").commits) == 2
    assert pull("anna/lamps").name == "brighter lamps"
    assert sum(line.startswith("PUT") for line in hub.log) == 1, "weights travel once"


def test_the_card_is_what_the_hub_accepts(hub, checkpoint):
    push(checkpoint, "lamps", hub_page, token=ANNAS)
    card = hub.repo("anna/lamps").files["README.md"].decode()
    assert card_errors(card, "model") == []
    matter = front_matter(card)
    (result,) = matter["model-index"][0]["results"]
    assert result["metrics"][0]["value"] == round(checkpoint.history.val_loss, 4)
    assert result["dataset"]["name"] == 'lamps: "a test"'
    assert "](curve.svg)" in card and "pull anna/lamps" in card and f"{checkpoint.history.val_loss:.4f}" in card


def test_the_shell_pushes_pulls_and_talks(hub, checkpoint, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", ANNAS)
    save(tmp_path / "m", checkpoint.model, checkpoint.tokenizer, checkpoint.history, name="lamps")
    assert main(["push", str(tmp_path / "m"), "anna/lamps", "--dry-run"]) == 0
    assert "model.safetensors" in capsys.readouterr().out and not hub.repos
    assert main(["push", str(tmp_path / "m"), "anna/lamps", "--private", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["repo_id"] == "anna/lamps"
    assert hub.repo("anna/lamps").private
    assert main(["pull", "anna/lamps", "--out", str(tmp_path / "back"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["revision"] == hub.repo("anna/lamps").commit
    assert same(checkpoint, load(tmp_path / "back"))
    assert main(["pull", "anna/lamps", "--out", str(tmp_path / "back")]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"model_type": "qwen3", "head_dim": 10**6, "hidden_size": 1024}, "parameters.*most"),
        ({"model_type": "gpt2", "n_positions": 10**7}, "parameters.*most"),
        ({"format": 1, "context_length": 10**7, "positions": "rotary"}, "context_length is 10,000,000"),
    ],
)
def test_what_cannot_be_opened_is_refused_by_its_config_before_its_weights_are_fetched(hub, config, sentence):
    hub.add(
        "anna/odd", {"config.json": json.dumps(config).encode(), "tokenizer.json": b"{}", "model.safetensors": b"x"}
    )
    with pytest.raises(CheckpointError, match=sentence):
        pull("anna/odd", token=False)
    assert not [line for line in hub.log if "model.safetensors" in line]


def nothing(hub):
    pass


@pytest.mark.parametrize(
    ("prepare", "repo", "token", "sentence"),
    [
        (nothing, "anna/lamps", "hf_expired", "this login"),
        (nothing, "anna/lamps", None, "auth login"),
        (nothing, "anna/lamps", "two words\n", "stored token"),
        (nothing, "bert/lamps", ANNAS, "change bert/lamps"),
        (nothing, "anna/no good!", ANNAS, "repository's name"),
        (nothing, "a/b/c", ANNAS, "repository's name"),
        (lambda hub: hub.add("anna/lamps", {"my.onnx": b"x"}), "anna/lamps", ANNAS, "holds something"),
        (lambda hub: hub.accounts[ANNAS].__setattr__("may_create", False), "anna/lamps", ANNAS, "not change"),
        (lambda hub: hub.__setattr__("down", 503), "anna/lamps", ANNAS, "answered 503"),
        (lambda hub: hub.__setattr__("down", 429), "anna/lamps", ANNAS, "too many"),
        (lambda hub: hub.close(), "anna/lamps", ANNAS, "cannot be"),
    ],
)
def test_a_push_that_fails_is_a_sentence_without_the_token(hub, checkpoint, caplog, prepare, repo, token, sentence):
    prepare(hub)
    with pytest.raises(HubError) as problem:
        push(checkpoint, repo, hub_page, token=token)
    assert re.search(sentence, str(problem.value)) and "\n" not in str(problem.value)
    said = "".join(traceback.format_exception(problem.value)) + caplog.text + str(problem.value)
    assert not token or token.strip() not in said


def holding(**files: bytes):
    """What adds a repository of these files to a hub."""
    return lambda hub: hub.add("anna/odd", {name.replace("__", "."): data for name, data in files.items()})


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (nothing, "anna/odd on"),
        (lambda hub: hub.add("anna/odd", private=True), "private: sign"),
        (holding(README__md=b"hi"), "no model.safetensors"),
        (holding(config__json=b"{}", pytorch_model__bin=b"x"), "pickle, which"),
        (holding(model__safetensors=b"x"), "no config.json"),
        (holding(config__json=b"[]", tokenizer__json=b"{}", model__safetensors=b"x"), "config.json"),
        (holding(config__json=b'{"model_type": null}', tokenizer__json=b"{}", model__safetensors=b"x"), "anna/odd was"),
        (lambda hub: hub.close(), "Hub cannot"),
    ],
)
def test_a_pull_that_fails_is_a_sentence(hub, prepare, sentence):
    prepare(hub)
    with pytest.raises(CheckpointError) as problem:
        pull("anna/odd", token=False)
    assert sentence in str(problem.value) and tempfile.gettempdir() not in str(problem.value)


def test_a_gated_model_says_what_to_do(hub, checkpoint):
    push(checkpoint, "lamps", hub_page, token=ANNAS)
    hub.repo("anna/lamps").gated = True
    with pytest.raises(HubError, match=r"gated.*open"):
        pull("anna/lamps", token=BERTS)
    assert same(checkpoint, pull("anna/lamps", token=ANNAS))


def test_weights_that_are_too_large_are_never_downloaded(hub, checkpoint):
    push(checkpoint, "lamps", hub_page, token=ANNAS)
    hub.repo("anna/lamps").files["model.safetensors"] = bytes(20_000_000)
    with pytest.raises(HubError, match=r"20.*1,000,000"):
        pull("anna/lamps", max_parameters=1_000_000)
    assert not [line for line in hub.log if line.startswith("GET") and "/resolve/" in line]
