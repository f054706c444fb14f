"""Sent: a body that every visitor gets: compressed once, and not sent again to a browser that still has it."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Callable

import brotli
from starlette.datastructures import Headers
from starlette.responses import Response

_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "br": lambda content: brotli.compress(content, quality=5),
    "gzip": lambda content: gzip.compress(content, 6),  # browsers take br over HTTPS and from their own machine alone
}


class Body:
    """A body and its compressed forms. For any number of threads."""

    def __init__(self, content: bytes, media_type: str):
        self.content, self.media_type = content, media_type
        self.version = hashlib.blake2b(content, digest_size=9).hexdigest()
        """Another one for any other content."""
        self._lock = threading.Lock()
        self._compressed: dict[str, bytes] = {}

    @property
    def nbytes(self) -> int:
        """Bytes in memory, at most."""
        return 2 * len(self.content)

    def answer(self, asked: Headers, caching: str) -> Response:
        """The answer to a request with these headers; `caching` is its Cache-Control. Slow for the first who asks."""
        tag = f'W/"{self.version}"'
        headers = {"etag": tag, "cache-control": caching, "vary": "Accept-Encoding"}
        if tag in asked.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        accepted = asked.get("accept-encoding", "")
        encoding = next((name for name in _COMPRESS if name in accepted), None)
        if encoding is None:
            return Response(self.content, media_type=self.media_type, headers=headers)
        headers["content-encoding"] = encoding
        return Response(self._encoded(encoding), media_type=self.media_type, headers=headers)

    def _encoded(self, encoding: str) -> bytes:
        with self._lock:
            if encoding not in self._compressed:
                self._compressed[encoding] = _COMPRESS[encoding](self.content)
            return self._compressed[encoding]
