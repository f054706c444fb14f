"""Inspect's measurement of the KV cache: the same tokens with and without it, and counts to check by hand."""

import pytest

from playground.engine import generate
from playground.ui.tabs.inspect.kv_cache import RULES, TOKENS, measured, slots
from tests.model.configs import TINY
from tests.ui.inspecting import Inspecting, made_up


def test_both_texts_are_the_same_and_the_cache_is_as_large_as_it_says():
    inspecting = Inspecting(made_up())
    at = inspecting.at("abcab", view="cost", kv=True)
    found = measured(at)
    steps = list(generate(at.look.model, list(at.look.ids), TOKENS, RULES))
    assert found.same and found.largest < 1e-4 and found.lengths == [step.length for step in steps]
    assert found.projections[0] == steps[-1].projections < found.projections[1]
    assert found.held == steps[-1].cache_length
    made = {name: slot.make() for name, slot in slots(at).items()}
    assert f"{TOKENS} tokens" in made["kv-proof"]
    assert f"{at.look.config.cache_bytes(found.held):,} bytes" in made["kv-proof"]
    assert all(made[name]["figure"]["data"] for name in ("kv-times",))
    assert all(slot.slow for slot in slots(at).values())
    assert not slots(inspecting.at("abcab", view="cost"))


def test_a_model_that_sees_the_future_has_no_cache():
    at = Inspecting(made_up(TINY.replace(causal=False))).at("abcab", view="cost", kv=True)
    with pytest.raises(ValueError, match=r"cache.*help"):
        slots(at)["kv-proof"].make()
    assert slots(at)["kv-times"].make() is None, "which is said once"
