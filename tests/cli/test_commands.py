"""The commands as a user types them: what is asked is done or refused in a sentence; a full disk, an interrupt."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

import playground
from playground.cli import main
from playground.data.tokenizers import CharTokenizer
from playground.model import ModelConfig, Transformer
from playground.storage import load, save
from playground.training import TrainConfig, proof
from tests.cli.refusals import check_refused

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ["d_model=16", "context_length=16", "batch_size=4", "eval_every=5", "eval_windows=4"]
SMALL = ["--preset", "tiny", "--set", *SETTINGS]
TEXT = "the lamp burns, the sea turns, the night learns. " * 40


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    (folder / "text.txt").write_text(TEXT)
    assert main(["train", "--text", str(folder / "text.txt"), "--out", str(folder / "m"), "--steps", "15", *SMALL]) == 0
    return folder / "m"


def test_json_events_are_all_that_is_printed(tmp_path, capfd):
    command = ["train", "--language", "brackets", "--out", str(tmp_path / "m"), "--steps", "6", "--json", *SMALL]
    assert main([*command, "norm_bias=false"]) == 0
    events = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert events[0]["event"] == "started" and events[-1]["event"] == "finished"
    evaluated = next(e for e in events if e["event"] == "evaluated" and e["step"] == 5)
    assert set(evaluated) == {"event", "step", "train_loss", "val_loss", "seconds"}
    assert load(tmp_path / "m").about["ladder"]["floor"] > 0 and not load(tmp_path / "m").config.norm_bias


def test_generate_streams_repeats_and_needs_no_cache(trained, capsys):
    texts = []
    for extra in ([], [], ["--no-cache"]):
        assert (
            main(["generate", str(trained), "--prompt", "the ", "--max-new-tokens", "30", "--seed", "4", *extra]) == 0
        )
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] == texts[2]
    assert texts[0].startswith("the ") and len(texts[0]) == 4 + 30 + 1
    main(["generate", str(trained), "--prompt", "the ", "--max-new-tokens", "5", "--seed", "4", "--json"])
    tokens = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert "".join(t["text"] for t in tokens) == texts[0][4:9]
    assert all(0 < t["probability"] <= 1 for t in tokens)


def test_an_interrupt_keeps_what_was_learned_and_resume_goes_on(tmp_path, capsys):
    out = tmp_path / "m"
    (tmp_path / "text.txt").write_text(TEXT)
    command = [sys.executable, "-m", "playground", "train", "--text", str(tmp_path / "text.txt"), "--out", str(out)]
    process = subprocess.Popen([*command, "--json", *SMALL, "--steps", "100000"], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if json.loads(line)["step"] >= 20:
            process.send_signal(signal.SIGINT)
            break
    rest = process.stdout.read().splitlines()
    assert process.wait() == 130
    process.stdout.close()
    stopped = json.loads(rest[-1])
    assert stopped["event"] == "finished" and stopped["reason"] == "stopped"
    saved = load(out)
    assert saved.history.last_step == stopped["step"]
    assert main(["train", "--out", str(out), "--resume", "--steps", str(stopped["step"] + 5), "--json"]) == 0
    steps = [json.loads(line)["step"] for line in capsys.readouterr().out.splitlines() if '"stepped"' in line]
    assert steps == list(range(stopped["step"] + 1, stopped["step"] + 6))
    assert load(out).history.last_step == stopped["step"] + 5


FAR_TOO_SHORT = [
    *("--preset", "tiny", "--set", "context_length=32", "n_layers=1", "batch_size=8", "schedule=constant"),
    *("eval_every=4", "eval_windows=none", "precision=fp32", "device=cpu"),
]


@pytest.fixture(scope="module")
def overfitted(tmp_path_factory):
    """A run on far too short a text, and what the command printed."""
    folder, said = tmp_path_factory.mktemp("overfitted"), io.StringIO()
    text = (Path(playground.__file__).parent / "data/texts/lighthouse.txt").read_text(encoding="utf-8")[:1500]
    (folder / "text.txt").write_text(text, encoding="utf-8")
    command = ["train", "--text", str(folder / "text.txt"), "--out", str(folder / "m"), "--steps", "80"]
    with contextlib.redirect_stdout(said):
        assert main([*command, *FAR_TOO_SHORT]) == 0
    return folder / "m", said.getvalue()


def test_a_validation_loss_that_rose_is_said_and_the_best_weights_can_be_used(overfitted, capsys):
    """While the run goes on, at its end, and by whoever opens the folder later."""
    folder, said = overfitted
    step, best = load(folder).history.best
    lines = [line for line in said.splitlines() if line.startswith("Overfitting")]
    assert len(lines) >= 2 and said.index(lines[0]) < said.index("step     72") and f"{best:.4f}" in lines[-1]
    assert main(["info", str(folder)]) == 0
    assert lines[-1] in capsys.readouterr().out
    assert main(["info", str(folder), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["state"]["kind"] == "overfitting" and facts["best"] == {"step": step, "val_loss": best, "kept": True}
    written = {}
    for which in ("best", str(step), "80"):
        command = ["generate", str(folder), "--prompt", "The ", "--max-new-tokens", "40", "--greedy", "--step", which]
        assert main(command) == 0
        written[which] = capsys.readouterr().out
    assert written["best"] == written[str(step)] != written["80"]


@pytest.mark.parametrize(("step", "words"), [("3", "step 3:"), ("x", "no step")])
def test_a_step_that_was_not_kept_is_refused(overfitted, capsys, step, words):
    check_refused(capsys, ["generate", overfitted[0], "--prompt", "The ", "--step", step], words)


def test_a_run_that_was_patient_long_enough_is_resumed_only_on_purpose(tmp_path, overfitted, capsys):
    out = tmp_path / "m"
    command = ["train", "--text", str(overfitted[0].parent / "text.txt"), "--out", str(out), "--steps", "99"]
    assert main([*command, *FAR_TOO_SHORT, "patience=2"]) == 0
    stopped = load(out).history.last_step
    assert stopped < 99
    check_refused(capsys, ["train", "--out", out, "--resume"], "--set patience=0")
    assert main(["train", "--out", str(out), "--resume", "--steps", str(stopped + 3), "--set", "patience=0"]) == 0
    assert load(out).history.last_step == stopped + 3


def test_a_reader_who_has_seen_enough_gets_no_traceback(trained):
    command = f"{sys.executable} -m playground generate {trained} --prompt the --max-new-tokens 200 --json | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["index"] == 0
    assert "Traceback" not in done.stderr


def test_a_full_disk_is_a_sentence_and_a_reader_who_leaves_does_not_end_the_run(tmp_path, monkeypatch, capsys):
    def full(*args, **more):
        raise SafetensorError("I/O error: No space left on device")

    monkeypatch.setattr("playground.cli.train.save", full)
    language = ["train", "--language", "brackets", "--steps", "8", "--out", str(tmp_path / "m"), *SMALL]
    assert main(language) == 2
    assert "written: I/O" in capsys.readouterr().err
    (tmp_path / "text.txt").write_text(TEXT)
    command = [sys.executable, "-m", "playground", "train", "--text", str(tmp_path / "text.txt"), "--steps", "8"]
    run = subprocess.Popen(
        [*command, "--out", str(tmp_path / "m"), *SMALL], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    run.stdout.readline()
    run.stdout.close()
    assert run.wait(120) == 0
    assert load(tmp_path / "m").history.last_step == 8


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
@pytest.mark.parametrize("program", [["-m", "playground", "info", "nowhere"], ["app.py", "--port", "7959"]])
@pytest.mark.parametrize("seconds", [0.4, 0.9])
def test_an_interrupt_while_the_program_starts_is_quiet(program, seconds):
    run = subprocess.Popen([sys.executable, *program], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    time.sleep(seconds)  # in which torch's C++ starts, or Python's part of it, or gradio
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=60)[1]
    assert "Traceback" not in said and run.returncode in (2, 130, -signal.SIGINT)  # or before Python listens


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
    command = ["train", "--language", "brackets", "--steps", "4", "--prompt", "([", "--out", str(tmp_path / "m")]
    assert main([*command, *SMALL]) == 0
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
