"""Presence: which visitors have opened a page, so that pages and programs share the server fairly."""

from __future__ import annotations

import threading
from collections import OrderedDict

from ..service.limits import PAGES


class Presence:
    """Who has a page. For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: OrderedDict[str, None] = OrderedDict()  # their visitors, the latest last

    def opened(self, visitor: str) -> None:
        """A page was loaded."""
        with self._lock:
            self._pages[visitor] = None
            self._pages.move_to_end(visitor)
            while len(self._pages) > PAGES:
                self._pages.popitem(last=False)

    def is_page(self, visitor: str) -> bool:
        """Whether this visitor has opened a page."""
        return visitor in self._pages
