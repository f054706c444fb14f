"""The commands as a user types them: train, generate, info; errors are one sentence and exit code 2."""

import json
import random
import signal
import subprocess
import sys

import pytest
import torch

from playground.cli import main
from playground.data.intake import MAX_BYTES
from playground.data.ladder import NO_MASK
from playground.storage import load

SMALL = [
    "--preset",
    "tiny",
    "--set",
    "d_model=16",
    "context_length=16",
    "batch_size=4",
    "eval_every=5",
    "eval_windows=4",
]
TEXT = "the lamp burns, the sea turns, the night learns. " * 40


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    (folder / "text.txt").write_text(TEXT)
    assert main(["train", "--text", str(folder / "text.txt"), "--out", str(folder / "m"), "--steps", "15", *SMALL]) == 0
    return folder / "m"


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "playground", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def test_training_writes_a_checkpoint(trained):
    checkpoint = load(trained)
    assert checkpoint.history.last_step == 15
    assert checkpoint.about["ladder"]["floor"] is None


def test_json_events_are_all_that_is_printed(tmp_path):
    done = run("train", "--language", "copy", "--out", tmp_path / "m", "--steps", "6", "--json", *SMALL)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0]["event"] == "started" and events[-1]["event"] == "finished"
    evaluated = next(e for e in events if e["event"] == "evaluated" and e["step"] == 5)
    assert set(evaluated) == {"event", "step", "train_loss", "val_loss", "seconds"}
    assert load(tmp_path / "m").about["ladder"]["floor"] > 0


def test_the_same_seed_gives_the_same_run(tmp_path, capsys):
    losses = []
    for name in "ab":
        main(
            [
                "train",
                "--language",
                "copy",
                "--out",
                str(tmp_path / name),
                "--steps",
                "4",
                "--seed",
                "3",
                "--json",
                *SMALL,
            ]
        )
        lines = map(json.loads, capsys.readouterr().out.splitlines())
        losses.append([e["loss"] for e in lines if e["event"] == "stepped"])
    assert losses[0] == losses[1] and len(losses[0]) == 4


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


def test_info_says_what_is_there(trained, capsys):
    assert main(["info", str(trained), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["parameters"] == load(trained).config.n_parameters == sum(facts["parameters_by_component"].values())
    assert main(["info", str(trained)]) == 0
    assert "% of GPT-2 small" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "--text", "/no/such/file", "--out", "{new}"], "/no/such/file cannot be read"),
        (["train", "--language", "klingon", "--out", "{new}"], "no language called 'klingon'"),
        (["train", "--preset", "huge", "--out", "{new}"], "no preset called 'huge'"),
        (["train", "--out", "{trained}"], "exists already"),
        (["train", "--out", "{new}", "--set", "d_modle=3"], "did you mean d_model?"),
        (["train", "--out", "{new}", "--set", "d_model=17"], "not divisible"),
        (["train", "--out", "{new}", "--steps", "0"], "steps must be a whole number of at least 1"),
        (["train", "--out", "{new}", "--seed", "-1"], "--seed must be at least 0"),
        (["train", "--out", "{new}", "--resume"], "is not a folder"),
        (["train", "--out", "{new}", "--vocab-size", "300"], "--vocab-size bounds what is found in a --text"),
        (["train", "--out", "{new}", "--language", "sentences", "--tokenizer", "bpe"], "are read by word, not by bpe"),
        (["train"], "--out"),
        (["generate", "/no/such/folder", "--prompt", "x"], "is not a folder"),
        (["generate", "{trained}", "--prompt", ""], "prompt is empty"),
        (["generate", "{trained}", "--prompt", "x", "--temperature", "-1"], "temperature must be"),
        (["info", "{empty}"], "has no config.json"),
        (["dance"], "invalid choice"),
    ],
)
def test_bad_arguments_end_with_code_2_and_one_sentence(trained, tmp_path, capsys, arguments, sentence):
    places = {"new": str(tmp_path / "new"), "trained": str(trained), "empty": str(tmp_path)}
    try:
        code = main([a.format(**places) for a in arguments])
    except SystemExit as leaving:
        code = leaving.code
    printed = capsys.readouterr()
    assert code == 2
    assert sentence in printed.err and "Traceback" not in printed.err
    assert len(printed.err.strip().splitlines()) == 1


def test_an_interrupt_keeps_what_was_learned_and_resume_goes_on(tmp_path):
    out = tmp_path / "m"
    command = [sys.executable, "-m", "playground", "train", "--language", "copy", "--out", str(out), "--json", *SMALL]
    process = subprocess.Popen([*command, "--steps", "100000"], stdout=subprocess.PIPE, text=True)
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
    done = run("train", "--out", out, "--resume", "--steps", stopped["step"] + 5, "--json")
    assert done.returncode == 0, done.stderr
    steps = [json.loads(line)["step"] for line in done.stdout.splitlines() if '"stepped"' in line]
    assert steps == list(range(stopped["step"] + 1, stopped["step"] + 6))
    assert load(out).history.last_step == stopped["step"] + 5


def test_info_speaks_of_the_mask_where_there_is_none(tmp_path, capsys):
    """The page's sentence, instead of one that doubts the validation text."""
    command = ["train", "--language", "copy", "--out", str(tmp_path / "m"), "--steps", "4", *SMALL, "causal=false"]
    assert main(command) == 0
    assert NO_MASK in capsys.readouterr().out
    record = json.loads((tmp_path / "m" / "history.json").read_text())
    record["evaluations"]["val_loss"][-1] = 0.0157
    (tmp_path / "m" / "history.json").write_text(json.dumps(record))
    assert main(["info", str(tmp_path / "m")]) == 0
    said = capsys.readouterr().out
    assert "Validation loss 0.0157" in said and NO_MASK in said and "leaked" not in said


def test_a_validation_loss_that_rose_is_said(tmp_path, capsys):
    drawn = random.Random(3)  # nothing in it can be learned but by heart
    (tmp_path / "text.txt").write_text("".join(drawn.choice("abcdefgh") for _ in range(700)))
    command = ["train", "--text", str(tmp_path / "text.txt"), "--out", str(tmp_path / "m"), "--steps", "120", *SMALL]
    for small, wanted in (("d_model=16", "d_model=32"), ("eval_windows=4", "eval_windows=none")):
        command[command.index(small)] = wanted
    assert main([*command, "learning_rate=0.01", "precision=fp32"]) == 0
    said = capsys.readouterr().out
    (line,) = [line for line in said.splitlines() if line.startswith("The validation loss was")]
    assert "learn the training text by heart" in line
    assert said.index(line) < said.index("All 120 steps are done.")
    step, best = load(tmp_path / "m").history.best  # files hold six digits
    assert f"after step {step:,} and rose" in line and step < 120
    assert float(line.split()[4]) == pytest.approx(best, abs=2e-4)
    assert main(["info", str(tmp_path / "m")]) == 0
    assert f"after step {step:,} and rose" in capsys.readouterr().out


def test_snapshots_are_kept_beside_the_checkpoint(tmp_path):
    command = ["train", "--language", "copy", "--out", str(tmp_path / "m"), "--steps", "9", *SMALL, "snapshots=3"]
    assert main(command) == 0
    kept = load(tmp_path / "m")
    assert kept.snapshots.steps == (0, 2, 9)
    last = kept.snapshots.model(9).state_dict()
    assert all(torch.allclose(last[name], t, atol=1e-2) for name, t in kept.model.state_dict().items())


def test_a_shell_reads_longer_texts_than_a_page(tmp_path, monkeypatch):
    text = tmp_path / "long.txt"
    text.write_bytes(TEXT.encode() * (MAX_BYTES // len(TEXT) + 1))
    assert text.stat().st_size > MAX_BYTES
    command = ["train", "--text", str(text), "--out", str(tmp_path / "m"), "--steps", "1", *SMALL]
    assert main(command) == 0
    monkeypatch.setattr("playground.cli.plan.MAX_TEXT_BYTES", 1000)
    assert main([*command[:4], str(tmp_path / "n"), *command[5:]]) == 2


def test_a_reader_who_has_seen_enough_gets_no_traceback(trained):
    command = f"{sys.executable} -m playground generate {trained} --prompt the --max-new-tokens 200 --json | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["index"] == 0
    assert "Traceback" not in done.stderr


def test_the_package_offers_what_a_script_needs():
    import playground

    for name in playground.__all__:
        assert hasattr(playground, name)
