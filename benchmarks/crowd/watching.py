"""What a scene sees beside its visitors: how far it has come, and what the server wrote into its log."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from ..serving import served


def tell(text: str) -> None:
    """A line for whoever waits; the table itself goes to stdout."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def logged(*options: str) -> Iterator[tuple[str, subprocess.Popen, Callable[[], str]]]:
    """A server as `served` starts it: its address, its process, and what is wrong in its log so far."""
    with tempfile.TemporaryFile("w+") as log, served(*options, log=log) as (address, _, process):

        def complaints() -> str:
            log.seek(0)
            text = log.read()
            last = set(re.findall(r"^[\w.]*(?:Error|Exception)\b.*", text, re.MULTILINE))
            return f"{text.count('Traceback')} {'; '.join(sorted(last)[:3])}".strip()

        yield address, process, complaints
