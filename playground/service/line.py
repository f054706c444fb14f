"""Line: the queue. It decides in which order waiting jobs begin, and which may join.

It is fair: networks (`Job.share`: an address, pages and programs counted separately) take turns; the one with the
fewest jobs at work comes first. Within a network, jobs begin in the order in which they were requested.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..kept import Latest
from .job import Job
from .limits import AWAY_SECONDS, RETURN_SECONDS, LimitError, Limits

NETWORKS = 10_000
"""How many networks' last turns are remembered."""


class Line:
    """The queue: decides whose turn it is. Not thread-safe; `Board` holds its lock."""

    def __init__(self, latest: int = 0):
        """`latest`: the last turn that was given before a restart."""
        self._clock = itertools.count(latest + 1)
        self._served = Latest(NETWORKS)  # network → when it last had its turn

    def join(self, job: Job) -> None:
        """Give a job its turn."""
        job.turn = next(self._clock)

    def order(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs that wait, in the order in which they will begin."""
        jobs = list(jobs)
        ahead = Counter(job.share for job in jobs if job.busy)
        places = {}
        for job in sorted((job for job in jobs if job.state == "waiting"), key=lambda job: job.turn):
            # a job asked for before its network's last turn counts as asked for at that turn
            places[job] = ahead[job.share], max(job.turn, self._served.get(job.share, 0)), job.turn
            ahead[job.share] += 1
        return sorted(places, key=places.__getitem__)

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
        for job in self.order(jobs):
            busy = [other for other in jobs if other.busy and other is not job]
            if job.seen is None or (job.by_program and any(other.by_program for other in busy)):
                continue  # programs train one run at once, so that pages find a place, too
            # also stopped jobs that still work: pressing Train and Stop in turn gains no second place
            mine = any(other.visitor == job.visitor for other in busy)
            near = sum(other.network == job.network for other in busy)
            if len(busy) < limits.jobs and near < limits.jobs_per_address and not mine:
                self._served[job.share] = next(self._clock)
                yield job

    def check(self, jobs: Iterable[Job], share: str, most: int) -> None:
        """Raise LimitError if `most` jobs wait, or half as many from programs of one network.

        Pages are people, and a school's are one network, so they may fill the queue.
        """
        line = self.order(jobs)
        own = sum(job.share == share for job in line)
        if len(line) >= most:
            raise LimitError(f"{len(line)} runs wait for a place, and the queue is full: try again in a few minutes.")
        if share.endswith(" programs") and own >= max(most // 2, 1):
            raise LimitError(f"{own} runs of your network's programs wait for a place: try again in a few minutes.")

    def give_up(self, jobs: Sequence[Job], began: float) -> None:
        """Remove waiting jobs whose pages are away; `began` is when the server started, perhaps after a restart."""
        for job in self.order(jobs):
            away = time.monotonic() - (began if job.seen is None else job.seen)
            if away > (RETURN_SECONDS if job.seen is None else AWAY_SECONDS):
                job.leave("Your page was away too long, so your place in the queue was given up. Start again.")
