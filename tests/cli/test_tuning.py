"""Fine-tuning, evaluating, comparing and sweeps in the shell: what is done and kept, and what is refused."""

import json
import re

import pytest
import torch

from playground.cli import main, plan
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.model import ModelConfig, Transformer
from playground.service import limits
from playground.storage import load, save
from playground.words.tuning import noted_result
from tests.cli.refusals import check_refused

OLD, NEW = "the old sea sang to the old lamp. " * 60, "a lamp told the sea to sing at last. " * 60
CONFIG = ModelConfig(context_length=16, n_layers=1, d_model=16, n_heads=2)
SETTINGS = ["--set", "device=cpu", "precision=fp32", "batch_size=4", "eval_every=0"]


def make(folder, tokenizer):
    return save(folder, Transformer(CONFIG.replace(vocab_size=tokenizer.vocab_size), seed=3), tokenizer, name="parent")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuning")
    make(folder / "chars", CharTokenizer.from_text(OLD + NEW))
    make(folder / "words", WordTokenizer.from_text(OLD + NEW))
    for name, text in (("old", OLD), ("new", NEW), ("short", "a sea"), ("greek", NEW + "Ὀδυσσεύς " * 60)):
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


def tuning(here, out, *more, parent="chars", text="new") -> list[str]:
    arguments = ["train", "--from", str(here / parent), "--text", str(here / f"{text}.txt"), "--out", str(out)]
    return [*arguments, *SETTINGS, *more]


def tune(*arguments, **options) -> int:
    return main(tuning(*arguments, **options))


def test_no_steps_change_nothing_and_a_shorter_context_is_the_same_model(here, tmp_path, capsys):
    assert tune(here, tmp_path / "m", "--steps", "0") == 0
    before, after = (load(folder).model.state_dict() for folder in (here / "chars", tmp_path / "m"))
    assert all(torch.equal(before[name], after[name]) for name in before | after)
    assert "Nothing has changed." in capsys.readouterr().out
    assert tune(here, tmp_path / "short", "--steps", "0", "--set", "context_length=8") == 0
    ids = torch.arange(8)[None]
    with torch.no_grad():
        one, other = (load(folder).model(ids).logits for folder in (here / "chars", tmp_path / "short"))
    assert torch.allclose(one, other, atol=1e-6) and load(tmp_path / "short").config.context_length == 8


def test_a_tuned_model_keeps_its_tokenizer_and_says_what_it_forgot_of_a_text_it_knows(here, tmp_path, capsys):
    assert tune(here, tmp_path / "m", "--steps", "12", "--old-text", str(here / "old.txt"), "--prompt", "the") == 0
    made, parent = load(tmp_path / "m"), load(here / "chars")
    assert made.tokenizer.to_dict() == parent.tokenizer.to_dict()
    assert made.about["parent"]["name"] == "parent" and len(made.about["parent"]["weights_sha256"]) == 64
    said = capsys.readouterr().out
    assert re.search("It predicts (the new text|both texts) better", said) and "Old text: loss" in said
    assert said.count("  before | the") == said.count("  after  | the") == 2
    text = tmp_path / "own.txt"
    text.write_text(OLD + NEW, encoding="utf-8")
    more = ["--preset", "tiny", "--set", "context_length=16", "d_model=16", "n_layers=1", *SETTINGS[1:]]
    assert main(["train", "--text", str(text), "--out", str(tmp_path / "own"), "--steps", "2", *more]) == 0
    assert tune(tmp_path, tmp_path / "one", "--steps", "0", parent="own", text="own") == 0
    one, said = load(tmp_path / "one"), capsys.readouterr().out
    tuning = one.about["tuning"]
    assert tuning["before"]["old"] is not None
    assert tuning["ladder"] == load(tmp_path / "own").about["ladder"], "by which what it forgot is graded"
    assert said.count(str(noted_result(tuning))) == 1
    (tmp_path / "other.txt").write_text(OLD, encoding="utf-8")
    text.write_text(NEW, encoding="utf-8")
    assert tune(tmp_path, tmp_path / "two", "--steps", "0", parent="own", text="other") == 0
    assert load(tmp_path / "two").about["tuning"]["before"]["old"] is None


def test_a_tuned_run_goes_on_from_where_it_stopped(here, tmp_path, capsys):
    one, two = tmp_path / "one", tmp_path / "two"
    assert tune(here, one, "--steps", "8", "--set", "schedule=constant", "warmup_steps=0") == 0
    assert tune(here, two, "--steps", "4", "--set", "schedule=constant", "warmup_steps=0") == 0
    before = load(two).about["tuning"]["before"]
    assert main(["train", "--resume", "--out", str(two), "--steps", "8"]) == 0
    assert all(torch.equal(a, b) for a, b in zip(*(load(out).model.state_dict().values() for out in (one, two))))
    assert load(two).about["tuning"]["before"]["new"]["total"] == pytest.approx(before["new"]["total"])
    capsys.readouterr()
    check_refused(capsys, ["train", "--resume", "--out", two, "--steps", 9, "--from", here / "chars"], "leave --from")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--text", "{greek}"], "characters lack"),
        (["--text", "{short}"], "the text has only 5 tokens"),
        (["--preset", "tiny"], "leave --preset out"),
        (["--tokenizer", "bpe"], "leave --tokenizer out"),
        (["--set", "d_model=32"], "leave --set d_model out"),
        (["--set", "context_length=32"], "cannot become longer"),
        (["--on", "hf-jobs"], "only on this machine"),
        (["--from", "{nowhere}"], "does not exist"),
    ],
)
def test_what_cannot_be_tuned_is_refused(here, tmp_path, capsys, more, sentence):
    places = {name: here / f"{name}.txt" for name in ("greek", "short")} | {"nowhere": here / "nowhere"}
    check_refused(capsys, tuning(here, tmp_path / "m", *(each.format(**places) for each in more)), sentence)
    assert not (tmp_path / "m").exists()


def test_a_model_without_room_and_options_of_tuning_without_a_model_are_refused(here, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(plan, "free_memory", lambda device: 100_000)
    monkeypatch.setattr("playground.storage.checkpoint.read_tensors", lambda *_: pytest.fail("weights were read"))
    check_refused(capsys, tuning(here, tmp_path / "m"), "this machine has 0.0 GB for it")
    assert limits.training_memory(CONFIG, 4) > 100_000
    arguments = ["train", "--old-text", here / "old.txt", "--out", tmp_path / "m"]
    check_refused(capsys, arguments, "--old-text needs a model")


def test_two_models_are_compared_on_one_scale(here, capsys):
    chars, words, text = str(here / "chars"), str(here / "words"), str(here / "new.txt")
    told = []
    for folders in ((chars, words), (words, chars)):
        assert main(["compare", *folders, "--text", text, "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0]["difference"] == -told[1]["difference"] != 0 and told[0]["margin"] == told[1]["margin"]
    assert main(["evaluate", chars, "--text", text, "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert alone["bits_per_byte"] == told[0]["models"][0]["bits_per_byte"] and alone["bytes"] == len(NEW.strip()) - 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["evaluate", "{here}/chars", "--text", "{here}/none.txt"], "cannot be read"),
        (["evaluate", "{here}/chars", "--text", "{here}/short.txt"], "takes a text of more than 100"),
        (["evaluate", "{here}", "--text", "{here}/new.txt"], "is not a checkpoint"),
        (["compare", "{here}/chars", "{here}/none", "--text", "{here}/new.txt"], "does not exist"),
    ],
)
def test_what_cannot_be_judged_is_refused(here, capsys, arguments, sentence):
    check_refused(capsys, [argument.format(here=here) for argument in arguments], sentence)


SMALL = ["--preset", "tiny", "--set", "d_model=16", "context_length=16", "batch_size=4", "eval_windows=4",
         "device=cpu", "precision=fp32", "eval_every=0"]  # fmt: skip


def sweep(out, *more) -> list[str]:
    return ["train", "--language", "brackets", "--steps", "6", "--out", str(out), *SMALL, *more]


def test_the_best_value_and_its_spread_are_told_and_its_model_is_saved(tmp_path, capsys):
    assert main(sweep(tmp_path / "m", "--sweep", "n_layers=1,2", "--seeds", "2", "--json")) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in told] == ["tried"] * 4 + ["swept"]
    best = min(told[-1]["rows"], key=lambda row: row["mean"])
    made = load(tmp_path / "m")
    assert made.config.n_layers == best["value"] and made.history.val_loss == pytest.approx(best["losses"][0], rel=1e-5)
    assert made.about["sweep"]["setting"] == "n_layers" and best["margin"] > 0


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--sweep", "learning_rate"], "needs NAME=A,B"),
        (["--sweep", "learning_rate=0.1,high"], "learning_rate must be a number"),
        (["--sweep", "learning_rat=0.1,0.2"], "did you mean learning_rate"),
        (["--sweep", "n_heads=2,3"], "not divisible"),
        (["--sweep", "d_model=16,32"], "--set and --sweep both give d_model"),
        (["--sweep", "learning_rate=0.1,0.2", "--resume"], "leave --resume"),
        (["--seeds", "2"], "--seeds is for a sweep"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, capsys, more, sentence):
    check_refused(capsys, sweep(tmp_path / "m", *more), sentence)
    assert not (tmp_path / "m").exists()
