"""Workers of a parallel test run share the cores instead of each taking all."""

import os

_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if _workers > 1:
    # before torch is imported, and inherited by the processes that tests start
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // _workers)))

from hypothesis import settings  # noqa: E402

settings.register_profile("untimed", deadline=None)  # whether a test passes says nothing of how busy the machine was
settings.load_profile("untimed")
