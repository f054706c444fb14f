"""Uploads: a visitor, an address and all together have a share; what is deleted or refused gives its room back."""

import pytest

from playground.service.limits import LimitError
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


@pytest.mark.parametrize(
    ("stored", "asked", "refusal"),
    [
        ([("10.0.0.1", ANNA, 3)], ("10.0.0.1", ANNA, 2), "4 MB"),
        ([("10.0.0.1", ANNA, 3)], ("10.0.0.2", ANNA, 2), "4 MB"),
        ([("10.0.0.1", "", 3)], ("10.0.0.1", "", 2), "one visitor"),  # all programs of an address are one
        ([("10.0.0.1", BERT, 4)], ("10.0.0.1", CARL, 3), "one address"),
        ([(f"10.0.0.{n}", f"visitor {n}", 3) for n in range(3)], ("10.0.0.9", CARL, 2), "10 MB"),
    ],
)
def test_each_fills_a_share_and_no_more(shares, stored, asked, refusal):
    """They were counted by address alone: a student could use up the room of a whole school."""
    for origin, visitor, megabytes in stored:
        shares.begin(origin, visitor, megabytes * MB)
    origin, visitor, megabytes = asked
    with pytest.raises(LimitError, match=refusal):
        shares.begin(origin, visitor, megabytes * MB)
    if "10 MB" not in refusal:
        shares.begin("10.0.0.7", CARL, 3 * MB)
        assert shares.counts()["bytes"] == (3 + sum(megabytes for *_, megabytes in stored)) * MB


def test_a_file_counts_once_and_a_forgotten_visitor_leaves_none_but_those_that_others_sent(shares, tmp_path):
    own, both, berts = (tmp_path / name for name in ("own", "both", "berts"))
    for who, path in ((ANNA, own), (ANNA, both), (BERT, both), (BERT, berts)):
        store(shares, "10.0.0.1", path, MB, who)
    shares.forget(ANNA)
    assert [path.exists() for path in (own, both, berts)] == [False, True, True]
    assert shares.counts()["bytes"] == 2 * MB
    for who in (ANNA, ANNA, BERT):
        store(shares, "10.0.0.1", tmp_path / "a", MB, who)
    assert shares.counts()["files"] == 3 and shares.counts()["bytes"] == 3 * MB
    for n in range(50):
        store(shares, "10.0.0.1", tmp_path / str(n), 0)
    assert shares.counts()["bytes"] == 3 * MB + 50 * SMALLEST
