"""Starting: imports take seconds, during which a user may press Ctrl+C."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_by_an_interrupt() -> Iterator[None]:
    """Ctrl+C ends the program at once and without a word: there is nothing to save yet.

    Python would raise an error in the middle of an import, which torch's C++ turns into an abort.
    """
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a shell may have it ignored: leave it so
    if listens:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if listens:
            signal.signal(signal.SIGINT, signal.default_int_handler)
