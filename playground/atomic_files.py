"""Whole files: files and folders are written so that a kill leaves the old one or the new one, never a half.

A new file is written under a temporary name beside the old one, flushed to the disk, and renamed in one move. A new
folder is renamed in one move, too. For an existing folder, the new files are first written into a subfolder that nobody
reads. Renaming this subfolder to `.committed` makes them valid; then each is moved to its final place. Readers ask
`current_file` where a file is; the next writer finishes what a killed one had begun. Every move is an `os.replace`,
which is atomic on every system.
"""

from __future__ import annotations

import contextlib
import glob
import math
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from safetensors import SafetensorError

COMMITTED = ".committed"
ENDINGS = ("partial", "new")
"""Endings of the names of unfinished files and folders."""
_ABANDONED = 3600.0  # seconds after which a half-written file is taken to be abandoned
_TRIES = 20

T = TypeVar("T")


def write_file(path: str | Path, write: Callable[[Path], object]) -> Path:
    """Have `write` fill a file, and put it at `path` in one move. Raises OSError if that fails."""
    path = Path(path)
    partial = _beside(path, "partial")
    try:
        mode = _new_file(partial)
        write(partial)
        _flush(partial, mode)
        os.replace(partial, path)
    except BaseException as problem:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise _as_os_error(problem) from problem
    _flush_folder(path.parent)
    return path


def write_folder(folder: str | Path, fill: Callable[[Path], T]) -> T:
    """Have `fill` write files into an empty folder, and make all of them count in one move; return `fill`'s result.

    Files in the folder with other names are kept. Raises OSError if that fails.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    there = folder.exists()
    if there:
        recover_commit(folder)
    made = _beside(folder / "files" if there else folder, "new")
    made.mkdir()
    try:
        filled = fill(made)
        mode = made.stat().st_mode & 0o666
        for file in made.iterdir():
            _flush(file, mode)
        _flush_folder(made)
        os.replace(made, folder / COMMITTED if there else folder)
    except BaseException as problem:
        shutil.rmtree(made, ignore_errors=True)
        raise _as_os_error(problem) from problem
    _flush_folder(folder if there else folder.parent)
    recover_commit(folder)
    return filled


def recover_commit(folder: Path) -> None:
    """Move committed files to their places, if the writer was killed before it could."""
    committed = folder / COMMITTED
    if committed.is_dir():
        for file in sorted(committed.iterdir()):
            os.replace(file, folder / file.name)
        _flush_folder(folder)
        committed.rmdir()


def current_file(folder: Path, name: str) -> Path:
    """The present path of a folder's file with this name, which may not exist."""
    newer = folder / COMMITTED / name
    return newer if newer.is_file() else folder / name


def read_folder(folder: Path, names: Iterable[str], read: Callable[[], T]) -> T:
    """The result of `read` on these files; read again if a writer has replaced some of them meanwhile."""
    names = tuple(names)
    for _ in range(_TRIES):
        before = _stamps(folder, names)
        try:
            value = read()
        except Exception:
            if _stamps(folder, names) == before:
                raise
        else:
            if _stamps(folder, names) == before:
                return value
    raise OSError(f"{folder} is being written all the time: try again later")


def bytes_of(folder: Path) -> int:
    """Bytes of all files in a folder, even while others write and move some."""
    total = 0
    for inside, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # moved since it was listed
                total += os.path.getsize(os.path.join(inside, name))
    return total


def forget_halves(folder: Path) -> None:
    """Remove half-written files of killed writers; only for the folder's sole writer."""
    for ending in ENDINGS:
        _forget(folder.glob(f".*.{'[0-9a-f]' * 8}.{ending}"), older=-math.inf)


def _as_os_error(problem: BaseException) -> BaseException:
    """Turn what safetensors raises on a full disk into an OSError."""
    return OSError(str(problem)) if isinstance(problem, SafetensorError) else problem


def _beside(path: Path, ending: str) -> Path:
    """A fresh temporary name for this writer alone; removes temporary files that killed writers left."""
    _forget(path.parent.glob(f".{glob.escape(path.name)}.*.{ending}"), older=_ABANDONED)
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.{ending}")


def _forget(halves: Iterable[Path], *, older: float) -> None:
    for left in halves:
        try:
            if time.time() - left.stat().st_mtime >= older:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        except OSError:
            continue  # another writer was quicker


def _new_file(path: Path) -> int:
    """Make an empty file and return its permissions: safetensors would let only the owner read it."""
    with open(path, "xb") as file:
        return os.fstat(file.fileno()).st_mode & 0o777


def _flush(path: Path, mode: int) -> None:
    path.chmod(mode)
    with open(path, "rb+") as file:  # Windows flushes only files opened for writing
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # folders cannot be opened there, and the system itself takes care of their entries
    at = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(at)
    finally:
        os.close(at)


def _stamps(folder: Path, names: tuple[str, ...]) -> list[tuple[int, int, int] | None]:
    return [_stamp(current_file(folder, name)) for name in names]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """A value that changes when another file takes this one's place, but not when the file is moved."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
