"""Uploads: how many bytes of the upload folder each address, and all together, may use.

Room is taken before a byte is kept, and given back when the upload has ended. A stored file keeps its room until it is
deleted.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from .limits import LimitError, Limits

SMALLEST = 65_536
"""A stored file counts at least this many bytes: very many empty ones fill a disk, too."""


@dataclass
class Upload:
    """An upload under way, or a stored file."""

    origin: str
    """The address from which it comes."""
    visitors: set[str]
    """The visitors who sent it; empty text for programs."""
    size: int = 0
    """Bytes of room that it has taken."""


class Uploads:
    """Bytes of the stored files and of the uploads under way, by address. Safe to use from several threads."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self._lock = threading.Lock()
        self._bytes: Counter[str] = Counter()
        self._stored: dict[str, Upload] = {}  # by path

    def begin(self, origin: str, visitor: str, size: int) -> Upload:
        """Reserve room for an upload of `size` bytes; 0 if its size is not stated. Raises LimitError."""
        upload = Upload(origin, {visitor})
        self.grow(upload, size)
        return upload

    def grow(self, upload: Upload, size: int) -> None:
        """Take room for `size` bytes in all, if it has less. Raises LimitError."""
        with self._lock:
            more = size - upload.size
            if more > 0:
                if self._refusal(upload.origin, more):
                    self._forget_deleted()
                if words := self._refusal(upload.origin, more):
                    raise LimitError(words)
                self._take(upload, size)

    def end(self, upload: Upload, paths: Iterable[str] = ()) -> None:
        """Release the room reserved for an upload; count the files stored at `paths` instead."""
        with self._lock:
            self._take(upload, 0)
            for path in paths:
                stored = Upload(upload.origin, set(upload.visitors))
                if before := self._stored.pop(path, None):  # the same content under the same name has the same path
                    self._take(before, 0)
                    stored.visitors |= before.visitors
                self._stored[path] = stored
                with contextlib.suppress(OSError):  # deleted already
                    self._take(stored, max(os.path.getsize(path), SMALLEST))

    def forget(self, visitor: str) -> None:
        """Delete the files that only this visitor has sent."""
        with self._lock:
            for path, file in list(self._stored.items()):
                file.visitors.discard(visitor)
                if not file.visitors:
                    self._take(self._stored.pop(path), 0)
                    with contextlib.suppress(OSError):  # deleted already
                        os.unlink(path)

    def counts(self) -> dict[str, int]:
        """The current number of stored files, and the bytes of all uploads."""
        with self._lock:
            self._forget_deleted()
            return {"files": len(self._stored), "bytes": self._bytes.total()}

    def _refusal(self, origin: str, more: int) -> str:
        """Why there is no room for this many more bytes, as a sentence; empty if there is."""
        for held, most, whose in (
            (self._bytes[origin], self.limits.upload_bytes_per_address, "from one address"),
            (self._bytes.total(), self.limits.upload_bytes, "from all visitors together"),
        ):
            if held + more > most:
                return (
                    f"There is no room for this upload: {self.limits.where} keeps at most {most / 1e6:,.0f} MB of "
                    f"uploads {whose}, each for an hour or two. Use a smaller file, paste the text, or try again later."
                )
        return ""

    def _take(self, upload: Upload, size: int) -> None:
        self._bytes[upload.origin] += size - upload.size
        upload.size = size
        if not self._bytes[upload.origin]:
            del self._bytes[upload.origin]  # otherwise everybody who ever came would be remembered

    def _forget_deleted(self) -> None:
        for path in [path for path in self._stored if not os.path.lexists(path)]:
            self._take(self._stored.pop(path), 0)
