"""What stands above a tab's own jobs: what goes on elsewhere, and that work cannot be saved."""

from __future__ import annotations

from ..service.job import Job
from . import theme
from .page import Page

UNSAVED = (
    "Not saved yet: {}. You can continue, but download anything you want to keep. "
    "The page saves everything as soon as it can."
)
SEEN_ON: dict[type[Job], str] = {}
"""Where jobs of a kind are seen; each tab says so itself."""


def around(page: Page, visitor: str | None, kind: type[Job]) -> tuple[tuple, str]:
    """What is to be said beside this visitor's jobs of one kind: what it depends on, and the HTML."""
    jobs = page.board.of(visitor, kind=Job)
    others = [job for job in jobs if job.active and not isinstance(job, kind)]
    problem = page.registry.data.problem if jobs else ""
    parts = [theme.notice(UNSAVED.format(problem), "warning")] if problem else []
    for job in others:
        does = "waits in line" if job.state == "waiting" else "goes on"
        parts.append(theme.notice(f"{job.name} {does}: see it on the tab {SEEN_ON[type(job)]}."))
    return (problem, tuple((job.id, job.name, job.state == "waiting") for job in others)), "".join(parts)
