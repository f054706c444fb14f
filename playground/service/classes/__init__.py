"""Classes: a teacher makes one, students join with a code, and a board shows what they do. All in the house's index.

codes.py       codes of four words, secrets of which only hashes are kept, and how often one may guess
house.py       what teachers and students may do
reports.py     a student's run as the class remembers it
experiment.py  what came of it where students changed one thing
speedrun.py    who reached a loss with the least work, each repeated here before it counts
tables.py      answers and results as CSV
"""

from ..store import StoreError
from .codes import ClassError
from .house import Classes, Klass, Member, Student, check_class_text

__all__ = ["ClassError", "Classes", "Klass", "Member", "StoreError", "Student", "check_class_text"]
