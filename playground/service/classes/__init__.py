"""Classes: a teacher makes one, students join with a code, and a board shows what they do. The server's index holds it.

codes.py       codes of four words, secrets stored only as hashes, names, and a limit on guessing
house.py       what teachers and students may do
experiment.py  results of students who changed one thing
members.py     a class, its students and their runs
tables.py      answers and results as CSV
"""

from ..store import StoreError
from .codes import ClassError
from .house import Classes
from .members import Klass, Member, Student

__all__ = ["ClassError", "Classes", "Klass", "Member", "StoreError", "Student"]
