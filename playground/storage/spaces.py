"""Spaces: put this project on a Hugging Face Space. The changes are listed first, file by file, then uploaded.

    deploy(compare("anna/playground", hardware="t4-small"))

A Space gets only what it needs to run: the app, the package, the shipped checkpoints. Unchanged files are not sent
again, and files of ours that were deleted here are deleted there, too.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from .hub import HubError, exchange, login

ROOT = Path(__file__).resolve().parents[2]
FREE, ZERO = "cpu-basic", "zero-a10g"
HARDWARE = (FREE, "cpu-upgrade", ZERO, "t4-small", "t4-medium", "l4x1", "a10g-small", "a10g-large", "a100-large")
NEEDED = (
    "README.md", "LICENSE", "app.py", "requirements.txt", "docs/*.md", "docs/*.png", "playground/**/*",
    *(f"checkpoints/*/{name}" for name in (
        "config.json", "tokenizer.json", "model.safetensors", "history.json", "snapshots.safetensors", "README.md",
    )),
)  # fmt: skip
LEFTOVERS = (".*", "*/.*", "*__pycache__*", "*.pyc", "*~", "*.orig", "*.rej")
OURS = ["playground/*", "checkpoints/*", "docs/*"]
"""Files that are deleted there once they are gone here; everything else in a Space may be its owner's."""
ZERO_TORCH = "2.11.0"  # the newest that ZeroGPU's documentation lists
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"


@dataclass(frozen=True)
class Change:
    """What to do about one file that differs between here and the Space."""

    path: str
    action: str
    """add, update or delete."""
    size: int


@dataclass(frozen=True)
class Deployment:
    """All that a deployment would do."""

    space_id: str
    hardware: str
    sleep_seconds: int | None
    """Idle seconds after which paid hardware is released; None for hardware with its own rules for sleeping."""
    creates: bool
    """Whether the Space has yet to be made."""
    changes: tuple[Change, ...]
    files: dict[str, bytes] = field(repr=False)
    """Path → content of all that the Space needs."""


def compare(space_id: str, *, hardware: str = FREE, sleep_minutes: int = 15, root: Path = ROOT) -> Deployment:
    """Compare what the Space needs with what it holds.

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
    token, files = login(), needed_files(root, hardware)
    with exchange(f"Space {space_id}", token):
        try:
            info = HfApi(token=token).space_info(space_id, files_metadata=True)
        except RepositoryNotFoundError:
            info = None
    there = {file.rfilename: file for file in info.siblings or []} if info else {}
    if there.keys() - {"README.md", ".gitattributes"} and "playground/__init__.py" not in there:
        raise HubError(f"the Space {space_id} holds something else already, which would be lost: choose another name")
    changes = [
        Change(path, "update" if path in there else "add", len(content))
        for path, content in files.items()
        if path not in there or not _same(content, there[path])
    ]
    gone = [path for path in there if _matches(path, OURS) and path not in files]
    changes += [Change(path, "delete", there[path].size or 0) for path in gone]
    changes.sort(key=lambda change: change.path)
    sleep = None if hardware in (FREE, ZERO) else 60 * sleep_minutes
    return Deployment(space_id, hardware, sleep, info is None, tuple(changes), files)


def needed_files(root: Path = ROOT, hardware: str = FREE) -> dict[str, bytes]:
    """Path → content of everything that a Space on this hardware needs, and nothing else."""
    found = {path.relative_to(root).as_posix(): path for pattern in NEEDED for path in root.glob(pattern)}
    files = {n: path.read_bytes() for n, path in found.items() if path.is_file() and not _matches(n, LEFTOVERS)}
    for required in ("app.py", "requirements.txt", "README.md", "playground/__init__.py"):
        if required not in files:
            raise HubError(f"{root} has no {required}: deploy from a checkout of the project")
    files["requirements.txt"] = requirements_for(hardware, files["requirements.txt"].decode()).encode()
    return files


def requirements_for(hardware: str, text: str) -> str:
    """requirements.txt as this hardware's builder accepts it. gradio always comes from the card's sdk_version.

    ZeroGPU knows only certain torch releases; a Space without a GPU is spared gigabytes of CUDA libraries.
    """
    lines = [line for line in text.splitlines() if not re.match(r"gradio\b", line)]
    if hardware == ZERO:
        lines = [re.sub(r"^torch==[\w.+]+", f"torch=={ZERO_TORCH}", line) for line in lines]
    elif hardware.startswith("cpu"):
        lines = [f"--extra-index-url {CPU_WHEELS}"] + [re.sub(r"^(torch==[\d.]+)", r"\1+cpu", line) for line in lines]
    return "\n".join(lines) + "\n"


def deploy(deployment: Deployment, *, private: bool = False) -> str | None:
    """Make the Space if it is new (`private` or not), send the changes in one commit, and request the hardware.

    Returns the commit; None if nothing has changed. Raises HubError.
    """
    from huggingface_hub import HfApi

    token, space, idle, commit = login(), deployment.space_id, deployment.sleep_seconds, None
    api = HfApi(token=token)
    with exchange(f"Space {space}", token), tempfile.TemporaryDirectory() as folder:
        if deployment.creates:
            api.create_repo(
                space, repo_type="space", space_sdk="gradio", private=private, exist_ok=True,
                space_hardware=deployment.hardware, space_sleep_time=idle,
            )  # fmt: skip
        if deployment.changes:
            for name, content in deployment.files.items():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / name).write_bytes(content)
            commit = api.upload_folder(
                repo_id=space, repo_type="space", folder_path=folder, delete_patterns=OURS, commit_message="Deploy"
            ).oid
        runtime = api.get_space_runtime(space)
        if (runtime.requested_hardware or runtime.hardware) != deployment.hardware:
            api.request_space_hardware(space, deployment.hardware, sleep_time=idle)
        elif idle is not None and runtime.sleep_time != idle:
            api.set_space_sleep_time(space, idle)
    return commit


def address_of(space_id: str) -> str:
    """The address of the Space's page."""
    from huggingface_hub import HfApi

    return f"{HfApi().endpoint}/spaces/{space_id}"


def _matches(path: str, patterns: tuple[str, ...] | list[str]) -> bool:
    """Whether a path fits one of these patterns, whose * also stands for slashes, as in `upload_folder`."""
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def _same(content: bytes, there) -> bool:
    """Whether the file that the Hub lists has this content."""
    if there.lfs is not None:
        return there.lfs.sha256 == hashlib.sha256(content).hexdigest()
    return there.blob_id == hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
