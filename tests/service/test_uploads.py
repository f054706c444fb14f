"""Uploads: a visitor, an address and all together have a share; what is deleted or refused gives its room back."""

from __future__ import annotations

import os
import time

import pytest

from playground.service.limits import KINDS, LimitError
from playground.service.uploads import SMALLEST, Uploads

from ..ui.runs import ANNA, BERT, small_limits

CARL = "carl"
MB = 1_000_000


@pytest.fixture
def shares() -> Uploads:
    """Room for 10 MB in all, 6 MB from one address and 4 MB of one visitor."""
    return Uploads(small_limits(upload_bytes=10 * MB, upload_bytes_per_address=6 * MB, upload_bytes_per_visitor=4 * MB))


def store(shares: Uploads, origin: str, path, size: int, visitor: str = "") -> str:
    """One upload from its beginning to its end; by default, each file is another visitor's."""
    upload = shares.begin(origin, visitor or f"of {path}", size)
    with open(path, "wb") as file:
        file.truncate(size)
    shares.end(upload, [str(path)])
    return str(path)


def test_one_visitor_fills_a_share_and_no_more_wherever_the_files_come_from(shares, tmp_path):
    """They were counted by address alone: a student could use up the room of a whole school."""
    store(shares, "10.0.0.1", tmp_path / "a", 3 * MB, ANNA)
    for origin in ("10.0.0.1", "10.0.0.2"):
        with pytest.raises(LimitError, match="4 MB"):
            shares.begin(origin, ANNA, 2 * MB)
    store(shares, "10.0.0.1", tmp_path / "b", 3 * MB, BERT)
    assert shares.counts()["bytes"] == 6 * MB


def test_programs_of_one_address_are_one_visitor(shares, tmp_path):
    shares.begin("10.0.0.1", "", 3 * MB)
    with pytest.raises(LimitError, match="one visitor"):
        shares.begin("10.0.0.1", "", 2 * MB)
    shares.begin("10.0.0.2", "", 2 * MB)


def test_one_address_fills_its_share_and_no_more(shares, tmp_path):
    store(shares, "10.0.0.1", tmp_path / "a", 4 * MB)
    with pytest.raises(LimitError, match="one address"):
        shares.begin("10.0.0.1", CARL, 3 * MB)
    store(shares, "10.0.0.2", tmp_path / "b", 4 * MB)
    assert shares.counts()["bytes"] == 8 * MB


def test_all_together_fill_the_house_and_no_more(shares, tmp_path):
    for n in range(3):
        store(shares, f"10.0.0.{n}", tmp_path / str(n), 3 * MB)
    with pytest.raises(LimitError, match="10 MB"):
        shares.begin("10.0.0.9", CARL, 2 * MB)


def test_a_deleted_file_frees_its_share(shares, tmp_path):
    path = store(shares, "10.0.0.1", tmp_path / "a", 4 * MB, ANNA)
    with pytest.raises(LimitError):
        shares.begin("10.0.0.1", ANNA, MB)
    os.unlink(path)
    time.sleep(0.02)
    shares.begin("10.0.0.1", ANNA, MB)
    assert shares.counts() | {"files": 0, "bytes": MB} == shares.counts()


def test_uploads_under_way_take_room_as_they_grow_and_give_it_back(shares):
    upload = shares.begin("10.0.0.1", ANNA)
    shares.grow(upload, 3 * MB)
    with pytest.raises(LimitError):
        shares.begin("10.0.0.1", ANNA, 2 * MB)
    with pytest.raises(LimitError):
        shares.grow(upload, 5 * MB)
    shares.end(upload)
    assert shares.counts()["bytes"] == 0 and not shares._by_address and not shares._by_visitor


def test_the_same_file_sent_again_counts_once(shares, tmp_path):
    for who in (ANNA, ANNA, BERT):
        store(shares, "10.0.0.1", tmp_path / "a", MB, who)
    assert shares.counts()["files"] == 1 and shares.counts()["bytes"] == MB


def test_a_visitor_who_is_forgotten_leaves_no_file_but_those_that_others_sent_too(shares, tmp_path):
    own, both, berts = (tmp_path / name for name in ("own", "both", "berts"))
    for who, path in ((ANNA, own), (ANNA, both), (BERT, both), (BERT, berts)):
        store(shares, "10.0.0.1", path, MB, who)
    shares.forget(ANNA)
    assert [path.exists() for path in (own, both, berts)] == [False, True, True]
    assert shares.counts()["bytes"] == 2 * MB


def test_empty_files_fill_a_share_too(shares, tmp_path):
    for n in range(50):
        store(shares, "10.0.0.1", tmp_path / str(n), 0)
    assert shares.counts()["bytes"] == 50 * SMALLEST


@pytest.mark.parametrize("limits", KINDS.values(), ids=KINDS)
def test_every_kind_has_room_for_several_of_the_largest_files(limits):
    assert 3 * limits.file_bytes < limits.upload_bytes_per_visitor
    assert limits.upload_bytes_per_visitor <= limits.upload_bytes_per_address <= limits.upload_bytes
    assert 5 * limits.file_bytes < limits.upload_bytes_per_address
