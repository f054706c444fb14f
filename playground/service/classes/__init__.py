"""Classes: a teacher makes one, students join with a code, and a board shows what they do. All in the house's index.

codes.py       codes of four words, secrets of which only hashes are kept, names, and how often one may guess
house.py       what teachers and students may do
experiment.py  what came of it where students changed one thing
members.py     a class, its students and their runs
tables.py      answers and results as CSV
"""

from ..store import StoreError
from .codes import ClassError
from .house import Classes, check_class_text
from .members import Klass, Member, Student

__all__ = ["ClassError", "Classes", "Klass", "Member", "StoreError", "Student", "check_class_text"]
