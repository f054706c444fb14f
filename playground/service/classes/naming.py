"""Names and titles: typed text as one clean line, and names that are unique within a class."""

from __future__ import annotations

import re
import unicodedata

from ..limits import STUDENT_NAME
from .codes import ClassError


def one_line(text: object, most: int, what: str = "") -> str:
    """Typed text as one line, without invisible characters or marks that would spill over the line.

    Longer than `most` characters, it is cut, or refused with ClassError if `what` names it.
    """
    text = unicodedata.normalize("NFC", text) if isinstance(text, str) and len(text) < 100_000 else ""
    # joiners hold emoji together; of marks stacked upon a letter two are kept
    kept = "".join(c if c == "\u200d" or not unicodedata.category(c).startswith(("C", "Z")) else " " for c in text)
    kept = " ".join(re.sub(r"\s+", " ", _unstacked(kept)).split()).strip("\u200d ")
    if len(kept) > most and what:
        raise ClassError(f"A {what} has at most {most} characters, this one has {len(kept)}: shorten it.")
    return kept[:most].rstrip()


def _unstacked(text: str) -> str:
    kept, marks = [], 0
    for c in text:
        marks = marks + 1 if unicodedata.category(c) in ("Mn", "Me") else 0
        if marks <= 2:
            kept.append(c)
    return "".join(kept)


def alphabets(name: str) -> set[str]:
    """Which of the alphabets with similar letters a name uses."""
    return {unicodedata.name(c, "").partition(" ")[0] for c in name if c.isalpha()} & {"LATIN", "CYRILLIC", "GREEK"}


def free_name(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken."""
    number, found = 1, name
    while found.casefold() in taken:
        number += 1
        found = f"{name[: STUDENT_NAME - 6]} ({number})"
    return found
