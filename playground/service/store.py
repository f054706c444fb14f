"""The index of the data folder: one SQLite database of models, jobs, lessons' progress and classes.

It is made when there is something to keep. Every change is one transaction, so that a kill leaves the old or the new.
Deleted data is overwritten with zeros and the write-ahead log then emptied, so that neither file still holds it.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .limits import INDEX_BYTES

logger = logging.getLogger(__name__)

FILE = "playground.sqlite3"

_TABLES = """
CREATE TABLE classes (
    id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, secret BLOB NOT NULL, title TEXT NOT NULL,
    lesson TEXT NOT NULL, letters TEXT NOT NULL, text TEXT NOT NULL, changes TEXT NOT NULL, target REAL,
    made REAL NOT NULL, ends REAL NOT NULL, version INTEGER NOT NULL DEFAULT 0, numbers INTEGER NOT NULL DEFAULT 0,
    origin TEXT NOT NULL DEFAULT ''
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
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE models (
    id TEXT PRIMARY KEY, visitor TEXT NOT NULL, share TEXT NOT NULL, name TEXT NOT NULL, experts INTEGER NOT NULL,
    bytes INTEGER NOT NULL, made REAL NOT NULL, used REAL NOT NULL
);
CREATE INDEX models_by_visitor ON models (visitor);
CREATE TABLE jobs (
    id TEXT PRIMARY KEY, visitor TEXT NOT NULL, share TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
    number INTEGER NOT NULL, state TEXT NOT NULL, round INTEGER NOT NULL, turn INTEGER NOT NULL,
    tries INTEGER NOT NULL, used REAL NOT NULL
);
CREATE INDEX jobs_by_visitor ON jobs (visitor);
CREATE TABLE lessons (visitor TEXT PRIMARY KEY, progress TEXT NOT NULL, used REAL NOT NULL);
"""
_VERSION = 3


class StoreError(ValueError):
    """The index cannot be read or written at the moment."""


class Store:
    """One connection to the file, which threads use in turn. Other processes may have the file open as well."""

    def __init__(self, path: Path):
        self.path = path
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None

    @property
    def there(self) -> bool:
        """Whether the database exists; if not, there is nothing to look up."""
        return self._db is not None or self.path.exists()

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """The rows that a query finds; none if there is no file."""
        if not self.there:
            return []
        with self._lock, _in_words():
            return self._opened().execute(query, values).fetchall()

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of its changes are made, or none."""
        with self._lock, _in_words():
            db = self._opened()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # a full disk has ended it already
                    db.execute("ROLLBACK")
                raise

    def wipe(self) -> None:
        """Empty the log, which may still hold deleted rows."""
        with self._lock, _in_words():
            self._opened().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the file."""
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
                db.execute(f"PRAGMA max_page_count = {INDEX_BYTES // size}").fetchall()
                self._lay_out(db)
            except BaseException:
                db.close()
                raise
            self._db = db
        return self._db

    def _lay_out(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")  # if two servers begin at once, only one makes the tables
        found = db.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, _VERSION):
            raise StoreError(
                "Another version of this page wrote the data folder. Update the page, or start with another folder."
            )
        for statement in () if found else _TABLES.split(";\n"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {_VERSION}")
        db.execute("COMMIT")


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as problem:
        logger.warning("the index cannot be used: %s", problem)
        raise StoreError(
            "The page cannot read or write its data folder right now. Try again, or tell the owner of this page."
        ) from problem
