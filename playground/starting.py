"""Starting: seconds of imports, in which somebody may change their mind."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_by_an_interrupt() -> Iterator[None]:
    """Ctrl+C ends the program at once and without a word: there is nothing to save yet.

    Python's own way is an error in the midst of somebody's import, which torch's C++ ends with an abort.
    """
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a shell may have it ignored: as it is
    if listens:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if listens:
            signal.signal(signal.SIGINT, signal.default_int_handler)
