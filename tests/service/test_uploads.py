"""Uploads: an address has a share, all have one together, and what is deleted or refused gives its room back."""

from __future__ import annotations

import os
import time

import pytest

from playground.service.limits import KINDS, LimitError
from playground.service.uploads import SMALLEST, Uploads

from ..ui.runs import small_limits

ANNA, BERT, CARL = "10.0.0.1", "10.0.0.2", "10.0.0.3"
MB = 1_000_000


@pytest.fixture
def shares() -> Uploads:
    """Room for 10 MB in all and 6 MB from one address."""
    return Uploads(small_limits(upload_bytes=10 * MB, upload_bytes_per_address=6 * MB))


def store(shares: Uploads, origin: str, path, size: int) -> str:
    """One upload from its beginning to its end."""
    upload = shares.begin(origin, size)
    with open(path, "wb") as file:
        file.truncate(size)
    shares.end(upload, [str(path)])
    return str(path)


def test_one_address_fills_its_share_and_no_more(shares, tmp_path):
    store(shares, ANNA, tmp_path / "a", 4 * MB)
    with pytest.raises(LimitError, match=r"6.*uploads"):
        shares.begin(ANNA, 3 * MB)
    store(shares, BERT, tmp_path / "b", 5 * MB)
    assert shares.counts()["bytes"] == 9 * MB


def test_all_together_fill_the_house_and_no_more(shares, tmp_path):
    store(shares, ANNA, tmp_path / "a", 5 * MB)
    store(shares, BERT, tmp_path / "b", 4 * MB)
    with pytest.raises(LimitError, match=r"10.*visitors"):
        shares.begin(CARL, 2 * MB)


def test_a_deleted_file_frees_its_share(shares, tmp_path):
    path = store(shares, ANNA, tmp_path / "a", 6 * MB)
    with pytest.raises(LimitError):
        shares.begin(ANNA, MB)
    os.unlink(path)
    time.sleep(0.02)
    shares.begin(ANNA, MB)
    assert shares.counts() | {"files": 0, "bytes": MB} == shares.counts()


def test_uploads_under_way_take_room_as_they_grow_and_give_it_back(shares):
    upload = shares.begin(ANNA)
    shares.grow(upload, 5 * MB)
    with pytest.raises(LimitError):
        shares.begin(ANNA, 2 * MB)
    with pytest.raises(LimitError):
        shares.grow(upload, 7 * MB)
    shares.end(upload)
    assert shares.counts()["bytes"] == 0


def test_the_same_file_sent_again_counts_once(shares, tmp_path):
    for _ in range(5):
        store(shares, ANNA, tmp_path / "a", MB)
    store(shares, BERT, tmp_path / "a", MB)
    assert shares.counts()["files"] == 1 and shares.counts()["bytes"] == MB


def test_empty_files_fill_a_share_too(shares, tmp_path):
    for n in range(50):
        store(shares, ANNA, tmp_path / str(n), 0)
    assert shares.counts()["bytes"] == 50 * SMALLEST


@pytest.mark.parametrize("limits", KINDS.values(), ids=KINDS)
def test_every_kind_has_room_for_several_of_the_largest_files(limits):
    assert 5 * limits.file_bytes < limits.upload_bytes_per_address <= limits.upload_bytes
