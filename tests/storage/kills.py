"""Kills: what a folder looks like at every moment at which its writer might be killed.

A killed process leaves its files as they are, so nobody needs to be killed: before every call that changes something
under a folder, and at every flush of a file, a copy of it is taken. At a flush one copy has only the first half of that
file, which is what a machine that loses its power may keep of a file that was not flushed.
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

_CHANGES = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.symlink"}
_watching: list[Callable[[str, tuple], None]] = []
_hooked = False


def moments(write: Callable[[], object], folder: Path, copies: Path) -> list[Path]:
    """Have `write` change the folder, and give copies of it: one for each moment at which it could have been killed."""
    copies.mkdir()
    found: list[Path] = []

    def copy(half: Path | None = None) -> None:
        to = copies / f"{len(found):03d}"
        shutil.copytree(folder, to)
        if half is not None and (cut := to / half.relative_to(folder)).is_file():
            os.truncate(cut, cut.stat().st_size // 2)
        found.append(to)

    def before(event: str, arguments: tuple) -> None:
        flags = arguments[2] if event == "open" and len(arguments) > 2 else os.O_CREAT
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes and any(_under(argument, folder) for argument in arguments[:2]):
            copy()

    with _watched(before), _at_each_flush(copy, folder):
        write()
    copy()
    return found


def _under(path: object, folder: Path) -> bool:
    return isinstance(path, (str, bytes, os.PathLike)) and Path(os.fsdecode(path)).is_relative_to(folder)


@contextlib.contextmanager
def _watched(before: Callable[[str, tuple], None]) -> Iterator[None]:
    global _hooked
    if not _hooked:  # a hook stays for ever
        sys.addaudithook(_hook)
        _hooked = True
    _watching.append(before)
    try:
        yield
    finally:
        _watching.remove(before)


def _hook(event: str, arguments: tuple) -> None:
    if event in _CHANGES and _watching:
        watcher = _watching.pop()  # what it does itself is not watched
        try:
            watcher(event, arguments)
        finally:
            _watching.append(watcher)


@contextlib.contextmanager
def _at_each_flush(copy: Callable[[Path | None], None], folder: Path) -> Iterator[None]:
    flush = os.fsync

    def flushed(at: int) -> None:
        watching = list(_watching)
        _watching.clear()
        try:
            path = Path(f"/proc/self/fd/{at}").resolve() if os.path.exists("/proc/self/fd") else None
            copy(path if path is not None and path.is_relative_to(folder) else None)
        finally:
            _watching.extend(watching)
        flush(at)

    os.fsync = flushed
    try:
        yield
    finally:
        os.fsync = flush
