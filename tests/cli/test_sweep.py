"""A sweep in the shell: the best model is saved with the table, and what makes no sense is refused."""

import json

import pytest

from playground.cli import main
from playground.storage import load
from tests.cli.refusals import check_refused

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
