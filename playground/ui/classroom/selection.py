"""The class panel's state, kept by the browser."""

from __future__ import annotations

from ..selected import Selected


class Selection(Selected):
    """Which class, and how its board is shown."""

    view: str = ""
    """The view, set by the server: start, join, invited, student, board, results or note."""
    code: str = ""
    secret: str = ""
    """The teacher's secret; empty for everybody else."""
    masked: bool = False
    """Whether the names are hidden."""
    answered: bool = False
    """Whether any question was answered."""
    lesson: str = ""
    source: str = "stories"
    """The lesson and the text in the form that makes a class."""
    note: str = ""
    """Why there is no longer a class: left, deleted or gone."""
