"""Tokens spelled one by one make up the decoded text; stop strings are found as in the whole text, in fixed time."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.data.byte_pairs import train_bpe
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.engine import Spelling, generate
from playground.engine.spelling import StopFinder
from playground.model import Transformer
from tests.model.configs import TINY

TEXT = "The cat (and “the” dog) sat.\nA naïve 😀 café, isn't it?\n\nThe end."
TOKENIZERS = [CharTokenizer.from_text(TEXT), WordTokenizer.from_text(TEXT), train_bpe(TEXT * 3, 300)]
any_tokenizer = pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda t: t.name)


@any_tokenizer
def test_pieces_make_up_the_decoded_text(tokenizer):
    draw = random.Random(1)
    sequences = [
        tokenizer.encode(TEXT),
        *([draw.randrange(tokenizer.vocab_size) for _ in range(60)] for _ in range(30)),
    ]
    for ids in sequences:
        for cut in (0, 1, 7, len(ids) // 2):
            spelling = Spelling(tokenizer, ids[:cut])
            pieces = [spelling.add(token, last=i == len(ids) - 1) for i, token in enumerate(ids[cut:], cut)]
            complete = Spelling(tokenizer)
            given = "".join(complete.add(token) for token in ids[:cut])
            assert given + "".join(pieces) == tokenizer.decode(ids)


@given(st.data())
def test_a_stop_string_is_met_exactly_when_the_whole_text_holds_it(data):
    tokenizer = data.draw(st.sampled_from(TOKENIZERS))
    encoded = tokenizer.encode(TEXT)  # bytes of cut characters among them
    ids = data.draw(st.lists(st.sampled_from(encoded) | st.integers(0, tokenizer.vocab_size - 1), max_size=30))
    whole = tokenizer.decode(ids)
    start = data.draw(st.integers(0, len(whole)))
    part = whole[start : start + data.draw(st.integers(1, 6))]
    stops = [stop for stop in (part, data.draw(st.text(max_size=3)), "�") if stop]
    stops = data.draw(st.lists(st.sampled_from(stops), min_size=1))
    finder, met = StopFinder(tokenizer, stops), False
    for n in range(1, len(ids) + 1):
        met = met or finder.met_with(ids[n - 1])
        assert met == any(stop in tokenizer.decode(ids[:k]) for stop in stops for k in range(n + 1))


@any_tokenizer
def test_a_token_costs_the_same_late_as_early(tokenizer, monkeypatch):
    """Nothing reads the whole text again for one more token: neither what spells it nor what looks for stop strings."""
    model = Transformer(TINY.replace(vocab_size=tokenizer.vocab_size))
    prompt, decoded = tokenizer.encode(TEXT), 0
    name = "token_bytes" if hasattr(tokenizer, "token_bytes") else "token_text"  # which `decode` calls for each token
    plain = getattr(type(tokenizer), name)

    def counted(self, token):
        nonlocal decoded
        decoded += 1
        return plain(self, token)

    monkeypatch.setattr(type(tokenizer), name, counted)
    spelling, costs = Spelling(tokenizer), []
    for token in prompt:
        spelling.add(token)
        costs.append(decoded)
    assert decoded <= 3 * len(prompt)
    costs = []
    for _ in generate(model, prompt[:2], 60, tokenizer=tokenizer, stop=["no such text", "nor this"]):
        costs.append(decoded)
    assert {later - before for before, later in itertools.pairwise(costs[1:])} in ({1}, {3})
