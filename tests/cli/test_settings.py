"""--set finds the right config, types its value, and suggests what a misspelling meant."""

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
