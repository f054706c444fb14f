"""Classes: what teachers and students may do, and what the server remembers.

Anyone with the code may join; anyone with the secret as well is the teacher; nobody else sees anything. A browser is
known by a hash of its stored id, which is on no board and in no table.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import lru_cache

from ...words.classroom import CHANGING
from ..limits import (
    ANSWER,
    CLASS_ALONE_DAYS,
    CLASS_ANSWERS,
    CLASS_DAYS,
    CLASS_KEPT_DAYS,
    CLASS_RUNS,
    CLASS_TITLE,
    CLASSES,
    CLASSES_PER_ADDRESS,
    STUDENT_NAME,
    STUDENTS,
)
from ..run_job import RunJob
from ..store import Store
from .codes import (
    ClassError,
    WrongCodes,
    alphabets,
    free_name,
    hashed,
    new_code,
    new_secret,
    one_line,
    regular,
    same_secret,
    short_line,
)
from .members import IN_FILE, Klass, Member, Report, Run, Student, report

logger = logging.getLogger(__name__)

_NO_CLASS = "No class has this code. Check its four words."
SILENT_SECONDS = 180.0
"""After this long without news a run is taken to be over."""


class Classes:
    """All classes on a server, in its index."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time):
        self.store, self.clock = store, clock
        self.wrong = WrongCodes(clock)
        self._swept = 0.0

    # ---- the teacher -------------------------------------------------------------------------------------------------

    def make(
        self,
        title: object,
        hours: float,
        *,
        lesson: str = "",
        letters: str = "",
        text: str = "",
        changes: str = "",
        address: str = "",
    ) -> tuple[Klass, str]:
        """A new class, and the secret that makes its maker the teacher. Raises ValueError."""
        title = short_line(title, CLASS_TITLE, "title") or "A class"
        if changes not in CHANGING or not 0 < hours <= 24 * CLASS_DAYS:
            raise ClassError("Choose what the students change, and when the class ends.")
        self.sweep()
        now, code, secret, origin = self.clock(), new_code(), new_secret(), origin_of(address)
        kept = {"title": title, "lesson": lesson, "letters": letters, "text": text, "changes": changes}
        kept |= {"code": code, "secret": hashed(secret), "made": now, "ends": now + 3600 * hours, "origin": origin}
        with self.store.change() as db:
            (there,) = db.execute("SELECT count(*) FROM classes").fetchone()
            (own,) = db.execute("SELECT count(*) FROM classes WHERE origin = ?", (origin,)).fetchone()
            if there >= CLASSES or own >= CLASSES_PER_ADDRESS:
                whose = "from your network" if own >= CLASSES_PER_ADDRESS else "here"
                raise ClassError(f"There are many classes {whose} already: delete one, or try again tomorrow.")
            marks = ", ".join("?" * len(kept))
            db.execute(f"INSERT INTO classes ({', '.join(kept)}) VALUES ({marks})", tuple(kept.values()))
        return self._of_code(code), secret

    def taught(self, code: object, secret: object, address: str = "") -> Klass:
        """The class whose teacher's link this is. Raises ClassError."""
        self.sweep()
        found = self.store.rows("SELECT * FROM classes WHERE code = ?", regular(code))
        if found and same_secret(secret, found[0]["secret"]):
            return self._klass(found[0])  # however often others guessed from the same network
        self.wrong.count(address)
        link = "This is not the teacher's link of this class: copy all of it, to its last letter."
        raise ClassError(link if found else _NO_CLASS)

    def end(self, klass: Klass) -> None:
        """End the class now: nobody can join any more, and no further run counts."""
        with self.store.change() as db:
            db.execute("UPDATE classes SET ends = min(ends, ?) WHERE id = ?", (self.clock(), klass.id))
            _touch(db, klass.id)

    def delete(self, klass: Klass) -> None:
        """Delete a class and all data of its students. If two do so at once, both succeed."""
        with self.store.change() as db:
            db.execute("DELETE FROM classes WHERE id = ?", (klass.id,))
        self.store.wipe()

    def students(self, klass: Klass) -> tuple[Student, ...]:
        """The students as the board knows them, in the order of joining."""
        runs: dict[int, list[Run]] = {}
        for row in self.store.rows(
            "SELECT runs.* FROM runs JOIN students ON students.id = student WHERE class = ? ORDER BY at, runs.id",
            klass.id,
        ):
            runs.setdefault(row["student"], []).append(_run(row))
        names = ("id", "number", "name", "joined", "lesson", "step", "steps")
        return tuple(
            Student(**{name: row[name] for name in names}, runs=tuple(runs.get(row["id"], ())))
            for row in self.store.rows("SELECT * FROM students WHERE class = ? ORDER BY number", klass.id)
        )

    def answers(self, klass: Klass) -> list[sqlite3.Row]:
        """Every answer, with its student's number and name."""
        return self.store.rows(
            "SELECT number, name, answers.* FROM answers JOIN students ON students.id = student "
            "WHERE class = ? ORDER BY number, answers.lesson, answers.step",
            klass.id,
        )

    # ---- students ----------------------------------------------------------------------------------------------------

    def invited(self, code: object, address: str = "") -> Klass:
        """The class for this code, if it has not ended. Raises ClassError."""
        self.sweep()
        if code in ("", None):
            raise ClassError("Type your class's code first: four words.")
        klass = self._of_code(regular(code))
        if klass is None:
            self.wrong.count(address)
            raise ClassError(_NO_CLASS)
        if klass.ended:
            raise ClassError(f"The class “{klass.title}” has ended: ask for the code of another one.")
        return klass

    def join(self, code: object, name: object, visitor: str, address: str = "") -> Member:
        """Become a student of a class, or take another name there. Raises ClassError."""
        name = short_line(name, STUDENT_NAME, "name")
        if code and not name:
            raise ClassError("Choose a name first. Your teacher's board shows it.")
        if len(alphabets(name)) > 1:
            raise ClassError("This name mixes alphabets, so it could look like another one. Use one alphabet.")
        klass = self.invited(code, address)
        with self.store.change() as db:
            mine = db.execute("SELECT * FROM students WHERE class = ? AND visitor = ?", (klass.id, hashed(visitor)))
            mine = mine.fetchone()
            others = db.execute("SELECT id, name FROM students WHERE class = ?", (klass.id,)).fetchall()
            taken = {row["name"].casefold() for row in others if mine is None or row["id"] != mine["id"]}
            name = free_name(name, taken)
            if mine is not None:
                db.execute("UPDATE students SET name = ?, joined = ? WHERE id = ?", (name, self.clock(), mine["id"]))
            elif len(others) >= STUDENTS:
                raise ClassError(f"This class is full: it has {STUDENTS} students.")
            else:
                db.execute("UPDATE classes SET numbers = numbers + 1 WHERE id = ?", (klass.id,))
                db.execute(
                    "INSERT INTO students (class, number, name, visitor, joined) "
                    "SELECT id, numbers, ?, ?, ? FROM classes WHERE id = ?",
                    (name, hashed(visitor), self.clock(), klass.id),
                )
            _touch(db, klass.id)
        member = self.member(visitor)
        if member is None:
            raise ClassError("This class is not there any more.")
        return member

    def member(self, visitor: object) -> Member | None:
        """The visitor's membership in the class joined last, if that class still exists."""
        if not self.store.there or not visitor:
            return None
        rows = self.store.rows(
            "SELECT students.id AS student, number, name, classes.* FROM students JOIN classes "
            "ON classes.id = class WHERE visitor = ? ORDER BY joined DESC LIMIT 1",
            hashed(visitor),
        )
        return Member(self._klass(rows[0]), rows[0]["student"], rows[0]["number"], rows[0]["name"]) if rows else None

    def latest_of(self, member: Member) -> Run | None:
        """The student's most recently reported run."""
        latest = "SELECT * FROM runs WHERE student = ? ORDER BY at DESC, id DESC LIMIT 1"
        return next(map(_run, self.store.rows(latest, member.id)), None)

    def withdraw(self, member: Member) -> None:
        """Remove a student, with all that the class knows about them."""
        with self.store.change() as db:
            db.execute("DELETE FROM students WHERE id = ?", (member.id,))
            _touch(db, member.klass.id)
        self.store.wipe()

    def forget(self, visitor: str) -> None:
        """Remove a student from all classes, with all that these know about them."""
        while (member := self.member(visitor)) is not None:
            self.withdraw(member)

    def heard(self, job: RunJob) -> None:
        """Called when a run was measured: if a student trains it, the class remembers. Never disturbs the run."""
        try:
            member = self.member(job.visitor)
            found = report(job) if member is not None and not member.klass.ended else None
            if found is None:
                return
            with self.store.change() as db:
                db.execute(
                    "INSERT INTO runs (student, run, at, letters, report) VALUES (?, ?, ?, ?, ?) ON CONFLICT "
                    "DO UPDATE SET at = excluded.at, letters = excluded.letters, report = excluded.report",
                    (member.id, hashed(job.id), self.clock(), found[0], IN_FILE.dump_json(found[1]).decode()),
                )
                _keep_latest(db, "runs", "id", member.id, CLASS_RUNS)
                _touch(db, member.klass.id)
        except Exception:
            logger.exception("A run could not be entered in a class")

    def progress(
        self, visitor: object, lesson: str, step: int, steps: int, answers: Sequence[tuple[int, str, str, str]] = ()
    ) -> None:
        """Record how far a visitor is in a lesson, if the visitor is a student of a class that has not ended.

        Args:
            answers: (step, question, the visitor's guess, the answer found).
        """
        member = self.member(visitor)
        if member is None or member.klass.ended:
            return
        cut = [(at, *(one_line(part, ANSWER) for part in parts)) for at, *parts in answers[:CLASS_ANSWERS]]
        with self.store.change() as db:
            place = (lesson, step, steps, member.id)
            changed = db.execute(
                "UPDATE students SET lesson = ?1, step = ?2, steps = ?3 WHERE id = ?4 "
                "AND (lesson, step, steps) IS NOT (?1, ?2, ?3)",
                place,
            ).rowcount
            for row in cut:
                changed += db.execute(
                    "INSERT INTO answers (student, lesson, step, question, answer, found, at) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET question = excluded.question, "
                    "answer = excluded.answer, found = excluded.found, at = excluded.at "
                    "WHERE (answer, found) IS NOT (excluded.answer, excluded.found)",
                    (member.id, lesson, *row, self.clock()),
                ).rowcount
            if changed:
                _keep_latest(db, "answers", "rowid", member.id, CLASS_ANSWERS)
                _touch(db, member.klass.id)

    # ---- how they end ------------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Delete classes that ended long ago or that nobody joined; checks once an hour."""
        now = self.clock()
        if not self.store.there or now - self._swept < 3600:
            return
        self._swept = now
        with self.store.change() as db:
            gone = db.execute(
                "DELETE FROM classes WHERE ends < ? "
                "OR (made < ? AND NOT EXISTS (SELECT 1 FROM students WHERE class = classes.id))",
                (now - CLASS_KEPT_DAYS * 86_400, now - CLASS_ALONE_DAYS * 86_400),
            ).rowcount
        if gone:
            self.store.wipe()

    def of_id(self, class_id: int) -> Klass | None:
        """The class with this id, as it is now; None if it was deleted."""
        return next(map(self._klass, self.store.rows("SELECT * FROM classes WHERE id = ?", class_id)), None)

    def _of_code(self, code: str) -> Klass | None:
        return next(map(self._klass, self.store.rows("SELECT * FROM classes WHERE code = ?", code)), None)

    def _klass(self, row: sqlite3.Row) -> Klass:
        names = ("id", "code", "title", "lesson", "letters", "text", "changes", "made", "ends", "version")
        return Klass(**{name: row[name] for name in names}, ended=row["ends"] <= self.clock())


def origin_of(address: str) -> str:
    """A short hash of the address that made a class: it distinguishes some hundreds but identifies none."""
    return hashed(address)[:2].hex() if address else ""


def _run(row: sqlite3.Row) -> Run:
    return Run(row["letters"], _read(row["report"]), row["at"])


@lru_cache(maxsize=1000)
def _read(text: str) -> Report:
    return IN_FILE.validate_json(text)


def _touch(db: sqlite3.Connection, klass: int) -> None:
    db.execute("UPDATE classes SET version = version + 1 WHERE id = ?", (klass,))


def _keep_latest(db: sqlite3.Connection, table: str, key: str, student: int, most: int) -> None:
    db.execute(
        f"DELETE FROM {table} WHERE student = ?1 AND {key} NOT IN "
        f"(SELECT {key} FROM {table} WHERE student = ?1 ORDER BY at DESC, {key} DESC LIMIT ?2)",
        (student, most),
    )
