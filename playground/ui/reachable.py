"""Whether the page answers on this machine: asked past any proxy, and for as long as a busy machine may take."""

from __future__ import annotations

import os
import time
import urllib.error
import urllib.request

PATIENCE = 60.0
"""Seconds after which a page that has not answered is worth a word."""


def without_proxy(host: str) -> None:
    """Let this process reach its own server directly, whatever proxy the environment names for everything else."""
    for name in ("no_proxy", "NO_PROXY"):
        hosts = [*os.environ.get(name, "").split(","), "localhost", "127.0.0.1", host]
        os.environ[name] = ",".join(dict.fromkeys(filter(None, hosts)))


def answers(address: str, patience: float = PATIENCE) -> bool:
    """Whether a server answers at `address` within `patience` seconds. Errors count as answers from 400 to 499 only."""
    directly = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    ends = time.monotonic() + patience
    while True:
        try:
            directly.open(
                urllib.request.Request(address, method="HEAD"), timeout=max(ends - time.monotonic(), 1)
            ).close()
            return True
        except urllib.error.HTTPError as refusal:
            if refusal.code < 500:
                return True
        except OSError:  # nobody listens yet, or whoever does is too busy
            pass
        if time.monotonic() >= ends:
            return False
        time.sleep(0.2)
