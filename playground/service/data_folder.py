"""The data folder: what outlives the server: models, runs, comparisons, texts, progress in lessons, and classes.

playground.sqlite3   the index of everything (store.py)
work/<id>/           a folder per model and job: its checkpoint, and the state from which a run continues
.lock                only one server at a time uses the folder

A write that the disk refuses loses nothing: the data stays in memory and is tried again every few seconds; meanwhile
`problem` says so.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import logging
import os
import secrets
import shutil
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ..atomic_files import write_file
from ..kept import Latest
from .limits import RETRY_SECONDS
from .store import FILE, Store, StoreError

logger = logging.getLogger(__name__)

VARIABLE = "PLAYGROUND_DATA"
"""The environment variable that names the data folder."""
LOCK, WORK, TABLES = ".lock", "work", ("models", "jobs")
DELETION = "deletion of"
"""A kind of change: something is deleted."""
PREFIX = "playground-data-"
"""Prefix of the temporary folders for a server that keeps nothing, and for visitors' uploads."""
NAME_CHARACTERS = 60
"""Most characters in a model's name."""
LETTERS = 24
"""Characters in an id, and in each half of a visitor's secret."""


def new_id() -> str:
    """An unguessable id for a job or a model."""
    while (drawn := secrets.token_urlsafe(3 * LETTERS // 4)).startswith("-"):
        pass  # the shell would take a leading - for an option
    return drawn


def data_folder() -> Path:
    """Where a server keeps its data: the folder named by `PLAYGROUND_DATA`, a Space's disk, or the user's folder."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    if os.environ.get("SPACE_ID") and Path("/data").is_dir():
        return Path("/data")
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "transformer-playground"


def keeps_for_good() -> bool:
    """Whether the data folder survives a restart of this machine: not on a Space without a disk."""
    return not os.environ.get("SPACE_ID") or bool(os.environ.get(VARIABLE)) or Path("/data").is_dir()


class DataFolder:
    """One server's data folder; safe to use from several threads."""

    def __init__(self, path: Path | None = None, *, reading: bool = False):
        """Open the folder; None for a temporary one that is removed with the server.

        Raises BusyError if another server uses it, unless it is only read. Nothing is written before there is
        something to keep.
        """
        self.lasting = path is not None and keeps_for_good()
        self.path = path or Path(tempfile.gettempdir()) / f"{PREFIX}{secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._ends = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True) if path is None else None
        self._owned: FileLock | None = None
        self._late: dict[tuple[str, str], Callable[[], None]] = {}
        self._catching_up = False
        self._key: bytes | None = None
        self._deleted = Latest(1000)  # deleted ids; none is used again
        self.problem = ""
        """Why something could not be written, as a sentence without paths; empty if all is written."""
        if self.path.exists() and not reading:
            self._own()
        self.store = Store(self.path / FILE)

    @property
    def work(self) -> Path:
        """The folder that contains the models' and jobs' folders."""
        return self.path / WORK

    def folder_of(self, work_id: str) -> Path:
        """The folder for a model's or a job's files, which may not exist yet."""
        return self.work / work_id

    def close(self) -> None:
        """Close the folder; a temporary one is removed."""
        self.store.close()
        if self._owned is not None:
            self._owned.release()
            self._owned = None
        if self._ends is not None:
            self._ends()

    def _own(self) -> None:
        """Make the folder if needed, and lock it for this server."""
        with self._lock:
            if self._owned is not None:
                return
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = FileLock(self.path / LOCK, timeout=0, thread_local=False)
            try:
                lock.acquire()
            except Timeout:
                raise BusyError(self.path) from None
            except OSError:
                return  # a folder that cannot be written to needs no lock
            self._owned = lock

    # ---- writing -----------------------------------------------------------------------------------------------------

    def keep(self, kind: str, work_id: str, write: Callable[[], None]) -> bool:
        """Write something now or, if that fails, later. Returns whether it was written.

        Only the newest write of a kind and id counts: earlier ones that still wait are dropped. So are those for
        anything that is deleted meanwhile.
        """
        with self._lock:
            self._late.pop((kind, work_id), None)
        try:
            self._own()
            write()
        except (OSError, StoreError) as problem:
            with self._lock:
                if kind != DELETION and work_id in self._deleted:  # while it was written: the disk is not at fault
                    shutil.rmtree(self.folder_of(work_id), ignore_errors=True)
                    return False
                logger.warning("%s %s could not be saved: %s", kind, work_id, problem)
                first, self._catching_up = not self._catching_up, True
                self._late[kind, work_id] = write
                self.problem = _in_words(problem)
            if first:
                threading.Thread(target=self._catch_up, name="catch-up", daemon=True).start()
            return False
        return True

    def change(self, kind: str, work_id: str, *statements: tuple[str, tuple], wipe: bool = False) -> None:
        """Execute these (statement, values) on the index, now or later, and `wipe` what they deleted: see `keep`."""

        def write() -> None:
            with self.store.change() as db:
                for statement in statements:
                    db.execute(*statement)
            if wipe:
                self.store.wipe()

        self.keep(kind, work_id, write)

    def rows(self, query: str, *values: object) -> list:
        """The rows that a query of the index finds; none if it cannot be read."""
        try:
            return self.store.rows(query, *values)
        except StoreError as problem:
            self.problem = _in_words(problem)
            return []

    def can_write(self, folder: Path) -> bool:
        """Whether files can be written in this subfolder of the data folder now; creates the subfolder if needed."""

        def write() -> None:
            folder.mkdir(parents=True, exist_ok=True)
            write_file(folder / ".probe", lambda partial: partial.write_bytes(bytes(4096)))
            (folder / ".probe").unlink()

        return self.keep("folder", folder.name, write)

    def delete(self, work_id: str) -> None:
        """Remove all that is kept of a model or job: its rows, its folder, and writes that still wait."""
        with self._lock:
            self._deleted[work_id] = None
            for late in [late for late in self._late if late[1] == work_id]:
                del self._late[late]
        shutil.rmtree(self.folder_of(work_id), ignore_errors=True)
        if self.store.there:
            self.change(DELETION, work_id, *((f"DELETE FROM {table} WHERE id = ?", (work_id,)) for table in TABLES))

    def models(self) -> list[dict[str, Any]]:
        """The kept models, the newest first: id, name, bytes, time of last use, and folder."""
        rows = self.store.rows("SELECT id, name, bytes, used FROM models ORDER BY made DESC")
        return [{**row, "folder": str(self.folder_of(row["id"]))} for row in rows]

    def rename(self, model_id: str, name: str) -> str:
        """Rename a model in the index; returns the name, tidied. Raises ValueError."""
        name = tidy_name(name)
        renamed = ((f"UPDATE {table} SET name = ? WHERE id = ?", (name, model_id)) for table in TABLES)
        self.change("name", model_id, *renamed)
        return name

    def _catch_up(self) -> None:
        """Retry failed writes until all have succeeded."""
        while self._catching_up:
            time.sleep(RETRY_SECONDS)
            for (kind, work_id), write in list(self._late.items()):
                if not self.keep(kind, work_id, write):
                    break  # there will be no room for the others either
            with self._lock:
                if not self._late:
                    self._catching_up, self.problem = False, ""

    # ---- lessons -----------------------------------------------------------------------------------------------------

    def keep_lessons(self, visitor: str, progress: str) -> None:
        """Note how far a visitor is in the lessons, as the JSON of a `lessons.Progress`."""
        self.change("lessons", visitor, ("REPLACE INTO lessons VALUES (?, ?, ?)", (visitor, progress, time.time())))

    def lessons(self, visitor: str) -> str:
        """The progress noted last; empty if there is none."""
        rows = self.rows("SELECT progress FROM lessons WHERE visitor = ?", visitor)
        return rows[0]["progress"] if rows else ""

    def forget_lessons(self, *, visitor: str = "", before: float = 0.0) -> None:
        """Delete the progress of this visitor, and of all who did nothing since then (in seconds of `time.time`)."""
        if self.store.there:
            gone = "DELETE FROM lessons WHERE visitor = ? OR used < ?", (visitor, before)
            self.change("deletion of lessons", visitor, gone, wipe=True)

    # ---- who a visitor is --------------------------------------------------------------------------------------------

    def new_visitor(self) -> str:
        """A new visitor's secret: 24 random letters and this server's signature for them."""
        drawn = new_id()
        return drawn + self._signature(drawn)

    def knows(self, visitor: object) -> bool:
        """Whether this server has issued that secret, perhaps before a restart."""
        if not isinstance(visitor, str) or len(visitor) != 2 * LETTERS or not visitor.isascii():
            return False
        return hmac.compare_digest(self._signature(visitor[:LETTERS]), visitor[LETTERS:])

    def shared_id(self, model_id: str) -> str:
        """An id with which anyone may use a visitor's model: the model's own, with this server's signature."""
        return f"{model_id}.{self._signature(f'shared {model_id}')}"

    def unshared_id(self, shared: str) -> str:
        """The model's own id; empty if this server did not issue `shared`."""
        model_id = shared.partition(".")[0]
        known = "." in shared and shared.isascii() and hmac.compare_digest(self.shared_id(model_id), shared)
        return model_id if known else ""

    def _signature(self, text: str) -> str:
        return hmac.new(self._signing_key(), text.encode(), hashlib.sha256).hexdigest()[:LETTERS]

    def _signing_key(self) -> bytes:
        with self._lock:
            if self._key is not None:
                return self._key
        try:
            rows = self.store.rows("SELECT value FROM facts WHERE name = 'key'")
        except StoreError:
            rows = []
        with self._lock:
            made = self._key is None and not rows
            self._key = self._key or (rows[0]["value"] if rows else secrets.token_bytes(32))
            key = self._key
        if made:
            self.change("the key", "of visitors", ("INSERT OR IGNORE INTO facts VALUES ('key', ?)", (key,)))
        return key


def tidy_name(name: object) -> str:
    """A model's name in the form that is kept. Raises ValueError if it is not a valid name."""
    tidied = " ".join(name.split()) if isinstance(name, str) else ""
    if not 1 <= len(tidied) <= NAME_CHARACTERS:
        raise ValueError(f"A name has from 1 to {NAME_CHARACTERS} characters.")
    return tidied


class BusyError(OSError):
    """Another server uses this data folder."""


def folder_for_uploads() -> Path:
    """This server's own temporary folder for uploads; removed with the server, or at the next start.

    Gradio's folder is shared by all servers, and uploads to a killed server would stay in it for good.
    """
    folder = DataFolder()
    folder._own()
    _held.append(folder)
    return folder.path


_held: list[DataFolder] = []


def forget_crashed_servers() -> None:
    """Remove the temporary folders of servers that ended without removing them."""
    for left in Path(tempfile.gettempdir()).glob("playground-*"):
        if left.name.startswith(PREFIX):
            lock = FileLock(left / LOCK, timeout=0)
            try:
                lock.acquire()
            except (Timeout, OSError):
                continue
            lock.release()
        elif not left.is_dir() or time.time() - left.stat().st_mtime < 24 * 3600:
            continue  # belongs to a running server, or to something else
        shutil.rmtree(left, ignore_errors=True)


def _in_words(problem: Exception) -> str:
    if isinstance(problem, BusyError):
        return "another playground keeps its work in this page's data folder"
    return disk_problem(problem.__cause__ or problem) or _CANNOT_WRITE


_FULL, _CANNOT_WRITE = "the disk of this page's server is full", "this page's server cannot write to its disk"


def disk_problem(problem: BaseException) -> str:
    """What is wrong with the disk, as half a sentence, if it stopped a write; otherwise empty."""
    if "full" in str(problem) or "No space" in str(problem) or getattr(problem, "errno", None) == errno.EDQUOT:
        return _FULL
    return _CANNOT_WRITE if getattr(problem, "errno", None) in (errno.EROFS, errno.EACCES, errno.EIO) else ""
