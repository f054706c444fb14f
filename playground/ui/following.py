"""Following: what a tab does with a visitor's jobs of one kind, so that every open page shows the same of them.

A timer looks; what is drawn comes from the board alone: the job that goes on, else what is chosen, with the sentence of
a job that came to nothing above it until something new is asked. So a reload, a second tab and a page that slept find
the same as the page that pressed the button.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from ..service.job import Job
from .around import SEEN_ON, around
from .followers import IDLE_TICK, Follower, Followers, tick
from .page import QUIETLY, Page


class Following:
    """The part of a tab that its jobs need. `who` are the tab's own inputs after the visitor.

    `attach`, `look`, `stop` and `choose` are handlers as they stand: of a page that opens, a tick, Stop, and something
    else to look at.
    """

    kind: type[Job]
    seen_on: str
    """The tab's title, and where in it."""
    shows_chosen = False
    """Whether what the tab shows is the model that is chosen on all tabs."""

    def __init_subclass__(cls) -> None:
        SEEN_ON[cls.kind] = cls.seen_on

    def __init__(self, page: Page):
        self.page, self.board, self.followers, self.tab = page, page.board, Followers(), page.tab
        self.timer = gr.Timer(IDLE_TICK)

    # ---- what a tab says ---------------------------------------------------------------------------------------------

    def chosen(self, visitor: str | None, *who: Any) -> Any:
        """The view of what is chosen, to be shown while nothing goes on; None for nothing."""
        raise NotImplementedError

    def opening(self, jobs: list, request: gr.Request, visitor: str | None, *who: Any) -> Any:
        """The view that a page which was just opened shows while none of these jobs goes on; None: as it is made."""
        raise NotImplementedError

    def filled(self, job: Any, request: gr.Request, visitor: str | None) -> dict:
        """Updates that make the form of a page that opens what it was when this job, the last, was begun, if any."""
        return {}

    def draw(self, view: Any, visitor: str | None, follower: Follower, *who: Any, whole: bool = False) -> dict:
        """What the outputs become: those that changed since this follower last looked, or all."""
        raise NotImplementedError

    def status(self, view: Any) -> str:
        """The sentence, or card, of a view."""
        raise NotImplementedError

    def made_by(self, job: Job) -> str | None:
        """The id of the model that a job which is over has brought forth: it is chosen on all tabs."""
        return None

    def looks(self, who: list, outputs: list) -> None:
        """Look at every tick, and when the tab around is opened: a hidden one may be seconds behind."""
        self.timer.tick(self.glance, [*who, self.page.opened], outputs, **QUIETLY)
        self.tab.select(self.look, who, outputs, **QUIETLY)

    # ---- how it is followed ------------------------------------------------------------------------------------------

    def follow(self, job: Job, request: gr.Request, *who: Any) -> dict:
        """Show a job from now on."""
        self.renew(request, job)
        return self.look(request, job.visitor, *who)

    def renew(self, request: gr.Request, job: Job | None = None, news: Any = None) -> Follower:
        """The follower of a page to which everything is sent anew."""
        follower = self.followers.fresh(request)
        follower.following, follower.news = (job.id if job else None), news
        return follower

    def attach(self, request: gr.Request, visitor: str, *who: Any) -> dict:
        """A browser opened the page: go on watching a job, or show what there was, with the last one's form."""
        jobs = self.board.of(visitor, kind=self.kind)
        last = next((job for job in reversed(jobs) if job.active), jobs[-1] if jobs else None)
        form = self.filled(last, request, visitor)
        if last is not None and last.active:
            return self.follow(last, request, *who) | form
        news = self.board.news(visitor)
        follower, view = self.renew(request, news=news), self.opening(jobs, request, visitor, *who)
        return (self.draw(view, visitor, follower, *who, whole=True) if view else {}) | form or gr.skip()

    def stop(self, request: gr.Request, visitor: str, *who: Any) -> dict:
        """Stop was pressed."""
        return self.look(request, visitor, *who) if self.board.stop(visitor, kind=self.kind) else gr.skip()

    def glance(self, request: gr.Request, visitor: str, *who: Any) -> dict:
        """A tick of the timer: look, and leave whoever is on another tab the model that is being looked at there."""
        *who, opened = who
        follower = self.followers.of(request)
        follower.elsewhere = bool(opened) and opened != self.tab.id
        return self._look(request, visitor, *who)

    def look(self, request: gr.Request, visitor: str, *who: Any) -> dict:
        """The tab is looked at: show what is new; everything to a page that opened before this server did."""
        self.followers.of(request).elsewhere = False
        return self._look(request, visitor, *who)

    def _look(self, request: gr.Request, visitor: str, *who: Any) -> dict:
        follower, news = self.followers.of(request), self.board.news(visitor)
        if follower.news == news:
            return self._choice(follower, visitor) or gr.skip()
        before, follower.news = follower.news, news
        job = self.board.active(visitor, kind=self.kind)
        job = job or self.board.find(visitor, follower.following, kind=self.kind)
        if job is None:
            view = self.chosen(visitor, *who)
            out = {} if view is None else self.draw(view, visitor, follower, *who)
            _, models = news
            return out if before is not None and before[1] == models else out | self.renewed(visitor, *who)
        # asked in this order, so that the last view holds everything
        settled, view = job.settled or job.state == "failed", job.view()
        follower.following = None if settled else job.id
        if settled and not job.has_result:  # nothing came of it: what was there before, with the reason above it
            view = self.chosen(visitor, *who) or view
        out = self.draw(view, visitor, follower, *who, whole=settled or follower.run_id != view.id)
        if settled:
            follower.made, follower.asked = self.made_by(job), False
        return out | self._choice(follower, visitor)

    def _choice(self, follower: Follower, visitor: str) -> dict:
        """A model that was made is chosen; whoever is on another tab is asked first, and once."""
        page, made = self.page, follower.made
        if made is None or (follower.elsewhere and follower.asked):
            return {}
        if follower.elsewhere:
            follower.made, follower.asked = made if self.shows_chosen else None, self.shows_chosen
            return {page.model: page.renewed_list(visitor), page.over: page.over_for(visitor, made)}
        follower.made, follower.asked = None, False
        return {page.model: page.model_list(visitor, made), page.over: ""}

    def renewed(self, visitor: str, *who: Any) -> dict:
        """What else changes when the visitor's models did while no job goes on."""
        return {}

    def choose(self, request: gr.Request, visitor: str, *who: Any) -> dict:
        """Something else was chosen to look at. A job that goes on stays in view."""
        before, job = self.followers.of(request), self.board.active(visitor, kind=self.kind)
        view = job.view() if job else self.chosen(visitor, *who)
        if view is None:
            return gr.skip()
        if job is None and before.run_id not in (None, view.id):
            self.board.dismiss(visitor, self.kind)
        follower = self.renew(request, job, before.news)
        return self.draw(view, visitor, follower, *who, whole=True)

    def above(self, visitor: str | None, shown: Any) -> tuple[Any, str]:
        """What stands above everything else: why the last job came to nothing, and what goes on elsewhere.

        Returns what it depends on, and the HTML.
        """
        failed = self.board.failed(visitor, kind=self.kind)
        failed = failed if failed is not None and failed.id != shown.id else None
        key, parts = around(self.page, visitor, self.kind)
        return (failed and (failed.id, failed.version), key), (self.status(failed.view()) if failed else "") + parts

    def pause(self, view: Any) -> float:
        """Seconds until the next look."""
        return tick(view.time_left, waits=view.state == "waiting") if view.active or view.busy else IDLE_TICK
