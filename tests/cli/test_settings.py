"""--set finds the right config, types its value, and suggests what a misspelling meant."""

import pytest

from playground.cli.settings import parse_settings


def test_names_find_their_config_and_values_their_type():
    model, training = parse_settings(
        ["d_model=64", "n_kv_heads=none", "causal=false", "init_std=0.5", "steps=7", "beta2=0.9"]
    )
    assert model == {"d_model": 64, "n_kv_heads": None, "causal": False, "init_std": 0.5}
    assert training == {"steps": 7, "beta2": 0.9}
    assert parse_settings(["eval_windows=none", "norm=rmsnorm", "d_ff=32"]) == (
        {"norm": "rmsnorm", "d_ff": 32},
        {"eval_windows": None},
    )


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        ("d_modle=3", "mean d_model"),
        ("xyzzy=3", "'xyzzy'$"),
        ("d_model", "needs NAME=VALUE"),
        ("d_model=wide", "d_model.*number"),
        ("causal=maybe", "causal.*false"),
        ("learning_rate=fast", "learning_rate.*number"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(pair, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse_settings([pair])
