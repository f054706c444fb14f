"""Presses: which presses of Generate were stopped, or overtaken by a newer one, also before their turn came."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from ....service.limits import PAGES

_PRESS = re.compile(r"([\w-]{8,64})\.(\d{1,9})")


@dataclass
class _Page:
    """An open page, by the numbers of its presses."""

    stopped: int = 0
    """This one and those before it are to end."""
    newest: int = 0
    """The latest whose turn has come."""


@dataclass(frozen=True)
class Press:
    """One press under way."""

    _page: _Page
    _number: int

    @property
    def stopped(self) -> bool:
        """Whether the visitor wants no more of it."""
        return self._page.stopped >= self._number or self.overtaken

    @property
    def overtaken(self) -> bool:
        """Whether its page is already shown a later one, so that nobody sees what this one says."""
        return self._page.newest > self._number


class Presses:
    """The latest pages, by the names that they gave themselves: whoever knows a page's name is that page.

    A press is named `page.number` by the browser, before the server hears of it. So Stop, which names it too, holds
    however long the press itself still waits in line.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: OrderedDict[str, _Page] = OrderedDict()

    def begin(self, name: Any) -> Press:
        """The turn of this press has come. One without a name cannot be stopped."""
        page, number = self._find(name)
        page.newest = max(page.newest, number)
        return Press(page, number)

    def stop(self, name: Any) -> None:
        """End this press and those before it."""
        page, number = self._find(name)
        page.stopped = max(page.stopped, number)

    def _find(self, name: Any) -> tuple[_Page, int]:
        match = _PRESS.fullmatch(name) if isinstance(name, str) else None
        if match is None:
            return _Page(), 1
        with self._lock:
            page = self._pages.setdefault(match[1], _Page())
            self._pages.move_to_end(match[1])
            while len(self._pages) > PAGES:
                self._pages.popitem(last=False)
            return page, int(match[2])
