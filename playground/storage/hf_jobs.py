"""Hugging Face Jobs: run a training command on hired hardware, follow its log, and fetch what it learned.

    job = submit(["train", "--language", "stories"], "anna/stories", flavor="a10g-small")
    for line in follow(job): print(line)
    checkpoint = fetch(job)

The code goes into a private data set, USER/playground-jobs, which the job mounts at the commit it was made for; the
trained model is pushed by the job itself to a private model repository, since nothing on a job's disk outlives it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .held import Checkpoint
from .hub import HubError, in_words, login, pull
from .spaces import ROOT, requirements_for

CODE_REPO = "playground-jobs"
IMAGE = "python:3.12"
MOUNT = "/playground"
WORK = "/tmp/run"
NOT_NEEDED = re.compile(r"playground/ui/|.*__pycache__")
PAGE_ONLY = re.compile(r"gradio\b|plotly\b")  # requirements that a job can do without
STATES = {"COMPLETED": "done", "CANCELED": "cancelled", "DELETED": "deleted"}


@dataclass(frozen=True)
class RemoteJob:
    """A command that runs elsewhere."""

    id: str
    owner: str
    """The account that pays."""
    url: str
    """Its page on the Hub."""
    flavor: str
    model: str
    """The repository that the trained model will be pushed to."""
    dollars_per_hour: float | None
    """What the hardware costs, where the Hub says."""


def submit(
    arguments: Sequence[str],
    model: str,
    *,
    flavor: str,
    timeout: str = "1h",
    text: Path | None = None,
    token: str | None = None,
    endpoint: str | None = None,
) -> RemoteJob:
    """Upload code (and the text, if it is a file) and start `python -m playground ARGUMENTS` on this hardware.

    Where the flavor has several GPUs, torchrun shares the batch among them. `model` is "name" or "user/name"; `timeout`
    as the Hub writes it: 300 (seconds), 30m, 2h. Raises HubError.
    """
    from huggingface_hub import CommitOperationAdd, HfApi, Volume

    token = login(token)
    if not re.fullmatch(r"\d+(\.\d+)?[smhd]?", timeout):
        raise HubError(f"a job's timeout is written as 300, 30m or 2h, not {timeout!r}")
    api = HfApi(endpoint=endpoint, token=token)
    with in_words("your account's jobs", token):
        owner = api.whoami()["name"]
        hardware = {str(h.name): h for h in api.list_jobs_hardware()}
    if flavor not in hardware:
        raise HubError(f"there is no hardware called {flavor!r}; choose one of {', '.join(hardware)}")
    files = job_files(flavor, text)
    code_repo, model = f"{owner}/{CODE_REPO}", model if "/" in model else f"{owner}/{model}"
    with in_words(code_repo, token):
        api.create_repo(code_repo, repo_type="dataset", private=True, exist_ok=True)
        additions = [CommitOperationAdd(name, content) for name, content in files.items()]
        commit = api.create_commit(code_repo, additions, commit_message="Code of a job", repo_type="dataset")
    with in_words(f"a job on {flavor}", token):
        job = api.run_job(
            image=IMAGE,
            command=["bash", "-c", script(arguments, model, flavor)],
            secrets={"HF_TOKEN": token},
            flavor=flavor,
            timeout=timeout,
            name=f"playground-{model.split('/')[-1]}"[:60],
            volumes=[Volume(type="dataset", source=code_repo, mount_path=MOUNT, revision=commit.oid, read_only=True)],
            namespace=owner,
        )
    return RemoteJob(job.id, owner, str(job.url), flavor, model, _hourly(hardware[flavor]))


def follow(job: RemoteJob, *, token: str | None = None, endpoint: str | None = None) -> Iterator[str]:
    """The job's log, line by line, until it is over. Raises HubError where it ended otherwise than done."""
    from huggingface_hub import HfApi

    token = login(token)
    api = HfApi(endpoint=endpoint, token=token)
    with in_words(job.url, token):
        for line in api.fetch_job_logs(job_id=job.id, namespace=job.owner, follow=True):
            yield line.rstrip("\n")
        status = api.wait_for_job(job.id, namespace=job.owner, timeout=120).status
    if status.stage != "COMPLETED":
        why = f": {status.message}" if status.message else ""
        how = STATES.get(str(getattr(status.stage, "value", status.stage)), "broken off")
        raise HubError(f"the job was {how}{why}. Its whole log is at {job.url}")


def fetch(job: RemoteJob, *, token: str | None = None, endpoint: str | None = None) -> Checkpoint:
    """What the job has learned. Raises HubError."""
    return pull(job.model, token=login(token), endpoint=endpoint)


def script(arguments: Sequence[str], model: str, flavor: str) -> str:
    """The shell script that the job runs: install, train, push."""
    gpus = gpus_of(flavor)
    start = f"torchrun --standalone --nproc-per-node={gpus}" if gpus > 1 else "python"
    return "\n".join((
        "set -e",
        f"cd {MOUNT}",
        "pip install -q --no-cache-dir -r requirements.txt",
        "export PYTHONDONTWRITEBYTECODE=1",
        f"{start} -m playground {shlex.join([*arguments, '--out', WORK])}",
        f"python -m playground push {WORK} {shlex.quote(model)} --private",
    ))  # fmt: skip


def gpus_of(flavor: str) -> int:
    """How many GPUs a flavor has, by its name.

    >>> gpus_of("cpu-upgrade"), gpus_of("a10g-small"), gpus_of("a10g-largex4"), gpus_of("l4x1")
    (0, 1, 4, 1)
    """
    if flavor.startswith("cpu"):
        return 0
    several = re.search(r"x(\d)$", flavor)
    return int(several[1]) if several else 1


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
    """Where the job finds a text that was sent with it."""
    return f"{MOUNT}/texts/{text.name}"


def _hourly(hardware) -> float | None:
    per = {"second": 3600, "minute": 60, "hour": 1}.get(hardware.unit_label)
    return hardware.unit_cost_usd * per if per and hardware.unit_cost_usd is not None else None
