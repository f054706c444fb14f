"""Speedrun: who comes to a loss with the least work. An entry is a run card; it counts once the server has repeated it.

The rules are the class's text, its tokens, a causal mask and the target; everything else is the student's to choose.
Entries are repeated one at a time, through the same line in which everybody waits for a place to train.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...links import RunCard
from ..cards import spec_of
from ..data_folder import new_id
from ..limits import ENTRIES, LimitError
from ..store import StoreError
from .codes import ClassError
from .house import Classes, Klass, Member, card_from
from .reports import report

if TYPE_CHECKING:
    from ..board import Board
    from ..run_job import RunJob

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
FULL_SECONDS = 10.0
"""Between two tries where the line is full."""


@dataclass(frozen=True)
class Entry:
    """One run that wants to stand on the board."""

    id: int
    number: int
    """Its student's."""
    letters: str
    claimed: float
    """The loss that the student's own run came to."""
    state: str
    """waiting, counts or refused."""
    said: str
    loss: float | None
    flops: float | None
    seconds: float | None


def entries(classes: Classes, klass: Klass) -> list[Entry]:
    """All of a class, in the order in which they came."""
    names = ("id", "number", "letters", "claimed", "state", "said", "loss", "flops", "seconds")
    rows = classes.store.rows(
        "SELECT entries.*, number FROM entries JOIN students ON students.id = student WHERE class = ? "
        "ORDER BY entries.id",
        klass.id,
    )
    return [Entry(**{name: row[name] for name in names}) for row in rows]


def enter(classes: Classes, member: Member, job: RunJob | None) -> None:
    """Put a student's run before the board. Raises ClassError with what keeps it from it."""
    klass = member.klass
    if klass.ended or klass.target is None:
        raise ClassError("This class has no speedrun that goes on.")
    found = report(job) if job is not None else None
    if found is None or job.active or found[1].loss is None:
        raise ClassError("Train a run to its end first, and let it be the one that is shown.")
    letters, run = found
    if not run.repeatable or not letters:
        raise ClassError(
            "This run was trained on in parts, so its settings alone do not repeat it: train one in one go."
        )
    card = card_from(letters)
    keeps_the_rules(klass, card)
    if not run.complete:
        raise ClassError(f"This run ended at step {run.step:,} of {run.planned:,}: enter one that came to its end.")
    if run.loss > klass.target:
        raise ClassError(f"This run ended at {run.loss:.4f}; the target is {klass.target:g} or less.")
    with classes.store.change() as db:
        if db.execute("SELECT 1 FROM entries WHERE student = ? AND letters = ?", (member.id, letters)).fetchone():
            raise ClassError("This run was entered already.")
        if db.execute("SELECT count(*) FROM entries WHERE student = ?", (member.id,)).fetchone()[0] >= ENTRIES:
            raise ClassError(f"Each student may enter {ENTRIES} runs; yours are all in.")
        db.execute(
            "INSERT INTO entries (student, letters, at, claimed, state) VALUES (?, ?, ?, ?, 'waiting')",
            (member.id, letters, classes.clock(), run.loss),
        )
        db.execute("UPDATE classes SET version = version + 1 WHERE id = ?", (klass.id,))


def keeps_the_rules(klass: Klass, card: RunCard) -> None:
    """Raise ClassError for a run whose loss is no answer to this class's question."""
    base = klass.card
    same_text = card.text == base.text and card.hub == base.hub and card.text_hash.startswith(base.text_hash)
    if not same_text:
        raise ClassError("This run learned from another text than the class's: the target counts on that one alone.")
    if (card.tokenizer, card.vocab_size) != (base.tokenizer, base.vocab_size):
        raise ClassError("This run takes the text apart in another way, so its loss is per other tokens.")
    if not card.model.causal:
        raise ClassError("This run has no causal mask: it sees what it should predict, so its loss means nothing.")


class Verifier:
    """Repeats what was entered, one run at a time, in a thread that is there as long as something waits."""

    def __init__(self, classes: Classes, board: Board):
        self.classes, self.board = classes, board
        self._visitor, self._lock, self._thread = new_id(), threading.Lock(), None

    def wake(self) -> None:
        """Something may wait."""
        with self._lock:
            if (self._thread is None or not self._thread.is_alive()) and self._next() is not None:
                self._thread = threading.Thread(target=self._work, name="speedrun", daemon=True)
                self._thread.start()

    def _next(self) -> sqlite3.Row | None:
        rows = self.classes.store.rows(
            "SELECT entries.*, students.class FROM entries JOIN students ON students.id = student "
            "WHERE state = 'waiting' ORDER BY entries.id LIMIT 1"
        )
        return rows[0] if rows else None

    def _work(self) -> None:
        try:
            while True:
                with self._lock:
                    row = self._next()
                    if row is None:
                        self._thread = None
                        return
                self._verify(row)
        except (ClassError, StoreError):
            logger.exception("the speedrun's entries cannot be read")  # until the next one comes

    def _verify(self, row: sqlite3.Row) -> None:
        """Repeat one entry, and write down what came of it."""
        klass = self.classes.of_id(row["class"])
        if klass is None:
            return
        try:
            card = RunCard.from_letters(row["letters"])
            keeps_the_rules(klass, card)
            job = self._begin(klass, card)
        except ValueError as problem:
            self._settle(row, "refused", f"it cannot be repeated here: {problem}")
            return
        while not job.settled:
            time.sleep(LOOK_SECONDS)
            self.board.of(self._visitor)  # somebody is there
            if self._gone(row):
                job.stop()
        found, view = report(job), job.view()
        loss = found[1].loss if found else None
        if job.has_result:
            self.board.delete(self._visitor, job.id)
        else:
            self.board.dismiss(self._visitor)
        if loss is None or not found[1].complete:
            self._settle(row, "refused", f"it did not come to its end here: {view.message}")
            return
        told = "" if f"{loss:.4f}" == f"{row['claimed']:.4f}" else f"{row['claimed']:.4f} when it was trained first"
        if loss > klass.target:
            self._settle(row, "refused", f"repeated, it ends at {loss:.4f}, above the target.", loss=loss)
        else:
            self._settle(row, "counts", told, loss=loss, flops=found[1].flops, seconds=found[1].seconds)

    def _begin(self, klass: Klass, card: RunCard) -> RunJob:
        spec, base = spec_of(card, klass.text), klass.card
        # judged on as much text as the class's run, whatever the card says
        windows = max(base.training.eval_windows * base.model.context_length // card.model.context_length, 1)
        training = spec.training.replace(eval_windows=windows, eval_every=0, sample_every=0, patience=0)
        spec = replace(spec, training=training)
        while True:
            try:
                return self.board.start(self._visitor, spec, by_program=True)
            except LimitError:
                self.board.limits.check_training(spec.model, spec.training)  # too large here is not worth waiting for
                time.sleep(FULL_SECONDS)

    def _gone(self, row: sqlite3.Row) -> bool:
        return not self.classes.store.rows("SELECT 1 FROM entries WHERE id = ?", row["id"])

    def _settle(self, row: sqlite3.Row, state: str, said: str, **numbers: float) -> None:
        values = [numbers.get(name) for name in ("loss", "flops", "seconds")]
        with self.classes.store.change() as db:
            db.execute(
                "UPDATE entries SET state = ?, said = ?, loss = ?, flops = ?, seconds = ? WHERE id = ?",
                (state, said[:300], *values, row["id"]),
            )
            db.execute("UPDATE classes SET version = version + 1 WHERE id = ?", (row["class"],))
