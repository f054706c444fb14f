"""The file of classes: one SQLite database under the data folder, made with the first class.

Every change is one transaction, so that a kill leaves the old or the new. What is deleted is overwritten with zeros,
and the write-ahead log emptied after it, so that neither file still holds it.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..limits import CLASS_BYTES
from .codes import ClassError, StoreError

LOG = logging.getLogger(__name__)
VARIABLE = "PLAYGROUND_DATA"
"""The environment variable that names the data folder."""
FILE = "classes.sqlite3"
_VERSION = 1

_TABLES = """
CREATE TABLE classes (
    id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, secret BLOB NOT NULL, title TEXT NOT NULL,
    lesson TEXT NOT NULL, letters TEXT NOT NULL, text TEXT NOT NULL, changes TEXT NOT NULL, target REAL,
    made REAL NOT NULL, ends REAL NOT NULL, version INTEGER NOT NULL DEFAULT 0, numbers INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE students (
    id INTEGER PRIMARY KEY, class INTEGER NOT NULL REFERENCES classes ON DELETE CASCADE, number INTEGER NOT NULL,
    name TEXT NOT NULL, visitor BLOB NOT NULL, joined REAL NOT NULL, lesson TEXT NOT NULL DEFAULT '',
    step INTEGER NOT NULL DEFAULT 0, steps INTEGER NOT NULL DEFAULT 0,
    UNIQUE (class, number), UNIQUE (class, visitor)
);
CREATE INDEX students_by_visitor ON students (visitor, joined);
CREATE TABLE answers (
    student INTEGER NOT NULL REFERENCES students ON DELETE CASCADE, lesson TEXT NOT NULL, step INTEGER NOT NULL,
    question TEXT NOT NULL, answer TEXT NOT NULL, found TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (student, lesson, step)
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, student INTEGER NOT NULL REFERENCES students ON DELETE CASCADE, run BLOB NOT NULL,
    at REAL NOT NULL, letters TEXT NOT NULL, report TEXT NOT NULL, UNIQUE (student, run)
);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY, student INTEGER NOT NULL REFERENCES students ON DELETE CASCADE, letters TEXT NOT NULL,
    at REAL NOT NULL, claimed REAL NOT NULL, state TEXT NOT NULL, said TEXT NOT NULL DEFAULT '',
    loss REAL, flops REAL, seconds REAL, UNIQUE (student, letters)
);
"""


def data_folder() -> Path:
    """Where a house keeps what outlives its process: what `PLAYGROUND_DATA` names, a Space's disk, or a user's own."""
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


class Store:
    """One connection to the file, which threads use in turns. Other processes may have it open as well."""

    def __init__(self, path: Path):
        self.path = path
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None

    @property
    def there(self) -> bool:
        """Whether a class was ever made here; else there is nothing to look up."""
        return self._db is not None or self.path.exists()

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """What a query finds; nothing where there is no file."""
        if not self.there:
            return []
        with self._lock, self._in_words():
            return self._opened().execute(query, values).fetchall()

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it counts, or nothing."""
        with self._lock, self._in_words():
            db = self._opened()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def wipe(self) -> None:
        """Empty the log, in which deleted rows may still stand."""
        with self._lock, self._in_words():
            self._opened().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)
            db = sqlite3.connect(self.path, timeout=10, isolation_level=None, check_same_thread=False)
            try:
                db.row_factory = sqlite3.Row
                db.execute("PRAGMA foreign_keys = ON")
                db.execute("PRAGMA secure_delete = ON").fetchall()
                db.execute("PRAGMA journal_mode = WAL").fetchall()
                db.execute("PRAGMA synchronous = NORMAL")
                size = db.execute("PRAGMA page_size").fetchone()[0]
                db.execute(f"PRAGMA max_page_count = {CLASS_BYTES // size}").fetchall()
                self._lay_out(db)
            except BaseException:
                db.close()
                raise
            self._db = db
        return self._db

    def _lay_out(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")  # of two servers that begin at once, one makes the tables
        found = db.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, _VERSION):
            LOG.error(
                "%s was made by another version of this page: move it away, or name another folder with %s",
                self.path,
                VARIABLE,
            )
            raise ClassError("The classes here were made by another version of this page: tell whoever runs it.")
        if found == 0:
            for statement in _TABLES.split(";\n"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {_VERSION}")
        db.execute("COMMIT")

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Where the file lies is for the log: visitors read the sentence."""
        try:
            yield
        except (sqlite3.Error, OSError) as problem:
            LOG.error("%s cannot be used: %s", self.path, problem)
            raise StoreError(
                "The file of classes cannot be used right now: try again, or tell whoever runs this page."
            ) from problem
