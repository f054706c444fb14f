"""Workers of a parallel test run share the cores instead of each taking all, and one of them has the browser."""

import os

import pytest

_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if _workers > 1:
    # before torch is imported, and inherited by the processes that tests start
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // _workers)))

from hypothesis import settings  # noqa: E402

from playground.service.data_folder import DataFolder  # noqa: E402

SIGNING_KEY = DataFolder._signing_key
DataFolder._signing_key = lambda self: b"of all tests"  # so that every page of theirs knows their visitors

settings.register_profile("untimed", deadline=None)  # whether a test passes says nothing of how busy the machine was
settings.load_profile("untimed")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The browser's tests on one worker, all others file by file: two Chromiums at once cost more than they gain."""
    from xdist.scheduler import LoadFileScheduling

    class BrowserAlone(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "tests/browser" if file.startswith("tests/browser/") else file

    return BrowserAlone(config, log) if config.getvalue("dist") == "loadfile" else None
