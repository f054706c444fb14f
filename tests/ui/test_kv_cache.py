"""Inspect's measurement of the KV cache: the same tokens with and without it, and counts to check by hand."""

import pytest

from playground.data.tokenizers import CharTokenizer
from playground.engine import generate
from playground.model import Transformer
from playground.storage import Checkpoint
from playground.training import History
from playground.ui.tabs.inspect.kv_cache import RULES, TOKENS, measured, slots
from tests.model.configs import TINY
from tests.ui.inspecting import Inspecting

LETTERS = CharTokenizer("ab<>&cde\n ")
CONFIG = TINY.replace(vocab_size=LETTERS.vocab_size, init_std=0.5)


def tab(**changes) -> Inspecting:
    return Inspecting(Checkpoint(Transformer(CONFIG.replace(**changes), seed=1), LETTERS, History(), "tried"))


def test_both_texts_are_the_same_and_the_cache_is_as_large_as_it_says():
    inspecting = tab()
    at = inspecting.at("abcab", view="cost", kv=True)
    found = measured(at)
    steps = list(generate(at.look.model, list(at.look.ids), TOKENS, RULES))
    assert found.same and found.largest < 1e-4 and found.lengths == [step.length for step in steps]
    assert found.projections[0] == steps[-1].projections < found.projections[1]
    assert found.held == steps[-1].cache_length
    made = {name: slot.make() for name, slot in slots(at).items()}
    assert f"{TOKENS} tokens" in made["kv-proof"]
    assert f"{CONFIG.cache_bytes(found.held):,} bytes" in made["kv-proof"]
    assert all(made[name]["figure"]["data"] for name in ("kv-times",))
    assert all(slot.slow for slot in slots(at).values())
    assert not slots(inspecting.at("abcab", view="cost"))


def test_a_model_that_sees_the_future_has_no_cache():
    at = tab(causal=False).at("abcab", view="cost", kv=True)
    with pytest.raises(ValueError, match=r"cache.*help"):
        slots(at)["kv-proof"].make()
    assert slots(at)["kv-times"].make() is None, "which is said once"
