"""Notes: what is noted about a job in the data folder, and how the job is found again after a restart."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..atomic_files import write_file
from .comparisons import ComparisonJob
from .data_folder import DataFolder
from .job import Job
from .limits import Limits
from .models import Registry
from .run_job import RunJob
from .sweeps import SweepJob
from .why import ProofJob, SearchJob

logger = logging.getLogger(__name__)

FILE = "job.json"
"""The file in a job's folder; the index holds only the values used for look-up and sorting."""
_KINDS = RunJob, ComparisonJob, SearchJob, ProofJob, SweepJob
_FOUND: dict[str, Callable[..., Job]] = {kind.kind: kind.found for kind in _KINDS}


def note(job: Job, data: DataFolder) -> None:
    """Note what is needed to find a job again after a restart. Raises OSError or StoreError."""
    state = "waiting" if job.state == "waiting" else "over" if job.settled else "working"
    noted = json.dumps(job.noted())
    job.folder.mkdir(parents=True, exist_ok=True)
    write_file(job.folder / FILE, lambda partial: partial.write_text(noted, encoding="utf-8"))
    values = (job.id, job.visitor, job.share, job.kind, job.name, job.number, state, 0, job.turn, job.tries)
    with data.store.change() as db:
        db.execute(f"REPLACE INTO jobs VALUES (?{', ?' * len(values)})", (*values, time.time()))


def found(row: Mapping[str, Any], limits: Limits, registry: Registry) -> Job | None:
    """The job for a row of the index; None if its notes cannot be read."""
    try:
        noted = json.loads((registry.data.folder_of(row["id"]) / FILE).read_text(encoding="utf-8"))
        job = _FOUND[row["kind"]](row, noted, limits, registry)
    except (OSError, ValueError, LookupError, TypeError):
        logger.exception("a job of before the restart cannot be found again")
        return None
    job.share, job.number, job.turn = row["share"], row["number"], row["turn"]
    return job
