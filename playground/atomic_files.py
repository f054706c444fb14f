"""Whole: files and folders are written so that a kill at any moment leaves the old one or the new one, never a half.

A file is written beside its place, flushed to the disk, and moved there in one move. A folder that is new is moved
there in one move, too. Into a folder that exists already its new files are written under a name that nobody reads, and
count from the one move that calls it `.committed`; then they go to their places one by one. Readers ask `current_file`
where a file is, the next writer finishes what a killed one had begun. All of it by `os.replace`, which is one move on
every system.
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
"""Of the names of what is being written."""
_ABANDONED = 3600.0  # seconds after which a half-written file is taken to have no writer any more
_TRIES = 20

T = TypeVar("T")


def write_file(path: str | Path, write: Callable[[Path], object]) -> Path:
    """Have `write` fill a file, and put it at `path` in one move. Raises OSError where that cannot be done."""
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
    """Have `fill` write files into an empty folder, and let all of them count in one move; return what it returns.

    Files of other names that the folder holds already are kept. Raises OSError where it cannot be done.
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
    """Move what counts already to its place, if a writer was killed before it could."""
    committed = folder / COMMITTED
    if committed.is_dir():
        for file in sorted(committed.iterdir()):
            os.replace(file, folder / file.name)
        _flush_folder(folder)
        committed.rmdir()


def current_file(folder: Path, name: str) -> Path:
    """Where a folder's file of this name is, or would be."""
    newer = folder / COMMITTED / name
    return newer if newer.is_file() else folder / name


def read_folder(folder: Path, names: Iterable[str], read: Callable[[], T]) -> T:
    """What `read` makes of these files; it is asked again where a writer has replaced some of them meanwhile."""
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
    """Bytes of all files in a folder, while others may write and move some."""
    total = 0
    for inside, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # moved since it was listed
                total += os.path.getsize(os.path.join(inside, name))
    return total


def forget_halves(folder: Path) -> None:
    """Remove what killed writers left half-written; for who alone writes into the folder."""
    for ending in ENDINGS:
        _forget(folder.glob(f".*.{'[0-9a-f]' * 8}.{ending}"), older=-math.inf)


def _as_os_error(problem: BaseException) -> BaseException:
    """What safetensors raises where a disk is full is none by itself."""
    return OSError(str(problem)) if isinstance(problem, SafetensorError) else problem


def _beside(path: Path, ending: str) -> Path:
    """A name that nobody else writes to; what writers who were killed left under such names goes."""
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
    """Make an empty file and say which permissions it has: safetensors would give its owner alone any."""
    with open(path, "xb") as file:
        return os.fstat(file.fileno()).st_mode & 0o777


def _flush(path: Path, mode: int) -> None:
    path.chmod(mode)
    with open(path, "rb+") as file:  # Windows flushes only what may be written
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # a folder cannot be opened there, and its entries are the system's own business
    at = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(at)
    finally:
        os.close(at)


def _stamps(folder: Path, names: tuple[str, ...]) -> list[tuple[int, int, int] | None]:
    return [_stamp(current_file(folder, name)) for name in names]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes when another file takes this one's place, and not when it is moved."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
