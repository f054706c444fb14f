"""News: whether anything of a visitor's has changed, for every open page while a job is under way.

`GET /news?visitor=…` answers with a word that changes whenever a job, a model, a class or a place in the queue does. It
also gives the seconds until the page should ask again: none if nothing is under way. front/news.js asks, tells the
panels, renews the list of models, and chooses a newly trained one. Each request shows that the visitor is still there.
"""

from __future__ import annotations

import hashlib

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..service.job import Job
from ..service.run_job import RunJob
from .page import Page
from .under_way import tick


def news_route(page: Page) -> Route:
    """For the `routes` of gradio's `app_kwargs`."""

    async def answer(request: Request) -> Response:
        try:
            visitor = page.known(request.query_params.get("visitor"))
        except ValueError as problem:
            return JSONResponse({"problem": str(problem)}, 422)
        said = await run_in_threadpool(news, page, visitor)
        return JSONResponse(said, headers={"cache-control": "no-store"})

    return Route("/news", answer)


def news(page: Page, visitor: str) -> dict[str, object]:
    """A word that changes with any news, one for the models alone, the pause until the next check (None at rest), and
    the models of finished runs.

    Each model comes with a mark that changes with its weights, and its name.
    """
    news = page.board.news(visitor)
    going = [job for job in page.board.of(visitor, kind=Job) if not job.settled]
    pauses = [tick(job.time_left, waits=job.state == "waiting") for job in going]
    over = [job for job in page.board.of(visitor, kind=RunJob) if job.learned and job.settled]
    made = {job.id: [f"{job.evaluations} {job.used}", job.name] for job in over}
    of_class, pause = page.shared("class.news")(visitor)
    pauses += [] if pause is None else [pause]
    return {
        "word": _word((news, of_class)),
        "pause": min(pauses, default=None),
        "models": _word((news[1], made)),
        "made": made,
    }


def _word(told: object) -> str:
    return hashlib.blake2b(repr(told).encode(errors="replace"), digest_size=9).hexdigest()
