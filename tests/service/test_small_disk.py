"""On a disk of 3 MB no run is lost: trained, used, taken along from memory, and saved once there is space again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOUNTED = [
    "unshare",
    "--user",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
    'mount -t tmpfs -o size=3m none "$0" && exec "$@"',
]
"""A command that sees a disk of its own at the first argument, in memory; the rest is run there."""

STORY = """
    import dataclasses, subprocess, sys, zipfile
    from io import BytesIO
    from pathlib import Path

    from playground.service import data_folder
    from playground.service.board import Board
    from playground.service.data_folder import DataFolder
    from playground.service.models import Registry
    from playground.storage.archive import pack
    from playground.ui import made_files
    from tests.ui.runs import ANNA, BERT, ended, small_limits, small_spec, until

    disk, limits = Path(sys.argv[1]), small_limits()
    data_folder.RETRY_SECONDS = 0.1
    board = Board(Registry(limits, shipped=disk / "none", data=DataFolder(disk / "data")), limits)
    spec = small_spec(steps=12, snapshots=4, autosave_seconds=0.01)
    spec = dataclasses.replace(spec, model=spec.model.replace(d_model=128, n_layers=4))  # of 3 MB; its state has 9
    assert 4 * spec.model.n_parameters > 3_000_000
    jobs = []
    for visitor in (ANNA, BERT):
        jobs.append(job := board.start(visitor, spec))
        ended(job, 60)
        assert job.state == "finished" and job.view().history.last_step == 12, job.message
        assert board.registry.get(job.id, visitor).history.last_step == 12
    assert board.data.problem == "the disk of this page's server is full"
    link, _ = made_files.made(lambda folder: (pack(board.registry.get(jobs[0].id, ANNA), folder / "mine.zip"), ""))
    assert zipfile.is_zipfile(BytesIO(made_files._files.peek(link.split("/")[1])))

    subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
    until(lambda: not board.data.problem, 60)
    board.data.close()
    again = Board(Registry(limits, shipped=disk / "none", data=DataFolder(disk / "data")), limits)
    for job, visitor in zip(jobs, (ANNA, BERT)):
        assert again.registry.get(job.id, visitor).history.last_step == 12 and len(again.of(visitor)) == 1
"""


def has_disks_of_its_own(folder: Path) -> bool:
    """Whether a test may mount something for itself alone."""
    return (
        bool(shutil.which("unshare")) and not subprocess.run([*MOUNTED, folder, "true"], capture_output=True).returncode
    )


def test_on_a_disk_of_3_mb_no_run_is_lost(tmp_path):
    if not has_disks_of_its_own(tmp_path):
        pytest.skip("this system lets nobody mount a disk for themselves")
    story = [*MOUNTED, tmp_path, sys.executable, "-c", textwrap.dedent(STORY), tmp_path]
    told = subprocess.run(story, cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr[-3000:]
