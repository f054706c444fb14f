"""News: whether anything of a visitor's has changed, for every open page while something goes on.

`GET /news?visitor=…` answers with a word that changes whenever a job, a model or a place in the line does, and with the
seconds until the page should look again: none where nothing goes on. front/news.js asks, and tells the panels.
Each look is also a sign that the visitor is still there.
"""

from __future__ import annotations

import hashlib

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..service.job import Job
from .followers import tick
from .page import Page


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
    """The word, and the pause: None at rest."""
    word = hashlib.blake2b(repr(page.board.news(visitor)).encode(), digest_size=9).hexdigest()
    going = [job for job in page.board.of(visitor, kind=Job) if job.active]
    pauses = [tick(job.time_left, waits=job.state == "waiting") for job in going]
    return {"word": word, "pause": min(pauses, default=None)}
