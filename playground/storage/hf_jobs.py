"""Hugging Face Jobs: run a training command on rented hardware with `huggingface_hub.run_job`, and fetch the model.

    job, model = submit(["train", "--language", "stories"], "stories", flavor="a10g-small")
    for line in follow(job): print(line)
    checkpoint = hub.pull(model)

The code goes into a private data set, USER/playground-jobs, which the job mounts at the commit it was made for. The
job itself pushes the trained model to a private model repository, since its disk is lost when it ends.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .hub import HubError, exchange, login
from .spaces import ROOT, requirements_for

if TYPE_CHECKING:
    from huggingface_hub import JobInfo

CODE_REPO = "playground-jobs"
IMAGE = "python:3.12"
MOUNT = "/playground"
WORK = "/tmp/run"
NOT_NEEDED = re.compile(r"playground/ui/|.*__pycache__")
PAGE_ONLY = re.compile(r"gradio\b|plotly\b")  # requirements that a job does not need


def submit(
    arguments: Sequence[str], name: str, *, flavor: str, timeout: str = "1h", text: Path | None = None
) -> tuple[JobInfo, str]:
    """Upload code (and the text, if it is a file) and start `python -m playground ARGUMENTS` on this hardware.

    It uses one GPU, however many the flavor has; `timeout` is written as on the Hub: 300 (seconds), 30m, 2h. Returns
    the job and the model repository, user/`name`, that it will push to. Raises HubError.
    """
    from huggingface_hub import CommitOperationAdd, HfApi, Volume

    token = login()
    if not re.fullmatch(r"\d+(\.\d+)?[smhd]?", timeout):
        raise HubError(f"a job's timeout is written as 300, 30m or 2h, not {timeout!r}")
    api = HfApi(token=token)
    with exchange("your account's jobs", token):
        owner = api.whoami()["name"]
        flavors = [str(hardware.name) for hardware in api.list_jobs_hardware()]
    if flavor not in flavors:
        raise HubError(f"there is no hardware called {flavor!r}; choose one of {', '.join(flavors)}")
    files = job_files(flavor, text)
    code_repo, model = f"{owner}/{CODE_REPO}", f"{owner}/{name}"
    with exchange(code_repo, token):
        api.create_repo(code_repo, repo_type="dataset", private=True, exist_ok=True)
        additions = [CommitOperationAdd(path, content) for path, content in files.items()]
        commit = api.create_commit(code_repo, additions, commit_message="Code of a job", repo_type="dataset")
    with exchange(f"a job on {flavor}", token):
        job = api.run_job(
            image=IMAGE,
            command=["bash", "-c", script(arguments, model)],
            secrets={"HF_TOKEN": token},
            flavor=flavor,
            timeout=timeout,
            name=f"playground-{name}"[:60],
            volumes=[Volume(type="dataset", source=code_repo, mount_path=MOUNT, revision=commit.oid, read_only=True)],
            namespace=owner,
        )
    return job, model


def follow(job: JobInfo) -> Iterator[str]:
    """The job's log, line by line, until the job ends. Raises HubError if the job did not complete."""
    from huggingface_hub import HfApi

    token, where = login(), {"job_id": job.id, "namespace": job.owner.name}
    api = HfApi(token=token)
    with exchange(job.url, token):
        for line in api.fetch_job_logs(**where, follow=True):
            yield line.rstrip("\n")
        status = api.wait_for_job(**where, timeout=120).status
    if status.stage != "COMPLETED":
        why = f": {status.message}" if status.message else ""
        raise HubError(f"the job ended as {getattr(status.stage, 'value', status.stage)}{why}. Its log is at {job.url}")


def script(arguments: Sequence[str], model: str) -> str:
    """The shell script that the job runs: install, train, push."""
    return "\n".join((
        "set -e",
        f"cd {MOUNT}",
        "pip install -q --no-cache-dir -r requirements.txt",
        "export PYTHONDONTWRITEBYTECODE=1",
        f"python -m playground {shlex.join([*arguments, '--out', WORK])}",
        f"python -m playground push {WORK} {shlex.quote(model)} --private",
    ))  # fmt: skip


def job_files(flavor: str, text: Path | None = None, root: Path = ROOT) -> dict[str, bytes]:
    """Path → content of what a job needs: the package without its page, its requirements, and the text."""
    files = {}
    for path in sorted((root / "playground").rglob("*")):
        relative = path.relative_to(root).as_posix()
        if path.suffix in (".py", ".txt") and not NOT_NEEDED.match(relative):
            files[relative] = path.read_bytes()
    lines = requirements_for(flavor, (root / "requirements.txt").read_text(encoding="utf-8")).splitlines()
    files["requirements.txt"] = "\n".join(line for line in lines if not PAGE_ONLY.match(line)).encode()
    if text is not None:
        files[f"texts/{text.name}"] = text.read_bytes()
    return files


def text_there(text: Path) -> str:
    """The path at which the job finds the text that was sent with it."""
    return f"{MOUNT}/texts/{text.name}"
