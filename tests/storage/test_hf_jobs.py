"""Jobs on the Hub: what is submitted really trains and pushes, its log is followed, and what it learned comes home."""

import os
import re
import subprocess
import sys

import pytest

from playground.cli import main
from playground.storage import hf_jobs, load
from tests.cli.refusals import check_refused
from tests.standins.hub import ANNAS

pytestmark = pytest.mark.usefixtures("signed_in")

SMALL = ["--preset", "tiny", "--steps", "4", "--seed", "2", "--set", "d_model=16", "context_length=16", "batch_size=4",
         "eval_windows=4"]  # fmt: skip
TEXT = "an otter's boat is full of oats, she said; 'twas so. " * 40


def carry_out(hub, tmp_path) -> subprocess.CompletedProcess:
    """Do what the job's machine would: mount the data set, run the script; only installing is left out."""
    spec = hub.jobs.submitted[-1]
    mount = tmp_path / "mount"
    for name, content in hub.repo("anna/playground-jobs", "dataset").files.items():
        (mount / name).parent.mkdir(parents=True, exist_ok=True)
        (mount / name).write_bytes(content)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, does in (("pip", "exit 0"), ("python", f'exec {sys.executable} "$@"')):
        (tools / name).write_text(f"#!/bin/sh\n{does}\n")
        (tools / name).chmod(0o755)
    shell, option, script = spec["command"]
    script = script.replace(hf_jobs.MOUNT, str(mount)).replace(hf_jobs.WORK, str(tmp_path / "run"))
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "HF_TOKEN")}
    environment |= {"PATH": f"{tools}:{os.environ['PATH']}", **spec["secrets"]}
    return subprocess.run([shell, option, script], env=environment, capture_output=True, text=True, timeout=120)


def test_the_command_that_is_submitted_trains_pushes_and_comes_home(hub, tmp_path, monkeypatch, capsys):
    text = tmp_path / "o'text.txt"
    text.write_text(TEXT)
    hub.jobs.script(["4 steps", "Saved"])
    follow = hf_jobs.follow

    def follow_when_done(job, **options):
        done = carry_out(hub, tmp_path)
        assert done.returncode == 0, done.stderr
        return follow(job, **options)

    monkeypatch.setattr("playground.cli.remote.follow", follow_when_done)
    command = ["train", "--text", str(text), *SMALL]
    assert main([*command, "--out", str(tmp_path / "there"), "--on", "hf-jobs", "--flavor", "a10g-small"]) == 0
    printed = capsys.readouterr()
    assert "4 steps\nSaved\n" in printed.out
    assert re.search(r"a10g-small: http\S+/jobs/anna/job", printed.err)
    assert main([*command, "--out", str(tmp_path / "here")]) == 0
    there, here = load(tmp_path / "there"), load(tmp_path / "here")
    assert there.history.steps["loss"] == here.history.steps["loss"], "the same command, the same losses"
    assert hub.repo("anna/there").private and hub.repo("anna/playground-jobs", "dataset").private
    assert ANNAS not in printed.out + printed.err + str(hub.jobs.submitted[0]["command"])


def test_a_job_gets_what_it_needs_and_no_more():
    files = hf_jobs.job_files("cpu-basic")
    assert "playground/training/loop.py" in files and "playground/data/texts/lighthouse.txt" in files
    assert not [name for name in files if "/ui/" in name or name.startswith("checkpoints/")]
    assert b"+cpu" in files["requirements.txt"] and b"gradio" not in files["requirements.txt"]
    assert b"+cpu" not in hf_jobs.job_files("l4x1")["requirements.txt"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--flavor", "abacus"], "'abacus'; choose"),
        (["--timeout", "soon"], "30m or"),
        (["--resume"], "on this"),
        (["--set", "d_model=17"], "not divisible"),
        (["--text", "/no/such/file"], "/no/such/file"),
    ],
)
def test_what_cannot_be_submitted_is_a_sentence_and_starts_nothing(hub, tmp_path, capsys, arguments, sentence):
    check_refused(capsys, ["train", "--out", tmp_path / "m", "--on", "hf-jobs", *arguments], sentence)
    assert hub.jobs.submitted == []


def test_without_a_login_nobody_is_asked_and_a_job_that_fails_says_so_with_its_page(hub, tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as nobody:
        nobody.delenv("HF_TOKEN")
        check_refused(capsys, ["train", "--out", tmp_path / "m", "--on", "hf-jobs"], "not signed")
    assert hub.log == []
    hub.jobs.script(["pip: no such wheel"], stage="ERROR", message="Job failed with exit code 1")
    assert main(["train", "--out", str(tmp_path / "m"), "--on", "hf-jobs"]) == 2
    printed = capsys.readouterr()
    assert "such wheel" in printed.out
    assert "exit code" in printed.err and re.search(r"http\S+/jobs/anna/job", printed.err)
    assert not (tmp_path / "m").exists()
