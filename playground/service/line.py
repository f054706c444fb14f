"""Line: the queue. It decides in which order waiting jobs begin, and which may join.

It is fair: networks (`Job.share`: an address, pages and programs counted separately) take turns; the one with the
fewest jobs at work comes first. Within a network, every visitor's first job comes before anybody's second, in the order
in which they were requested, and newcomers never pass jobs of an earlier round.
"""

from __future__ import annotations

import heapq
import itertools
import operator
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..kept import Latest
from .job import Job
from .limits import AWAY_SECONDS, RETURN_SECONDS, LimitError, Limits

NETWORKS = 10_000
"""How many networks' last turns are remembered."""


class Line:
    """The queue: decides whose turn it is. Not thread-safe; `Board` holds its lock."""

    def __init__(self, waiting: Sequence[Mapping[str, Any]] = (), latest: Mapping[str, Any] | None = None):
        """`waiting`: rows of the index for jobs that continue. `latest`: its largest `round` and `turn`."""
        last = (latest and latest["round"]) or 0
        self._round = min((row["round"] for row in waiting), default=last)
        self._clock = itertools.count(((latest and latest["turn"]) or 0) + 1)
        self._served = Latest(NETWORKS)  # network → when it last had its turn

    def join(self, job: Job, others: Iterable[Job]) -> None:
        """Give a job its turn, after the visitor's `others` that are not over."""
        # a visitor's rounds follow each other; a newcomer joins the current round (start-time fair queueing)
        job.turn = max([self._round, *(other.turn[0] + 1 for other in others)]), next(self._clock)

    def order(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs that wait, in the order in which they will begin."""
        jobs = list(jobs)
        ahead = Counter(job.share for job in jobs if job.busy)
        places = []
        for job in sorted((job for job in jobs if job.state == "waiting"), key=lambda job: job.turn):
            round_, asked = job.turn
            # a job asked for before its network's last turn counts as asked for at that turn
            places.append((ahead[job.share], round_, max(asked, self._served.get(job.share, asked)), asked, job))
            ahead[job.share] += 1
        return [job for *_, job in sorted(places, key=lambda place: place[:-1])]

    def make_room(self, jobs: Sequence[Job], places: int) -> None:
        """If jobs wait for one of this many places: stop running jobs whose visitors are away, keeping what they have
        learned."""
        busy = [job for job in jobs if job.busy]
        if len(busy) < places or not self.order(jobs):
            return
        for job in busy:
            if job.active and time.monotonic() - (job.seen or job.began) > AWAY_SECONDS:
                job.stop()

    def foretell(self, jobs: Sequence[Job], places: int, seconds: Callable[..., float]) -> None:
        """Tell waiting jobs their place and waiting time; `seconds` as in `Job.expected`."""
        free = [job.left(seconds) for job in jobs if job.busy]
        free = [0.0] * (places - len(free)) + free
        heapq.heapify(free)
        for place, job in enumerate(self.order(jobs), 1):
            wait = heapq.heappop(free)
            heapq.heappush(free, wait + job.expected(seconds))
            own = [each.left(seconds) for each in jobs if each.busy and each.visitor == job.visitor and each is not job]
            job.stands(place, max([wait, *own]))

    def next(self, jobs: Sequence[Job], limits: Limits) -> Iterator[Job]:
        """The jobs for which there is a place now. The caller must start each before the next."""
        most = limits.jobs, limits.jobs_per_visitor, limits.jobs_per_address
        for job in self.order(jobs):
            busy = [other for other in jobs if other.busy and other is not job]
            if job.seen is None or (job.by_program and any(other.by_program for other in busy)):
                continue  # programs train one run at once, so that pages find a place, too
            # also stopped jobs that still work: pressing Train and Stop in turn gains no second place
            mine = sum(other.visitor == job.visitor for other in busy)
            near = sum(other.network == job.network for other in busy)
            if all(map(operator.lt, (len(busy), mine, near), most)):
                self._round = max(self._round, job.turn[0])
                self._served[job.share] = next(self._clock)
                yield job

    def check(self, jobs: Iterable[Job], share: str, most: int) -> None:
        """Raise LimitError if `most` jobs wait, or half as many of this share: one network must not fill the queue."""
        line = self.order(jobs)
        if len(line) >= most or sum(job.share == share for job in line) >= max(most // 2, 1):
            raise LimitError(f"{len(line)} runs wait for a place, and the queue is full: try again in a few minutes.")

    def give_up(self, jobs: Sequence[Job], began: float) -> None:
        """Remove waiting jobs whose pages are away; `began` is when the server started, perhaps after a restart."""
        for job in self.order(jobs):
            away = time.monotonic() - (began if job.seen is None else job.seen)
            if away > (RETURN_SECONDS if job.seen is None else AWAY_SECONDS):
                job.leave("Your page was away too long, so your place in the queue was given up. Start again.")
