"""Uploads: how much of the upload folder each address may fill, and all addresses together.

Room is taken before a byte is stored and given back when the upload is refused or cut off. A stored file keeps its
room until it is deleted.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from .limits import LimitError, Limits

SMALLEST = 65_536
"""Bytes that a stored file counts at least: very many empty ones use up a disk, too."""


@dataclass
class Upload:
    """An upload under way, or a stored file."""

    origin: str
    """The address that it comes from."""
    size: int = 0
    """Bytes that it has room for."""


class Uploads:
    """Bytes of the stored files and of the uploads under way, by address. For any number of threads."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()  # bytes by address
        self._stored: dict[str, Upload] = {}  # by path
        self._look_again = float("-inf")

    def begin(self, origin: str, size: int = 0) -> Upload:
        """Take room for an upload of `size` bytes, as far as its size is stated. Raises LimitError."""
        upload = Upload(origin)
        self.grow(upload, size)
        return upload

    def grow(self, upload: Upload, size: int) -> None:
        """Take room for `size` bytes in all, where it has less. Raises LimitError."""
        more = size - upload.size
        if more <= 0:
            return
        with self._lock:
            if self._refusal(upload.origin, more) and time.monotonic() >= self._look_again:
                self._forget_deleted()
            if words := self._refusal(upload.origin, more):
                raise LimitError(words)
            self._held[upload.origin] += more
            upload.size = size

    def end(self, upload: Upload, paths: Iterable[str] = ()) -> None:
        """Give its room back; the files that it has stored at `paths` take their own."""
        with self._lock:
            self._give_back(upload)
            for path in paths:
                before = self._stored.pop(path, None)  # the same content under the same name has the same path
                if before:
                    self._give_back(before)
                origin = before.origin if before else upload.origin
                self._stored[path] = Upload(origin, max(_size(path), SMALLEST))
                self._held[origin] += self._stored[path].size

    def counts(self) -> dict[str, int]:
        """What there is now, uploads under way included, and how much there may be; sizes in bytes."""
        with self._lock:
            self._forget_deleted()
            return {
                "files": len(self._stored),
                "bytes": self._held.total(),
                "bytes_allowed": self.limits.upload_bytes,
                "bytes_allowed_per_address": self.limits.upload_bytes_per_address,
            }

    def _refusal(self, origin: str, more: int) -> str:
        """Why there is no room for so many bytes more, in a sentence; empty where there is."""
        limits = self.limits
        if self._held[origin] + more > limits.upload_bytes_per_address:
            return limits.no_room_for_uploads("from one address", limits.upload_bytes_per_address)
        if self._held.total() + more > limits.upload_bytes:
            return limits.no_room_for_uploads("from all visitors together", limits.upload_bytes)
        return ""

    def _give_back(self, upload: Upload) -> None:
        self._held[upload.origin] -= upload.size
        if not self._held[upload.origin]:
            del self._held[upload.origin]  # else every address that ever came would be remembered

    def _forget_deleted(self) -> None:
        begun = time.monotonic()
        for path in [path for path in self._stored if not os.path.lexists(path)]:
            self._give_back(self._stored.pop(path))
        ended = time.monotonic()
        self._look_again = ended + 10 * (ended - begun)  # looking may take a tenth of the time, however many files


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
