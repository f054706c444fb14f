"""Limits hold in Python, one by one; the place decides which; uploads have a share of visitor, address and all."""

import pytest

from playground.model import PRESETS, ModelConfig
from playground.service.limits import LOCAL, PUBLIC, LimitError, limits_here, training_memory
from playground.service.uploads import SMALLEST, Uploads
from playground.training import TrainConfig

from ..ui.runs import ANNA, BERT, small_limits


@pytest.fixture
def nowhere(monkeypatch):
    """Neither a Space nor told anything."""
    monkeypatch.delenv("SPACE_ID", raising=False)
    monkeypatch.delenv("PLAYGROUND_LIMITS", raising=False)
    return monkeypatch


def test_the_place_decides_on_limits_and_memory_is_bounded_by_all_of_them(nowhere):
    assert limits_here() is LOCAL
    assert limits_here(strangers=True).kind == "class"
    nowhere.setenv("SPACE_ID", "someone/somewhere")
    assert limits_here() is limits_here(strangers=True) is PUBLIC
    nowhere.setenv("PLAYGROUND_LIMITS", "local")
    assert limits_here(strangers=True) is LOCAL and limits_here("public") is PUBLIC
    nowhere.setenv("PLAYGROUND_LIMITS", "paradise")
    with pytest.raises(ValueError, match=r"limits.*'paradise'"):
        limits_here()
    wide = ModelConfig(vocab_size=50_000, context_length=256, n_layers=1, d_model=32, n_heads=2)
    config = TrainConfig(batch_size=64)
    assert training_memory(wide, 64) > PUBLIC.memory
    with pytest.raises(LimitError, match=r"would.*\d+\.\d"):
        PUBLIC.check_training(wide, config)
    small = PRESETS["small"]
    assert training_memory(small, 32) > training_memory(small, 16) > training_memory(small.replace(n_layers=2), 16)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"n_layers": 13}, "13.*12"),
        ({"context_length": 257}, "257.*context"),
        ({"vocab_size": 52_001}, "52,001 different tokens"),
        ({"d_model": 512, "n_layers": 8}, "parameters.*many"),
    ],
)
def test_models_beyond_a_limit_are_refused_with_the_limit_named(changes, complaint):
    within = ModelConfig(n_layers=12, context_length=256, d_model=64)
    PUBLIC.check_model(within)
    with pytest.raises(LimitError, match=complaint):
        PUBLIC.check_model(within.replace(**changes))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"batch_size": 65}, "65 windows"),
        ({"batch_size": 33, "accumulation": 2}, "66 windows"),
        ({"steps": 5001}, "5,001 steps"),
        ({"sample_prompt": "x" * 4001}, "4,001 characters"),
        ({"sample_tokens": 513}, "513 tokens"),
        ({"eval_windows": 1025}, "1,025.*1,024"),
        ({"eval_windows": 10**8}, "100,000,000 windows"),
        ({"eval_windows": None}, "number of windows"),
    ],
)
def test_runs_beyond_a_limit_are_refused(changes, complaint):
    PUBLIC.check_training(ModelConfig(), TrainConfig(batch_size=64, steps=5000))
    with pytest.raises(LimitError, match=complaint):
        PUBLIC.check_training(ModelConfig(), TrainConfig(**{"steps": 5000, **changes}))


MB = 1_000_000


@pytest.fixture
def shares() -> Uploads:
    """Room for 10 MB in all, and 4 MB from one address."""
    return Uploads(small_limits(upload_bytes=10 * MB, upload_bytes_per_address=4 * MB))


def store(shares: Uploads, origin: str, path, size: int, visitor: str = "") -> None:
    """One upload from its beginning to its end."""
    upload = shares.begin(origin, visitor, size)
    with open(path, "wb") as file:
        file.truncate(size)
    shares.end(upload, [str(path)])


def test_each_address_fills_a_share_and_no_more(shares):
    for number in range(3):
        upload = shares.begin(f"10.0.0.{number}", ANNA, 3 * MB)
        with pytest.raises(LimitError, match=r"4 MB.*one address"):
            shares.grow(upload, 5 * MB)
    with pytest.raises(LimitError, match=r"10 MB.*all visitors"):
        shares.begin("10.0.0.7", BERT, 2 * MB)
    shares.end(upload)
    shares.begin("10.0.0.7", BERT, 2 * MB)
    assert shares.counts()["bytes"] == 8 * MB


def test_a_file_counts_once_and_goes_with_the_visitor_who_sent_it_last(shares, tmp_path):
    own, both, berts = (tmp_path / name for name in ("own", "both", "berts"))
    for who, path in ((ANNA, own), (ANNA, both), (BERT, both), (BERT, berts)):
        store(shares, "10.0.0.1", path, MB, who)
    assert shares.counts() == {"files": 3, "bytes": 3 * MB}
    shares.forget(ANNA)
    assert [path.exists() for path in (own, both, berts)] == [False, True, True]
    both.unlink()
    for n in range(5):
        store(shares, "10.0.0.2", tmp_path / str(n), 0)
    assert shares.counts() == {"files": 6, "bytes": MB + 5 * SMALLEST}
