"""What is asked in the shell is done, or refused in a sentence: nothing is ignored in silence."""

import json
import os
import time
from pathlib import Path

import pytest
import torch

from playground.cli import main
from playground.data.tokenizers import CharTokenizer
from playground.model import ModelConfig, Transformer
from playground.storage import load, save
from playground.training import TrainConfig, proof
from tests.cli.refusals import check_refused

SMALL = ["--preset", "tiny", "--set", "d_model=16", "context_length=16", "batch_size=2", "eval_every=4",
         "eval_windows=2", "device=cpu", "precision=fp32"]  # fmt: skip


def train(out: Path, *more: str) -> int:
    return main(["train", "--language", "brackets", "--steps", "4", "--out", str(out), *SMALL, *more])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model of one layer and one head that reads sixteen characters."""
    config = ModelConfig(vocab_size=5, context_length=16, n_layers=1, d_model=8, n_heads=1)
    return save(tmp_path_factory.mktemp("asked") / "m", Transformer(config), CharTokenizer("abcd"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "--out", "{new}", "--set", "d_model=64", "d_model=48"], "d_model twice"),
        (["train", "--out", "{new}", "--steps", "8", "--set", "steps=9"], "--set steps"),
        (["train", "--out", "{new}", "--prompt", "", "--set", "sample_prompt=a"], "--set sample_prompt"),
        (["train", "--out", "{new}", "--flavor", "t4-small"], "--on hf-jobs"),
        (["train", "--out", "{new}", "--language", "klingon"], "dialects, sentences\n"),
        (["train", "--out", "{new}", "--set", "device=cpu:3"], "machine: choose"),
        (["generate", "{made}", "--prompt", "a", "--greedy", "--temperature", "2"], "whatever --temperature"),
        (["generate", "{text}", "--prompt", "a"], "file: choose"),
        (["export", "{made}", "--out", "{text}"], "file: name"),
        (["train", "--text", "/no/such/file", "--out", "{new}"], "/no/such/file cannot"),
        (["train", "--out", "{made}"], "exists already"),
        (["train", "--out", "{new}", "--set", "d_modle=3"], "mean d_model?"),
        (["train", "--out", "{new}", "--set", "d_model"], "needs NAME=VALUE"),
        (["train", "--out", "{new}", "--set", "causal=maybe"], "causal must be true or false"),
        (["train", "--out", "{new}", "--seed", "-1"], "--seed must"),
        (["train", "--out", "{new}", "--resume"], "not exist"),
        (["train", "--out", "{new}", "--vocab-size", "300"], "--vocab-size bounds"),
        (["train", "--out", "{new}", "--language", "sentences", "--tokenizer", "bpe"], "word, not"),
        (["train"], "--out"),
        (["generate", "/no/such/folder", "--prompt", "x"], "/no/such/folder does"),
        (["generate", "{made}", "--prompt", "a", "--slide-by", "0"], "slide_by must"),
        (["info", "{empty}"], "no config.json"),
        (["dance"], "invalid choice"),
        # what no machine has is refused before anything is made
        (["train", "--out", "{new}", "--set", "d_model=1000000"], "at most"),
        (["train", "--out", "{new}", "--set", "context_length=100000000"], "at most"),
        (["train", "--out", "{new}", "--set", "batch_size=99999999999"], "100,000 windows"),
        (["train", "--out", "{new}", "--vocab-size", "1000000000"], "1,000,000"),
        (["train", "--out", "{new}", "--text", ""], "folder: name"),
        (["train", "--out", "{new}", "--text", os.devnull], "read again"),
        (["train", "--out", "{new}", "--preset", ""], "called ''"),
    ],
)
def test_what_cannot_be_heeded_is_refused_by_name(made, tmp_path, capsys, arguments, sentence):
    (tmp_path / "text.txt").write_text("no model")
    places = {"new": tmp_path / "new", "made": made, "text": tmp_path / "text.txt", "empty": tmp_path}
    began = time.process_time()
    check_refused(capsys, [argument.format(**places) for argument in arguments], sentence)
    assert time.process_time() - began < 2 and not (tmp_path / "new").exists()


def test_a_prompt_may_be_empty_and_one_longer_than_the_context_is_said(tmp_path, capsys, made):
    assert train(tmp_path / "m", "--prompt", "([") == 0
    assert main(["train", "--resume", "--out", str(tmp_path / "m"), "--steps", "8", "--prompt", "", "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [event["settings"]["sample_prompt"] for event in told if event["event"] == "changed"] == [["([", ""]]
    assert {event["prompt"] for event in told if event["event"] == "sampled"} == {""}
    checkpoint = load(tmp_path / "m")
    assert checkpoint.about["prompt"] == checkpoint.about["training"]["sample_prompt"] == ""
    for prompt, said in (("abcd" * 4, ""), ("abcd" * 5, "last 16,")):
        assert main(["generate", str(made), "--prompt", prompt, "--max-new-tokens", "1"]) == 0
        err = capsys.readouterr().err
        assert said in err and bool(err) == bool(said)


def test_fp16_on_a_gpu_that_fails_its_proof_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(proof, "pick_device", lambda name, work: torch.device("cuda"))
    wrong = proof.Fault("cuda:0", "float16", "the decoding", 0.09)
    monkeypatch.setattr(proof, "fault", lambda device, dtype: wrong)
    model = ModelConfig(vocab_size=4, context_length=16, n_layers=1, d_model=8, n_heads=1)
    with pytest.raises(ValueError, match=r"9.0%.*fp32"):
        proof.device_for(TrainConfig(precision="fp16"), model)
    assert proof.device_for(TrainConfig(precision="fp32"), model) == (torch.device("cpu"), wrong)
