"""Line: in which order those who wait for a place begin.

It is fair: networks (`Job.share`: an address, its pages and its programs apart) take turns, the one with the fewest at
work first. Within a network, every visitor's first job comes before anybody's second, in the order in which they were
asked for, and newcomers never pass those of an earlier round.
"""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .job import Job

NETWORKS = 10_000
"""Networks of which is remembered when they last had their turn."""


class Line:
    """Whose turn it is. Not for several threads at once: `Board` holds its lock."""

    def __init__(self, waiting: Sequence[Mapping[str, Any]] = (), latest: Mapping[str, Any] | None = None):
        """`waiting` are rows of the index that go on, `latest` holds its largest `round` and `turn`."""
        last = (latest and latest["round"]) or 0
        self._round = min((row["round"] for row in waiting), default=last)
        self._clock = itertools.count(((latest and latest["turn"]) or 0) + 1)
        self._served: OrderedDict[str, int] = OrderedDict()  # network → when it last had its turn

    def join(self, job: Job, others: Iterable[Job]) -> None:
        """Give a job its turn, after those of its visitor's `others` that are not over."""
        # a visitor's rounds follow each other; a newcomer joins the one that is going on (start-time fair queueing)
        job.turn = max([self._round, *(other.turn[0] + 1 for other in others)]), next(self._clock)

    def order(self, jobs: Iterable[Job]) -> list[Job]:
        """Those of these jobs that wait, in the order in which they will begin."""
        jobs = list(jobs)
        ahead = Counter(job.share for job in jobs if job.busy)
        places = []
        for job in sorted((job for job in jobs if job.state == "waiting"), key=lambda job: job.turn):
            round_, asked = job.turn
            # a job asked for before its network's last turn counts as asked for at that turn
            places.append((ahead[job.share], round_, max(asked, self._served.get(job.share, asked)), asked, job))
            ahead[job.share] += 1
        return [job for *_, job in sorted(places, key=lambda place: place[:-1])]

    def leave(self, job: Job) -> None:
        """Its turn has come."""
        self._round = max(self._round, job.turn[0])
        self._served[job.share] = next(self._clock)
        self._served.move_to_end(job.share)
        while len(self._served) > NETWORKS:
            self._served.popitem(last=False)
