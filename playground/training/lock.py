"""The lock of a run's folder: one process at a time trains into it, and one that died holds nothing."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

from ..atomic_files import forget_halves

LOCK = ".lock"


def owned(folder: Path) -> FileLock:
    """The folder's lock, made and taken; `release` gives it back, and so does the end of the process.

    What an owner before left half-written is gone. Raises ValueError where somebody else holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # by whichever thread: a page's runs begin in one and may end in another
    lock = FileLock(folder / LOCK, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise ValueError(
            f"another run is being trained into {folder}: wait until it ends, or choose another folder"
        ) from None
    forget_halves(folder)
    return lock
