"""Workers of a parallel test run share the cores instead of each taking all, and two of them have a browser."""

import os

import pytest

_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if _workers > 1:
    # before torch is imported, and inherited by the processes that tests start
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // _workers)))

from hypothesis import settings  # noqa: E402

from playground.service.data_folder import DataFolder  # noqa: E402
from tests.standins.hub import hub, signed_in  # noqa: E402, F401

os.fsync = lambda file: None  # no test cuts the power
SIGNING_KEY = DataFolder._signing_key
DataFolder._signing_key = lambda self: b"of all tests"  # so that every page of theirs knows their visitors

settings.register_profile("untimed", deadline=None)  # whether a test passes says nothing of how busy the machine was
settings.load_profile("untimed")


LONG = ("test_generate", "test_inspect", "test_lessons", "test_look")
"""The browser's files that take as long as all its others."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The browser's tests on two workers, all others file by file: more than two Chromiums cost more than they gain."""
    from xdist.scheduler import LoadFileScheduling

    class TwoBrowsers(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            if not file.startswith("tests/browser/"):
                return file
            return f"tests/browser {any(name in file for name in LONG)}"

    return TwoBrowsers(config, log) if config.getvalue("dist") == "loadfile" else None
