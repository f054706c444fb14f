"""Room: how many bytes of memory and of the upload folder each visitor, each address, and all together may use.

Room is taken before a byte is kept, and given back when the upload or request has ended. A stored file keeps its room
until it is deleted.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .limits import BODIES, BODIES_PER_ADDRESS, LimitError, Limits

SMALLEST = 65_536
"""A stored file counts at least this many bytes: very many empty ones fill a disk, too."""


@dataclass
class Upload:
    """A body or an upload under way, or a stored file."""

    origin: str
    """The address from which it comes."""
    visitor: str
    """The visitor, or the address again for programs: all programs at one address count as one visitor."""
    size: int = 0
    """Bytes of room that it has taken."""
    wanted: bool = False
    """Whether another visitor has sent the same file."""


class Room:
    """Counts the bytes that uploads take, per address and per visitor. Safe to use from several threads."""

    def __init__(self, most: int, per_address: int, per_visitor: int, refusal: Callable[[str, int], str]):
        """`refusal(whose, most)` is the error message if `whose` uploads would take more than `most` bytes."""
        self.most, self.per_address, self.per_visitor, self.refusal = most, per_address, per_visitor, refusal
        self._lock = threading.Lock()
        self._by_address: Counter[str] = Counter()  # bytes
        self._by_visitor: Counter[str] = Counter()

    def begin(self, origin: str, visitor: str = "", size: int = 0) -> Upload:
        """Reserve room for an upload of `size` bytes, if its size is stated. Raises LimitError."""
        upload = Upload(origin, visitor or origin)
        self.grow(upload, size)
        return upload

    def grow(self, upload: Upload, size: int) -> None:
        """Take room for `size` bytes in all, where it has less. Raises LimitError."""
        more = size - upload.size
        if more <= 0:
            return
        with self._lock:
            if self._refusal(upload, more):
                self._make_room()
            if words := self._refusal(upload, more):
                raise LimitError(words)
            self._count(upload, more)
            upload.size = size

    def give_back(self, upload: Upload) -> None:
        """Free the room that an upload took, because it has ended."""
        with self._lock:
            self._give_back(upload)

    def _make_room(self) -> None:
        """Free the room of uploads that ended unnoticed."""

    def _refusal(self, upload: Upload, more: int) -> str:
        """Why there is no room for this many more bytes, as a sentence; empty if there is."""
        for held, most, whose in (
            (self._by_visitor[upload.visitor], self.per_visitor, "from one visitor"),
            (self._by_address[upload.origin], self.per_address, "from one address"),
            (self._by_address.total(), self.most, "from all visitors together"),
        ):
            if held + more > most:
                return self.refusal(whose, most)
        return ""

    def _count(self, upload: Upload, more: int) -> None:
        for held, whose in ((self._by_address, upload.origin), (self._by_visitor, upload.visitor)):
            held[whose] += more
            if not held[whose]:
                del held[whose]  # otherwise everybody who ever came would be remembered

    def _give_back(self, upload: Upload) -> None:
        self._count(upload, -upload.size)


def room_for_bodies() -> Room:
    """Room for requests that are being read and answered, and so are in memory."""

    def refusal(whose: str, most: int) -> str:
        return f"Requests {whose} are still being read, {most / 1e6:,.0f} MB of them. Try again in a moment."

    return Room(BODIES, BODIES_PER_ADDRESS, BODIES_PER_ADDRESS, refusal)


class Uploads(Room):
    """Bytes of the stored files and of the uploads under way."""

    def __init__(self, limits: Limits):
        most = limits.upload_bytes, limits.upload_bytes_per_address, limits.upload_bytes_per_visitor
        super().__init__(*most, self._no_room)
        self.where = limits.where
        self._stored: dict[str, Upload] = {}  # by path
        self._look_again = float("-inf")

    def end(self, upload: Upload, paths: Iterable[str] = ()) -> None:
        """Release the room reserved for an upload; count the files stored at `paths` instead."""
        with self._lock:
            self._give_back(upload)
            for path in paths:
                before = self._stored.pop(path, None)  # the same content under the same name has the same path
                if before:
                    self._give_back(before)
                first = before or upload
                wanted = first.wanted or first.visitor != upload.visitor
                stored = Upload(first.origin, first.visitor, max(_size(path), SMALLEST), wanted)
                self._stored[path] = stored
                self._count(stored, stored.size)

    def forget(self, visitor: str) -> None:
        """Delete the files that no other visitor has stored."""
        with self._lock:
            for path in [path for path, file in self._stored.items() if file.visitor == visitor and not file.wanted]:
                self._give_back(self._stored.pop(path))
                with contextlib.suppress(OSError):  # deleted already
                    os.unlink(path)

    def counts(self) -> dict[str, int]:
        """The current number and bytes of uploads, including those under way, and the bytes allowed."""
        with self._lock:
            self._forget_deleted()
            return {
                "files": len(self._stored),
                "bytes": self._by_address.total(),
                "bytes_allowed": self.most,
                "bytes_allowed_per_address": self.per_address,
                "bytes_allowed_per_visitor": self.per_visitor,
            }

    def _no_room(self, whose: str, most: int) -> str:
        return (
            f"There is no room for this upload: {self.where} keeps at most {most / 1e6:,.0f} MB of uploads {whose}, "
            "each for an hour or two. Use a smaller file, paste the text, or try again later."
        )

    def _make_room(self) -> None:
        if time.monotonic() >= self._look_again:
            self._forget_deleted()

    def _forget_deleted(self) -> None:
        begun = time.monotonic()
        for path in [path for path in self._stored if not os.path.lexists(path)]:
            self._give_back(self._stored.pop(path))
        ended = time.monotonic()
        self._look_again = ended + 10 * (ended - begun)  # checking takes at most a tenth of the time


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
