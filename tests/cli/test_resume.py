"""Going on in the shell: what is asked is done and written down, or refused by name; a kill costs moments at most."""

import json
import shutil

import pytest

from playground.cli import main
from playground.storage import load
from playground.training.autosave import FILE
from playground.training.resume import SavedRun
from tests.cli.refusals import check_refused

SETTINGS = ["--set", "d_model=16", "context_length=16", "batch_size=4", "eval_every=5", "eval_windows=4",
            "precision=fp32", "device=cpu"]  # fmt: skip
SMALL = ["--preset", "tiny", *SETTINGS]
TEXT = "the lamp burns, the sea turns, the night learns. " * 40


def train(*arguments) -> int:
    return main(["train", *map(str, arguments)])


def events(capsys) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]


def steps(told: list[dict]) -> list[int]:
    return [event["step"] for event in told if event["event"] == "stepped"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A text and a run of eight steps on it."""
    folder = tmp_path_factory.mktemp("resume")
    (folder / "text.txt").write_text(TEXT)
    assert train("--text", folder / "text.txt", "--out", folder / "m", "--steps", 8, *SMALL) == 0
    return folder


@pytest.fixture
def run(done, tmp_path):
    """A copy of that run."""
    return shutil.copytree(done / "m", tmp_path / "m")


def test_a_finished_run_is_trained_on_and_its_record_says_so(run, capsys):
    assert train("--resume", "--out", run, "--steps", 12, "--json") == 0
    told = events(capsys)
    assert steps(told) == [9, 10, 11, 12]
    assert [event["settings"] for event in told if event["event"] == "changed"] == [{"steps": [8, 12]}]
    checkpoint = load(run)
    assert checkpoint.about["training"]["steps"] == 12
    assert checkpoint.history.steps["step"] == list(range(1, 13))
    assert checkpoint.history.changes == [{"step": 8, "settings": {"steps": [8, 12]}}]
    assert main(["info", str(run)]) == 0
    assert "8: steps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--set", "d_model=32"], "now 32"),
        (["--seed", "7"], "now 7"),
        (["--preset", "medium"], "--preset was"),
        (["--text", "{other}"], "the text"),
        (["--tokenizer", "word"], "the tokenizer"),
        (["--set", "learning_rate=9", "d_model=32", "--preset", "tiny", "--text", "{other}", "--seed", "7"],
         "32; seed"),
        (["--set", "learning_rate=99"], "learning_rate must"),
        ([], "add --steps above 8"),
        (["--steps", "3"], "add --steps above 8"),
        (["--set", "max_seconds=0.0001"], "max_seconds=none"),
    ],
)  # fmt: skip
def test_what_cannot_be_changed_is_refused_by_name(run, tmp_path, capsys, arguments, sentence):
    (tmp_path / "other.txt").write_text(TEXT.replace("lamp", "palm"))
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    given = [argument.format(other=tmp_path / "other.txt") for argument in arguments]
    extra = [] if "--steps" in given or not given else ["--steps", "12"]
    check_refused(capsys, ["train", "--resume", "--out", run, *extra, *given], sentence)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_what_may_be_changed_is_applied_and_written_down(run, tmp_path, done, capsys):
    moved = tmp_path / "moved.txt"
    shutil.copy(done / "text.txt", moved)
    given = ["--set", "learning_rate=0.01", "eval_windows=none", "snapshots=2", "d_model=16", "--prompt", "the "]
    again = ["--preset", "tiny", "--seed", "0", "--text", moved, "--tokenizer", "char", "--json"]
    assert train("--resume", "--out", run, "--steps", 12, *given, *again) == 0
    told = events(capsys)
    (changed,) = [event["settings"] for event in told if event["event"] == "changed"]
    assert set(changed) == {"steps", "learning_rate", "eval_windows", "snapshots", "sample_prompt", "sample_every"}
    assert {event["prompt"] for event in told if event["event"] == "sampled"} == {"the "}
    checkpoint = load(run)
    assert checkpoint.about["training"]["learning_rate"] == 0.01 and checkpoint.about["prompt"] == "the "
    assert checkpoint.about["source"]["text"] == str(moved) and checkpoint.snapshots.steps == (12,)


@pytest.mark.parametrize("later", ["checkpoint", "state"])
def test_a_kill_between_the_two_saves_costs_nothing(done, tmp_path, capsys, later):
    """The state of a run and its checkpoint are written one after the other; either may be the older one."""
    older, run = tmp_path / "older", shutil.copytree(done / "m", tmp_path / "m")
    shutil.copytree(run, older)
    assert train("--resume", "--out", run, "--steps", 12, "--set", "schedule=linear") == 0
    if later == "checkpoint":
        shutil.copy(older / FILE, run / FILE)
    else:
        for path in older.iterdir():
            if path.name != FILE:
                shutil.copy(path, run / path.name)
    capsys.readouterr()
    at = SavedRun.of(run).step
    assert at == (8 if later == "checkpoint" else 12)
    assert train("--resume", "--out", run, "--steps", 15, "--json") == 0
    assert steps(events(capsys)) == list(range(at + 1, 16))
    assert load(run).history.steps["step"] == list(range(1, 16))
