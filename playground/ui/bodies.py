"""Bodies: a request's body is counted before it is parsed or stored, and any fault is answered with a sentence.

Gradio reads bodies of any size into memory and keeps uploads without a bound on their sum. It answers unusable requests
with a bare 500, and a traceback in the log. Here all of these get a sentence as answer, and a line in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from fastapi.exceptions import RequestValidationError
from gradio import route_utils
from gradio.route_utils import API_PREFIX, FnIndexInferError
from gradio.utils import get_upload_folder
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from ..service.limits import BODIES, BODIES_PER_ADDRESS, BODY_SECONDS, SMALL_BODY, LimitError, Limits
from ..service.uploads import Uploads
from .gradio_fixes.quiet_refusals import LOG, LONGEST, OURS, STRANGE, disk_refusal
from .where import path_within

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Sender = Callable[[Request], tuple[str, str]]
"""The address from which a request comes, and the visitor who sent it; empty for a program."""

_UPLOAD, _FILE = f"{API_PREFIX}/upload", f"{API_PREFIX}/file="
# what gradio's routes raise for unknown handlers, names and forms
_STRANGE = (LookupError, ValueError, TypeError, AttributeError, RecursionError, FnIndexInferError)
_temporary: ContextVar[list[Any] | None] = ContextVar("temporary", default=None)
"""The files that gradio writes for the current request."""


def bodies(limits: Limits, uploads: Uploads, sender_of: Sender) -> Middleware:
    """For the `middleware` of gradio's `app_kwargs`; `sender_of` says whose share a body takes."""
    return Middleware(_Bodies, limits=limits, uploads=uploads, sender_of=sender_of)


def malformed(request: Request, problem: Exception) -> Response:
    """For the `exception_handlers` of gradio's `app_kwargs`, by MALFORMED."""
    errors = problem.errors() if isinstance(problem, RequestValidationError) else []
    return _strange(request.scope, ", ".join(sorted({str(each.get("type")) for each in errors})))


MALFORMED = RequestValidationError
"""Raised by FastAPI for a body that is not JSON or not in a route's form; its own answer would repeat the body."""


class _Bodies:
    """The middleware: counts what comes in, and turns whatever a route raises into a sentence."""

    def __init__(self, app: Callable, limits: Limits, uploads: Uploads, sender_of: Sender):
        self.app, self.limits, self.uploads, self.sender_of = app, limits, uploads, sender_of
        self.held: Counter[str] = Counter()  # address → bytes of its bodies in memory

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        request = Request(scope)
        is_upload = path_within(scope).rstrip("/") == _UPLOAD
        try:
            if _FILE in scope["path"]:
                prefix, _, name = scope["path"].partition(_FILE)
                path = uploaded_file(name)
                there = path is not None and path.is_file()
                answer = self.app if there else PlainTextResponse("There is no such file.", 404)
                await answer({**scope, "path": f"{prefix}{_FILE}{path}"}, receive, send)
            elif is_upload:
                await self._upload(request, receive, send)
            elif request.headers.get("content-type", "").lower().startswith("multipart/"):
                answer = _refusal(f"Files can only be uploaded at {_UPLOAD}. Send this as JSON.", 415)
                await answer(scope, receive, send)
            else:
                await self._plain(request, receive, send)
        except LimitError as refusal:
            LOG.warning("refused at %.*s: too large", LONGEST, ascii(scope["path"]))
            # the page shows an upload's refusal as it is, and looks for the error inside all others
            answer = PlainTextResponse(str(refusal), 413) if is_upload else _refusal(str(refusal), 413)
            await answer(scope, receive, send)

    async def _plain(self, request: Request, receive: Receive, send: Send) -> None:
        """Count the body as it arrives, before anything reads it, and until the answer is sent."""
        self.limits.check_body(_stated(request))
        address, _ = self.sender_of(request)
        total = 0

        async def counted() -> Message:
            nonlocal total
            message = await receive()
            size = len(message.get("body", b""))
            total += size
            self.held[address] += size
            self.limits.check_body(total)
            if total > SMALL_BODY and (self.held[address] > BODIES_PER_ADDRESS or self.held.total() > BODIES):
                raise LimitError("Many large requests are arriving at once. Try again in a moment.")
            return message

        try:
            try:
                body = await asyncio.wait_for(_read(counted), BODY_SECONDS)
            except asyncio.TimeoutError:
                raise LimitError("This request took too long to arrive. Send less at once.") from None
            await self._answer(request, body, send)
        finally:
            self.held[address] -= total
            self.held += Counter()  # forgets addresses that hold nothing

    async def _upload(self, request: Request, receive: Receive, send: Send) -> None:
        """Take room in the upload folder first; delete files that gradio writes but does not keep."""
        stated = _stated(request)
        self.limits.check_upload(stated)
        upload, stored = self.uploads.begin(*self.sender_of(request), stated), []
        answer: list[Message] = []
        written: list[Any] = []
        total = 0

        async def counted() -> Message:
            nonlocal total
            message = await receive()
            total += len(message.get("body", b""))
            self.limits.check_upload(total)
            self.uploads.grow(upload, total)
            return message

        async def held_back(message: Message) -> None:
            answer.append(message)

        token = _temporary.set(written)
        try:
            await self._answer(request, counted, held_back)
            with contextlib.suppress(ValueError):  # gradio's own refusals are not JSON
                paths = json.loads(b"".join(message.get("body", b"") for message in answer))
                stored = [path for path in paths if os.path.isfile(path)]
                answer = _without_place(answer, stored) if stored else answer
        finally:
            _temporary.reset(token)
            for file in written:
                file.close()
                with contextlib.suppress(OSError):  # gradio has moved what it keeps
                    os.unlink(file.name)
            self.uploads.end(upload, stored)
        for message in answer:  # before the answer arrives, so that the client finds the final share
            await send(message)

    async def _answer(self, request: Request, receive: Receive, send: Send) -> None:
        """Let gradio answer, and answer in its place if it fails."""
        begun = False

        async def noticed(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(request.scope, receive, noticed)
        except ClientDisconnect:
            return
        except LimitError:
            raise
        except Exception as problem:
            if begun:
                raise
            answer = _answer_to(problem, request.scope)
            await answer(request.scope, receive, send)


def uploaded_file(name: str) -> Path | None:
    """The path of the upload that this name stands for, though the file may be gone; None for anything else."""
    folder = Path(get_upload_folder()).resolve()
    found = (folder / name).resolve()
    return found if found.is_relative_to(folder) and found != folder else None


def _without_place(answer: list[Message], stored: list[str]) -> list[Message]:
    """Gradio's answer to an upload, with names relative to the upload folder, whose path visitors must not see."""
    body = json.dumps([os.path.relpath(path, get_upload_folder()) for path in stored]).encode()
    headers = [(name, value) for name, value in answer[0]["headers"] if name != b"content-length"]
    headers.append((b"content-length", b"%d" % len(body)))
    return [{**answer[0], "headers": headers}, {"type": "http.response.body", "body": body}]


async def _read(receive: Receive) -> Receive:
    """The body, read to its end, as a receive function."""
    more, chunks = True, []
    while more:
        message = await receive()
        chunks.append(message.get("body", b""))
        more = message.get("more_body", False)
    first = [{**message, "body": b"".join(chunks)}] if message["type"] == "http.request" else [message]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return again


def _stated(request: Request) -> int:
    """The size that a request states for its body; 0 if it states none, or nonsense."""
    stated = request.headers.get("content-length", "")
    return int(stated) if stated.isascii() and stated.isdigit() and len(stated) < 20 else 0


def _refusal(words: str, status: int) -> JSONResponse:
    # gradio's page and client look for `detail` in the queue's answers and for `error` in all others
    return JSONResponse({"error": words, "detail": words}, status)


def _answer_to(problem: Exception, scope: Message) -> Response:
    if isinstance(problem, _STRANGE):
        where = traceback.extract_tb(problem.__traceback__)[-1].name
        return _strange(scope, f"{where}: {type(problem).__name__}: {problem}")
    if said := disk_refusal(problem):
        LOG.warning("could not write at %.*s: %s", LONGEST, ascii(scope["path"]), problem)
        return PlainTextResponse(said, 507) if scope["path"].rstrip("/").endswith(_UPLOAD) else _refusal(said, 507)
    logging.getLogger(__name__).error("a request failed: %s", scope["path"], exc_info=problem)
    return _refusal(OURS, 500)


def _strange(scope: Message, reason: str) -> Response:
    LOG.warning("refused at %.*s: %.*s", LONGEST, ascii(scope["path"]), LONGEST, ascii(" ".join(reason.split())))
    return _refusal(STRANGE, 400)


class _Parser(route_utils.GradioMultiPartParser):
    """Gradio's reader of uploads, which (in gradio 6.31) forgets half-written files after most errors, and files in
    other fields than its own."""

    def __init__(self, *arguments: Any, **named: Any):
        super().__init__(*arguments, **named)
        if (written := _temporary.get()) is not None:
            self._files_to_close_on_error = written


route_utils.GradioMultiPartParser = _Parser  # type: ignore[misc]
