"""Spaces: put this project on a Hugging Face Space. What would happen is planned first, file by file, then done.

    plan = make_plan("anna/playground", hardware="t4-small")
    for event in deploy(plan): print(event.message)

A Space gets what it needs to run and nothing else: the app, the package, the shipped checkpoints. Files that have not
changed are not sent again, and files of ours that are gone here go there, too.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .hub import HubError, in_words, login

ROOT = Path(__file__).resolve().parents[2]
FREE, ZERO = "cpu-basic", "zero-a10g"
HARDWARE = (FREE, "cpu-upgrade", ZERO, "t4-small", "t4-medium", "l4x1", "a10g-small", "a10g-large", "a100-large")
ALWAYS = ("README.md", "LICENSE", "app.py", "requirements.txt")
OF_CHECKPOINTS = (
    "config.json",
    "tokenizer.json",
    "model.safetensors",
    "history.json",
    "snapshots.safetensors",
    "README.md",
)
ZERO_TORCH = "2.11.0"  # the newest that ZeroGPU's documentation lists
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
READY, BROKEN = (
    ("RUNNING", "SLEEPING"),
    ("BUILD_ERROR", "RUNTIME_ERROR", "CONFIG_ERROR", "NO_APP_FILE", "PAUSED", "STOPPED"),
)


@dataclass(frozen=True)
class Change:
    """What becomes of one file."""

    path: str
    action: str
    """add, update, keep or delete."""
    size: int
    content: bytes | None = None
    """None for a file that goes."""


@dataclass(frozen=True)
class Plan:
    """All that a deployment would do."""

    space_id: str
    hardware: str
    sleep_seconds: int | None
    """Idle seconds after which paid hardware is let go; None for hardware that sleeps by its own rules."""
    private: bool
    creates: bool | None
    """Whether the Space is new; None where the Hub could not be asked."""
    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()

    @property
    def sent(self) -> tuple[Change, ...]:
        """What travels."""
        return tuple(change for change in self.changes if change.action in ("add", "update"))


@dataclass(frozen=True)
class Deployed:
    """One step of a deployment is done."""

    event: str
    """created, uploaded, requested, waiting or running."""
    message: str
    address: str


def make_plan(
    space_id: str,
    *,
    hardware: str = FREE,
    sleep_minutes: int = 15,
    private: bool = False,
    token: str | None = None,
    endpoint: str | None = None,
    root: Path = ROOT,
    offline: bool = False,
) -> Plan:
    """Compare what the Space needs with what it holds. With `offline`, a Hub that cannot be asked is taken as empty.

    Raises HubError for a bad name or hardware, a refused login, or a Space that holds something else.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    if not re.fullmatch(r"[\w.-]+/[\w.-]+", space_id):
        raise HubError(f"{space_id!r} is not a Space's name: write it as user/name")
    if hardware not in HARDWARE:
        raise HubError(f"there is no hardware called {hardware!r}: choose one of {', '.join(HARDWARE)}")
    if not 1 <= sleep_minutes <= 7 * 24 * 60:
        raise HubError(f"a Space can go to sleep after 1 to 10,080 idle minutes, not {sleep_minutes}")
    wanted, notes, there, creates = needed_files(root, hardware), [], {}, True
    try:
        token = login(token)
        api = HfApi(endpoint=endpoint, token=token)
        with in_words(f"Space {space_id}", token):
            try:
                info = api.space_info(space_id, files_metadata=True)
            except RepositoryNotFoundError:
                pass
            else:
                creates, there = False, {file.rfilename: file for file in info.siblings or []}
    except HubError as problem:
        if not offline:
            raise
        creates, notes = None, [f"The Space could not be looked at, so every file counts as new: {problem}."]
    if creates is False and there.keys() - {"README.md", ".gitattributes"} and "playground/__init__.py" not in there:
        raise HubError(f"the Space {space_id} holds something else already, which would be lost: choose another name")
    changes = [
        Change(path, _action(content, there.get(path)), len(content), content) for path, content in wanted.items()
    ]
    gone = [path for path in there if path.startswith(("playground/", "checkpoints/")) and path not in wanted]
    changes += [Change(path, "delete", there[path].size or 0) for path in gone]
    paid = hardware not in (FREE, ZERO)
    if paid:
        notes.append(f"{hardware} is paid by the minute until it sleeps, after {sleep_minutes} idle minutes.")
    changes.sort(key=lambda change: change.path)
    return Plan(
        space_id, hardware, 60 * sleep_minutes if paid else None, private, creates, tuple(changes), tuple(notes)
    )


def needed_files(root: Path = ROOT, hardware: str = FREE) -> dict[str, bytes]:
    """Path → content of all that a Space of this hardware needs, and of nothing else."""
    paths = [root / name for name in ALWAYS if (root / name).is_file()]
    paths += [path for path in sorted((root / "playground").rglob("*")) if path.is_file() and _belongs(path, root)]
    paths += [path for name in OF_CHECKPOINTS for path in sorted((root / "checkpoints").glob(f"*/{name}"))]
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    for required in ("app.py", "requirements.txt", "README.md", "playground/__init__.py"):
        if required not in files:
            raise HubError(f"{root} has no {required}: deploy from a checkout of the project")
    files["requirements.txt"] = requirements_for(hardware, files["requirements.txt"].decode()).encode()
    return files


def _belongs(path: Path, root: Path) -> bool:
    """Whether a file is part of the package, and no leftover of running or editing it."""
    hidden = any(part.startswith((".", "__pycache__")) for part in path.relative_to(root).parts)
    return not hidden and not path.name.endswith((".pyc", "~", ".orig", ".rej"))


def requirements_for(hardware: str, text: str) -> str:
    """requirements.txt as this hardware's builder accepts it. gradio comes from the card's sdk_version everywhere.

    ZeroGPU knows certain releases of torch only; a Space without GPU is spared the gigabytes of CUDA's libraries.
    """
    lines = [line for line in text.splitlines() if not re.match(r"gradio\b", line)]
    if hardware == ZERO:
        lines = [re.sub(r"^torch==[\w.+]+", f"torch=={ZERO_TORCH}", line) for line in lines]
    elif hardware.startswith("cpu"):
        lines = [f"--extra-index-url {CPU_WHEELS}"] + [re.sub(r"^(torch==[\d.]+)", r"\1+cpu", line) for line in lines]
    return "\n".join(lines) + "\n"


def deploy(
    plan: Plan,
    *,
    token: str | None = None,
    endpoint: str | None = None,
    wait_seconds: float = 1800.0,
    poll_seconds: float = 5.0,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Deployed]:
    """Carry out a plan: make the Space, send what changed in one commit, ask for the hardware, wait until it runs.

    `wait_seconds=0` does not wait. Raises HubError, also where the Space fails to start.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    token = login(token)
    api = HfApi(endpoint=endpoint, token=token)
    space = f"Space {plan.space_id}"
    address = f"{api.endpoint}/spaces/{plan.space_id}"
    if plan.creates is not False:
        with in_words(space, token):
            api.create_repo(
                plan.space_id,
                repo_type="space",
                space_sdk="gradio",
                space_hardware=plan.hardware,
                space_sleep_time=plan.sleep_seconds,
                private=plan.private,
                exist_ok=True,
            )
        yield Deployed("created", f"Made the Space {plan.space_id}.", address)
    operations = [CommitOperationAdd(change.path, change.content) for change in plan.sent]
    operations += [CommitOperationDelete(change.path) for change in plan.changes if change.action == "delete"]
    sent = None
    if operations:
        with in_words(space, token):
            sent = api.create_commit(plan.space_id, operations, repo_type="space", commit_message="Deploy").oid
        size = sum(change.size for change in plan.sent)
        yield Deployed("uploaded", f"Sent {len(plan.sent)} files, {size / 1e6:.1f} MB.", address)
    else:
        yield Deployed("uploaded", "Nothing has changed, nothing was sent.", address)
    with in_words(space, token):
        runtime = api.get_space_runtime(plan.space_id)
        if (runtime.requested_hardware or runtime.hardware) != plan.hardware:
            api.request_space_hardware(plan.space_id, plan.hardware, sleep_time=plan.sleep_seconds)
        elif plan.sleep_seconds is not None and runtime.sleep_time != plan.sleep_seconds:
            api.set_space_sleep_time(plan.space_id, plan.sleep_seconds)
    asleep = f", asleep after {plan.sleep_seconds // 60} idle minutes" if plan.sleep_seconds else ""
    yield Deployed("requested", f"Hardware: {plan.hardware}{asleep}.", address)
    waited, stage = 0.0, None
    while waited < wait_seconds:
        with in_words(space, token):
            runtime = api.get_space_runtime(plan.space_id)
        outdated = sent is not None and runtime.raw.get("sha") not in (None, sent)  # still the version before
        if runtime.stage in READY and not outdated:
            yield Deployed("running", f"It runs: {address}", address)
            return
        if runtime.stage in BROKEN:
            why = " ".join(str(runtime.raw.get("errorMessage") or "").split())[:300]
            raise HubError(
                f"the Space does not start ({runtime.stage}){': ' + why if why else ''}; "
                f"its log is at {address}?logs=container"
            )
        if runtime.stage != stage and not outdated:
            stage = runtime.stage
            yield Deployed("waiting", f"{str(stage).replace('_', ' ').capitalize()} …", address)
        sleep(poll_seconds)
        waited += poll_seconds
    if wait_seconds:
        raise HubError(
            f"the Space has not started within {wait_seconds / 60:.0f} minutes: look at {address}?logs=build"
        )


def _action(content: bytes, there) -> str:
    """What it takes to have this content there."""
    if there is None:
        return "add"
    if there.lfs is not None:
        return "keep" if there.lfs.sha256 == hashlib.sha256(content).hexdigest() else "update"
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return "keep" if there.blob_id == blob else "update"
