"""Specialisation: information in bits against sums written out by hand, loops over tokens, and known cases."""

from collections import Counter
from math import log2

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.data import LANGUAGES
from playground.data.languages import ExactModel
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.inspection import specialisation as s
from playground.inspection.routing import routing_of
from playground.model import ModelConfig, Transformer

DIALECTS = LANGUAGES["dialects"]


def information_by_counting(pairs):
    """I(X; Y) in bits from a list of pairs, with dictionaries and the definition."""
    both, left, right, n = Counter(pairs), Counter(x for x, _ in pairs), Counter(y for _, y in pairs), len(pairs)
    return sum(c / n * log2(c * n / (left[x] * right[y])) for (x, y), c in both.items())


def char_tokenizer():
    return CharTokenizer.from_text("".join(dict.fromkeys(DIALECTS.graph.texts)))


@settings(max_examples=30, deadline=None)
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


def test_chance_agrees_with_shuffling_sentence_by_sentence():
    """The fast table of visits per sentence gives what moving labels by hand gives."""
    rng = np.random.default_rng(1)
    blocks = np.repeat(np.arange(30), rng.integers(1, 9, 30))
    sources = rng.integers(0, 4, 30)[blocks]
    experts = rng.integers(0, 5, (len(blocks), 2))
    fast = s.chance(experts, sources, 5, 4, blocks, rounds=300, seed=3)
    slow, labels, rng = [], [int(sources[blocks == b][0]) for b in range(30)], np.random.default_rng(8)
    for _ in range(300):
        moved = [labels[i] for i in rng.permutation(30)]
        slow.append(information_by_counting([(e, moved[b]) for b, row in zip(blocks, experts) for e in row.tolist()]))
    assert fast.mean == pytest.approx(np.mean(slow), rel=0.06)
    assert fast.p95 == pytest.approx(np.quantile(slow, 0.95), rel=0.12)
    assert fast.p95 > fast.mean > 0


def test_chance_is_exceeded_by_experts_that_know_and_not_by_those_that_guess():
    rng = np.random.default_rng(0)
    blocks = np.repeat(np.arange(60), 20)
    sources = (np.arange(60) % 4)[blocks]
    knows, guesses = sources.copy(), rng.integers(0, 4, len(sources))
    bits = {n: s.mutual_information(s.counted(e, sources, 4, 4)) for n, e in
            (("knows", knows), ("guesses", guesses))}  # fmt: skip
    assert bits["knows"] > 5 * s.chance(knows, sources, 4, 4, blocks).p95
    assert bits["guesses"] < 2 * s.chance(guesses, sources, 4, 4, blocks).p95


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
    guess = rng.integers(0, 2, 4000)
    by_chance = s.chance(guess, sources, 2, 2, given=tokens)
    assert 0 < by_chance.mean < by_chance.p95 < 0.01
    assert beyond(guess) < 3 * by_chance.p95 < beyond(some)


@pytest.mark.parametrize("make", [char_tokenizer, lambda: WordTokenizer.from_text("".join(DIALECTS.graph.texts[::4]))])
def test_probe_knows_every_tokens_true_source(make):
    tokenizer = make()
    probe = s.probe(DIALECTS, tokenizer.encode, 40, 6, seed=5)
    assert probe.ids.shape == probe.sources.shape == probe.sentences.shape == (6, 40)
    ids, sources, sentences = (np.asarray(x).ravel() for x in (probe.ids, probe.sources, probe.sentences))
    # each whole sentence is one that its speaker can say
    said = {name: set() for name in DIALECTS.sources}
    graph = DIALECTS.graph
    for edge, text in enumerate(graph.texts):
        said[graph.states[graph.source[edge]][0]].add(tuple(tokenizer.encode(text)))
    for number in range(sentences[-1]):  # the last one is cut
        here = sentences == number
        assert len(set(sources[here])) == 1
        assert tuple(ids[here].tolist()) in said[probe.names[sources[here][0]]]
    again = s.probe(DIALECTS, tokenizer.encode, 40, 6, seed=5)
    assert torch.equal(again.ids, probe.ids)
    # openings are the tokens of "the " in sentences that have another one before them in their window
    opening = tokenizer.encode("the ")
    for w in range(6):
        for t in range(40):
            beginnings = [u for u in range(1, t + 1) if probe.sentences[w, u] != probe.sentences[w, u - 1]]
            expected = bool(beginnings) and t - beginnings[-1] < len(opening)
            assert probe.openings[w, t] == expected
            if expected:
                assert probe.ids[w, t] == opening[t - beginnings[-1]]


@pytest.fixture(scope="module")
def probed():
    """A mixture that remembers nothing (no attention output, no experts' output), and a probe that it routed."""
    tokenizer = char_tokenizer()
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, context_length=48, n_layers=2, d_model=16, n_heads=2, n_experts=4,
        positions="rotary", init_std=0.5, zero_init_outputs=True,
    )  # fmt: skip
    return Transformer(config), s.probe(DIALECTS, tokenizer.encode, 48, 12)


def test_an_untrained_router_tells_what_the_token_tells_and_nothing_more(probed):
    model, probe = probed
    tokens, sources = probe.ids.flatten().tolist(), probe.sources.ravel().tolist()
    for layer in s.specialisation(routing_of(model, probe.ids), probe, rounds=20):
        assert layer.bits["beyond"] == layer.bits["remembered"] == pytest.approx(0.0, abs=1e-9)
        assert 0 < layer.bits["total"] < information_by_counting(list(zip(tokens, sources)))
        assert layer.by_chance["total"].p95 > 0


def test_experts_that_follow_the_source_are_found_out(probed):
    """A tap sends every token to its speaker's expert: all is told, at the openings, too."""
    model, probe = probed

    def edit(name, layer, x):
        return torch.tensor(probe.sources[..., None]).expand_as(x) if name == "experts" and layer == 1 else x

    _, told = s.specialisation(routing_of(model, probe.ids, edit=edit), probe, rounds=20)
    total = s.entropy(np.bincount(probe.sources.ravel()))
    assert told.layer == 1 and told.bits["total"] == pytest.approx(total)
    assert told.table.tolist() == np.diag(np.bincount(probe.sources.ravel(), minlength=4)).tolist()
    opens = probe.openings.ravel()
    at = list(zip(probe.ids.numpy().ravel()[opens].tolist(), probe.sources.ravel()[opens].tolist()))
    left = information_by_counting([(source, source) for _, source in at]) - information_by_counting(at)
    assert told.bits["remembered"] == pytest.approx(left)
    assert told.bits["remembered"] > 2 * told.by_chance["remembered"].p95 > 0


def test_over_training_is_the_same_measure_snapshot_by_snapshot(probed):
    model, probe = probed
    rng = torch.Generator().manual_seed(0)
    changed = {n: t + torch.empty_like(t).normal_(0, 0.3, generator=rng) for n, t in model.state_dict().items()}
    snapshots = [(0, model.state_dict()), (5, {name: t.half() for name, t in changed.items()})]
    records = s.specialisation_over_training(model.config, snapshots, probe)
    assert [r["step"] for r in records] == [0, 5]
    other = Transformer(model.config)
    other.load_state_dict({name: t.half().float() for name, t in changed.items()})
    for record, each in zip(records, (model, other)):
        for i, layer in enumerate(s.specialisation(routing_of(each, probe.ids), probe, rounds=0)):
            assert {name: record[name][i] for name in s.MEASURES} == layer.bits and not layer.by_chance
    assert records[1]["beyond"][1] > 0.01


def test_a_language_without_sources_is_refused_in_words():
    with pytest.raises(ValueError, match="no hidden sources"):
        s.probe(LANGUAGES["stories"], lambda text: [0] * len(text), 16, 2)


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
    probe = s.probe(DIALECTS, tokenizer.encode, 64, 6)
    short = s.perfect_reader_bits(exact, probe.ids[:, :16].numpy(), 4)
    long = s.perfect_reader_bits(exact, probe.ids.numpy(), 4)
    assert 0 < short < long < 2


def test_favourites_equal_a_count_over_all_tokens():
    rng = np.random.default_rng(4)
    tokens = rng.integers(0, 9, 600)
    experts = np.stack([rng.integers(0, 4, 600), rng.integers(0, 4, 600)], axis=1)
    experts[tokens == 3, 0] = 2  # expert 2 likes token 3
    found = s.favourites(experts, tokens, 2)
    visits = [(int(t), int(e)) for t, row in zip(tokens, experts) for e in row]
    base = sum(e == 2 for _, e in visits) / len(visits)
    assert found[0].token == 3 and found == sorted(found, key=lambda f: -f.lift)
    for f in found:
        own = [e for t, e in visits if t == f.token]
        assert f.count == len(own) // 2
        assert f.share == pytest.approx(sum(e == 2 for e in own) / len(own))
        assert f.lift == pytest.approx(f.share / base)
    assert s.favourites(experts, tokens, 7) == []
    assert all(f.count >= 90 for f in s.favourites(experts, tokens, 2, least=90))
