"""What experts tell and whom they favour equals a count; every token of a probe has its true source."""

from collections import Counter
from math import comb, log2

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.data import LANGUAGES
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.inspection import favourites as s
from playground.inspection.expert_information import expert_information, joint_counts, mutual_information
from playground.inspection.probe import entropy, probe
from playground.inspection.routing import first_choices, routing_of
from playground.model import ModelConfig, Transformer

DIALECTS = LANGUAGES["dialects"]


def information_by_counting(pairs):
    """I(X; Y) in bits from a list of pairs, with dictionaries and the definition."""
    both, left, right, n = Counter(pairs), Counter(x for x, _ in pairs), Counter(y for _, y in pairs), len(pairs)
    return sum(c / n * log2(c * n / (left[x] * right[y])) for (x, y), c in both.items())


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=80))
def test_information_equals_its_definition(pairs):
    experts, sources = np.array(pairs).T
    table = joint_counts(experts, sources, 6, 4)
    assert table.shape == (1, 6, 4) and table.sum() == len(pairs)
    assert mutual_information(table) == pytest.approx(information_by_counting(pairs), abs=1e-12)
    assert mutual_information(table.transpose(0, 2, 1)) == pytest.approx(mutual_information(table), abs=1e-12)


def test_what_an_expert_tells_beyond_the_token():
    rng = np.random.default_rng(0)
    sources = rng.integers(0, 2, 4000)
    tokens = np.where(rng.random(4000) < 0.8, sources, 1 - sources)  # a token that gives much away

    def beyond(experts):
        return mutual_information(joint_counts(experts, sources, 2, 2, tokens))

    by_token = information_by_counting(list(zip(tokens.tolist(), sources.tolist())))
    assert beyond(tokens) == pytest.approx(0.0, abs=1e-12)  # reads only the token
    assert beyond(sources) == pytest.approx(entropy(np.bincount(sources)) - by_token)  # knows all the rest
    some = np.where(rng.random(4000) < 0.6, sources, rng.integers(0, 2, 4000))
    chain = information_by_counting([(int(t * 2 + e), int(y)) for t, e, y in zip(tokens, some, sources)])
    assert chain == pytest.approx(by_token + beyond(some))  # I(T, E; S) = I(T; S) + I(E; S | T)


@pytest.fixture(scope="module")
def probed():
    """A mixture that remembers nothing (no attention output, no experts' output), and a probe."""
    tokenizer = CharTokenizer.from_text("".join(DIALECTS.graph.texts))
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, context_length=160, n_layers=2, d_model=16, n_heads=2, n_experts=4,
        positions="rotary", init_std=0.5, zero_init_outputs=True,
    )  # fmt: skip
    return Transformer(config), probe(DIALECTS, tokenizer.encode, 160, 16)


def test_an_untrained_router_tells_what_the_token_tells_and_one_that_follows_the_source_is_found_out(probed):
    model, text = probed
    bits = expert_information(first_choices(model, text.ids), 4, text)
    token = information_by_counting(list(zip(text.ids.flatten().tolist(), text.sources.ravel().tolist())))
    assert bits["beyond"] == pytest.approx(0.0, abs=1e-9) and bits["remembered"] == pytest.approx(0.0, abs=1e-9)
    assert all(0 < total < token for total in bits["total"])
    # A tap sends every token to its speaker's expert: all is told, at the openings, too.
    model, text = probed

    def edit(name, layer, x):
        return torch.tensor(text.sources[..., None]).expand_as(x) if name == "experts" and layer == 1 else x

    choices = routing_of(model, text.ids, edit=edit).experts[..., 0].flatten(1).numpy()
    bits, sources = expert_information(choices, 4, text), text.sources.ravel()
    assert bits["total"][1] == pytest.approx(entropy(np.bincount(sources))) and bits["total"][0] < bits["total"][1]
    assert joint_counts(choices[1], sources, 4, 4)[0].tolist() == np.diag(np.bincount(sources, minlength=4)).tolist()
    opens = text.openings.ravel()
    at = list(zip(text.ids.numpy().ravel()[opens].tolist(), sources[opens].tolist()))
    rest = information_by_counting([(source, source) for _, source in at]) - information_by_counting(at)
    assert bits["remembered"][1] == pytest.approx(rest)


@pytest.mark.parametrize("make", [CharTokenizer, WordTokenizer])
def test_probe_knows_every_tokens_true_source(make):
    tokenizer = make.from_text("".join(DIALECTS.graph.texts[::4]))
    found = probe(DIALECTS, tokenizer.encode, 40, 6, seed=5)
    assert found.ids.shape == found.sources.shape == found.sentences.shape == (6, 40)
    ids, sources, sentences = (np.asarray(x).ravel() for x in (found.ids, found.sources, found.sentences))
    # each whole sentence is one that its speaker can say
    said = {name: set() for name in DIALECTS.sources}
    graph = DIALECTS.graph
    for edge, text in enumerate(graph.texts):
        said[graph.states[graph.source[edge]][0]].add(tuple(tokenizer.encode(text)))
    for number in range(sentences[-1]):  # the last one is cut
        here = sentences == number
        assert len(set(sources[here])) == 1
        assert tuple(ids[here].tolist()) in said[found.names[sources[here][0]]]
    again = probe(DIALECTS, tokenizer.encode, 40, 6, seed=5)
    assert torch.equal(again.ids, found.ids)
    # openings are the tokens of "the " in sentences that have another one before them in their window
    opening = tokenizer.encode("the ")
    for w in range(6):
        for t in range(40):
            beginnings = [u for u in range(1, t + 1) if found.sentences[w, u] != found.sentences[w, u - 1]]
            expected = bool(beginnings) and t - beginnings[-1] < len(opening)
            assert found.openings[w, t] == expected
            if expected:
                assert found.ids[w, t] == opening[t - beginnings[-1]]


def test_entropy_of_known_cases_and_a_language_without_sources():
    with pytest.raises(ValueError, match="hidden sources"):
        probe(LANGUAGES["stories"], lambda text: [0] * len(text), 16, 2)
    assert entropy([1, 1, 2]) == pytest.approx(1.5)
    assert entropy([7]) == entropy([]) == 0.0


def test_favourites_equal_a_count_over_all_tokens_and_luck_has_none():
    rng = np.random.default_rng(4)
    tokens = rng.integers(0, 9, 600)
    experts = np.stack([rng.integers(0, 4, 600), rng.integers(4, 8, 600)], axis=1)
    experts[tokens == 3, 0] = 2  # expert 2 likes token 3
    found, looked = s.favourites(experts, tokens, 9)
    assert looked == 9 * 9 and [lift.token for lift in found[2]] == [3] and found[8] == []
    (liked,) = found[2]
    own = [row for t, row in zip(tokens, experts) if t == 3]
    assert liked.count == liked.taken == len(own)
    assert liked.lift == pytest.approx(1 / (experts == 2).any(axis=1).mean())
    # Of forty texts on which experts are drawn, at most one in twenty has any favourite at all.
    rng, texts = np.random.default_rng(0), 40
    named = 0
    for _ in range(texts):
        tokens = rng.choice(30, 3072, p=np.arange(1, 31) / 465)
        experts = rng.choice(8, 3072, p=[0.001, 0.199, *[0.8 / 6] * 6])
        experts = np.stack([experts, np.full(3072, 8)], axis=1)  # expert 8 takes every token
        named += any(s.favourites(experts, tokens, 9)[0])
    assert named <= texts / 20 + 1
    exact = sum(comb(20, k) * 0.3**k * 0.7 ** (20 - k) for k in range(11, 21))
    assert s._tail(11, 20, 0.3) == pytest.approx(exact, abs=1e-12)
