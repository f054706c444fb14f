"""The page in a process of its own, for whoever measures it from outside."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")


@contextlib.contextmanager
def served(*options: str, log: IO[str] | None = None) -> Iterator[tuple[str, float, subprocess.Popen]]:
    """`python app.py` on a free port: its address, seconds to its first answer, its process; its words go to log."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address, began = f"http://127.0.0.1:{port}", time.perf_counter()
    command = [sys.executable, "app.py", "--port", str(port), *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=log or subprocess.DEVNULL, stderr=log)
    try:
        while True:
            try:
                urllib.request.urlopen(address, timeout=1).close()
                break
            except (urllib.error.URLError, OSError):
                assert process.poll() is None and time.perf_counter() - began < 120, "the app did not start"
                time.sleep(0.02)
        yield address, time.perf_counter() - began, process
    finally:
        process.terminate()
        process.wait()


def resident_mb(pid: int) -> float:
    """Resident memory of a process, in megabytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) / 1000


def processor_seconds(pid: int) -> float:
    """Seconds that a process has spent on processors, with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
