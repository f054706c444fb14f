"""Spaces and jobs on the Hub: the plan is what happens, each gets what it needs, and what a job learned comes home."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from huggingface_hub import SpaceHardware

from playground.cli import main
from playground.storage import hf_jobs, load
from playground.storage.hub import HubError
from playground.storage.spaces import CPU_WHEELS, HARDWARE, compare, deploy, needed_files, requirements_for
from tests.cli.refusals import check_refused
from tests.standins.hub import ANNAS, card_errors, front_matter

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("signed_in")


@pytest.fixture
def project(tmp_path):
    """A small checkout with much that a Space does not need."""
    files = {
        "app.py": "print('hi')",
        "README.md": "---\nsdk: gradio\ntitle: Small\n---\n",
        "requirements.txt": "torch==2.13.0   # the model\ngradio>=6.31,<7\nnumpy>=2.0\n",
        "docs/running.md": "How to run it",
        "docs/page.png": "a picture",
        "playground/__init__.py": "",
        "playground/ui/look.css": "a {}",
        "playground/__pycache__/x.cpython-311.pyc": "old",
        "playground/.hidden": "no",
        "checkpoints/small/config.json": "{}",
        "checkpoints/small/model.safetensors": "weights",
        "checkpoints/small/resume.safetensors": "much",
        "checkpoints/make.py": "",
        "tests/test_it.py": "",
        "runs/mine/history.json": "private",
        ".env": "SECRET=1",
    }
    for name, text in files.items():
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / name).write_text(text)
    return tmp_path / "project"


def test_a_new_space_is_made_and_filled_with_only_what_is_needed(project, hub):
    assert set(needed_files(project)) == {
        "app.py", "README.md", "requirements.txt", "playground/__init__.py", "playground/ui/look.css",
        "docs/running.md", "docs/page.png", "checkpoints/small/config.json", "checkpoints/small/model.safetensors",
    }  # fmt: skip
    plan = compare("anna/small", hardware="t4-small", sleep_minutes=20, root=project)
    assert plan.creates and {change.action for change in plan.changes} == {"add"} and not hub.repos
    assert deploy(plan)
    space = hub.repo("anna/small", "space")
    assert space.settings["sdk"] == "gradio" and space.requested == "t4-small" and space.sleep_seconds == 20 * 60
    assert space.files == needed_files(project, "t4-small")
    assert not [name for name in hub.log if name.endswith("/hardware")], "asked for once, when it was made"


def test_all_of_the_project_that_runs_travels_with_a_card_that_the_platform_accepts(tmp_path):
    sent = needed_files(ROOT)
    kinds = (".py", ".css", ".js", ".txt")
    package = [path.relative_to(ROOT).as_posix() for path in (ROOT / "playground").rglob("*") if path.suffix in kinds]
    linked = re.findall(r"\]\((docs/[^)#]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(linked) > 4, "the README's picture and links work on a Space"
    assert {*package, *linked, "app.py", "requirements.txt", "README.md", "LICENSE"} <= set(sent)
    for name, content in sent.items():
        if name.startswith("checkpoints/"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)
    shipped = [path.parent.name for path in (ROOT / "checkpoints").glob("*/config.json")]
    assert shipped and all(load(tmp_path / "checkpoints" / name).history.last_step for name in shipped)
    card = front_matter((ROOT / "README.md").read_text(encoding="utf-8"))
    assert card_errors((ROOT / "README.md").read_text(encoding="utf-8"), "space") == []
    assert card["python_version"] in ("3.12.12", "3.10.13"), "all that ZeroGPU has; other hardware takes any 3.x.x"
    assert card["suggested_hardware"] in [hardware.value for hardware in SpaceHardware]
    assert card["hf_oauth"] is True and card["hf_oauth_scopes"] == ["contribute-repos"], "the least that can push"
    assert (ROOT / card["app_file"]).is_file() and card["sdk"] == "gradio"
    assert yaml.safe_load(yaml.safe_dump(card)) == card


@pytest.mark.parametrize("hardware", HARDWARE)
def test_requirements_fit_the_hardware(hardware):
    original = (ROOT / "requirements.txt").read_text()
    text = requirements_for(hardware, original)
    (torch,) = re.findall(r"^torch==(\S+)", text, re.MULTILINE)
    assert not re.search(r"^gradio\b", text, re.MULTILINE), "the card's sdk_version installs it"
    assert (CPU_WHEELS in text) == torch.endswith("+cpu") == hardware.startswith("cpu")
    assert (torch == "2.11.0") == (hardware == "zero-a10g")
    kept = {line.split(">")[0].split("=")[0] for line in original.splitlines() if line[:1].isalpha()}
    assert {line.split(">")[0].split("=")[0] for line in text.splitlines() if line[:1].isalpha()} == kept - {"gradio"}
    assert set(HARDWARE) <= {hardware.value for hardware in SpaceHardware}


def test_an_update_sends_what_changed_and_takes_away_what_is_gone(hub, project):
    deploy(compare("anna/small", root=project))
    space = hub.repo("anna/small", "space")
    space.files |= {"playground/old.py": b"", "notes.txt": b"their own"}
    (project / "app.py").write_text("print('new')")
    plan = compare("anna/small", hardware="zero-a10g", root=project)
    actions = {change.path: change.action for change in plan.changes}
    assert actions == {"app.py": "update", "playground/old.py": "delete", "requirements.txt": "update"}
    assert deploy(plan)
    assert space.requested == "zero-a10g" and space.sleep_seconds is None
    assert space.files["app.py"] == b"print('new')" and "playground/old.py" not in space.files
    assert space.files["notes.txt"] == b"their own" and len(space.commits) == 2
    again = compare("anna/small", hardware="zero-a10g", root=project)
    assert again.changes == () and deploy(again) is None and len(space.commits) == 2


def test_a_dry_run_tells_file_by_file_and_does_nothing(hub, capsys):
    assert main(["deploy", "anna/small", "--hardware", "t4-small", "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert "Space anna/small" in text
    for name, content in needed_files(ROOT, "t4-small").items():
        assert re.search(rf"add +{len(content):,}  {re.escape(name)}\n", text), name
    assert "Nothing was" in text and "the minute" in text and not hub.repos
    assert not [line for line in hub.log if line.startswith(("POST", "PUT"))]
    assert main(["deploy", "anna/small", "--dry-run", "--json"]) == 0
    assert {c["action"] for c in json.loads(capsys.readouterr().out)["changes"]} == {"add"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["small"], "Space's name:"),
        (["anna/small", "--hardware", "warp-drive"], "'warp-drive': choose"),
        (["anna/small", "--sleep", "0"], "not 0"),
        (["bert/small"], "Space bert/small"),
        (["anna/taken"], "holds something"),
    ],
)
def test_what_cannot_be_deployed(hub, capsys, monkeypatch, arguments, sentence):
    hub.add("anna/taken", {"app.py": b"another app"}, kind="space")
    assert main(["deploy", *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1 and ANNAS not in error


def test_hardware_that_must_be_paid_for_and_a_folder_that_is_no_checkout_are_refused(hub, project, tmp_path):
    hub.accounts[ANNAS].pays = False
    with pytest.raises(HubError, match="payment method"):
        deploy(compare("anna/small", hardware="t4-small", root=project))
    with pytest.raises(HubError, match=r"requirements\.txt|app\.py"):
        needed_files(tmp_path)


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
