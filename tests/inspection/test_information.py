"""Information in bits: against its definition written out, known cases, and Bayes' rule over whole sentences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.data import LANGUAGES
from playground.data.languages import ExactModel
from playground.data.tokenizers import CharTokenizer
from playground.inspection import information as s
from playground.inspection.probe import probe

from .by_counting import information_by_counting

DIALECTS = LANGUAGES["dialects"]


def char_tokenizer():
    return CharTokenizer.from_text("".join(dict.fromkeys(DIALECTS.graph.texts)))


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=80))
def test_information_equals_its_definition(pairs):
    experts, sources = np.array(pairs).T
    table = s.counted(experts, sources, 6, 4)
    assert table.sum() == len(pairs)
    assert s.mutual_information(table) == pytest.approx(information_by_counting(pairs), abs=1e-12)
    assert s.mutual_information(table.T) == pytest.approx(s.mutual_information(table), abs=1e-12)


def test_every_visit_counts_once():
    experts, sources = np.array([[0, 1], [1, 2], [0, 2]]), np.array([0, 1, 1])
    assert s.counted(experts, sources, 3, 2).tolist() == [[1, 1], [1, 1], [0, 2]]


def test_information_of_known_cases():
    source = np.arange(400) % 4
    told = s.counted(3 - source, source, 4, 4)
    assert s.mutual_information(told) == pytest.approx(2.0)
    assert s.mutual_information(s.counted(source // 2, source, 2, 4)) == pytest.approx(1.0)
    assert s.mutual_information(np.outer([1, 2, 3], [5, 7])) == pytest.approx(0.0, abs=1e-12)
    assert s.mutual_information(np.zeros((3, 2))) == 0.0
    assert s.entropy([1, 1, 2]) == pytest.approx(1.5)
    assert s.entropy([7]) == s.entropy([]) == 0.0


def test_what_an_expert_tells_beyond_the_token():
    rng = np.random.default_rng(0)
    sources = rng.integers(0, 2, 4000)
    tokens = np.where(rng.random(4000) < 0.8, sources, 1 - sources)  # a token that gives much away

    def beyond(experts):
        return s.mutual_information(s.counted(experts, sources, 2, 2, tokens))

    by_token = information_by_counting(list(zip(tokens.tolist(), sources.tolist())))
    assert beyond(tokens) == pytest.approx(0.0, abs=1e-12)  # reads only the token
    assert beyond(sources) == pytest.approx(s.entropy(np.bincount(sources)) - by_token)  # knows all the rest
    some = np.where(rng.random(4000) < 0.6, sources, rng.integers(0, 2, 4000))
    chain = information_by_counting([(int(t * 2 + e), int(y)) for t, e, y in zip(tokens, some, sources)])
    assert chain == pytest.approx(by_token + beyond(some))  # I(T, E; S) = I(T; S) + I(E; S | T)


def test_a_perfect_readers_knowledge_against_bayes_over_whole_sentences():
    """One sentence from its beginning: the posterior is the share of each speaker's weight on that sentence."""
    tokenizer = char_tokenizer()
    exact = ExactModel(DIALECTS.graph, tokenizer.encode, tokenizer.vocab_size)
    graph = DIALECTS.graph
    edges = [i for i, text in enumerate(graph.texts) if text == "the wind turns for days.\n"]
    weight = {name: 0.0 for name in DIALECTS.sources}
    for edge in edges:
        state = graph.source[edge]
        weight[graph.states[state][0]] += graph.visits[state] * graph.probability[edge]
    posterior = np.array(list(weight.values())) / sum(weight.values())
    assert set(np.nonzero(posterior)[0]) == {0, 2}  # only sailors and farmers say so
    # the break before it tells where it begins, but lets every speaker have spoken before
    window = np.array([tokenizer.encode(".\nthe wind turns for days.")])
    upto = [s.perfect_reader_bits(exact, window[:, :n], 4) for n in (len(window[0]) - 1, len(window[0]))]
    last = len(window[0]) * upto[1] - (len(window[0]) - 1) * upto[0]  # means back to the last token's own bits
    prior = s.entropy(np.bincount([0, 1, 2, 3]))
    assert last == pytest.approx(prior - s.entropy(posterior), abs=0.01)


def test_a_longer_window_tells_more_about_the_source():
    tokenizer = char_tokenizer()
    exact = ExactModel(DIALECTS.graph, tokenizer.encode, tokenizer.vocab_size)
    text = probe(DIALECTS, tokenizer.encode, 64, 6)
    short = s.perfect_reader_bits(exact, text.ids[:, :16].numpy(), 4)
    long = s.perfect_reader_bits(exact, text.ids.numpy(), 4)
    assert 0 < short < long < 2
