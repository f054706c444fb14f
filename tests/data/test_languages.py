"""The exact model of a language is exact: it agrees with brute force, and no guesser can beat it on average."""

import itertools
import math

import numpy as np
import pytest

from playground.data import LANGUAGES, corpus_from_language
from playground.data.languages import ExactModel, Graph
from playground.data.tokenizers import CharTokenizer


def small_graph() -> Graph:
    """Two states; edges share beginnings, so the reader is often unsure where the generator stands."""
    offers = {"x": [(2.0, "ab", "x"), (1.0, "a", "y"), (1.0, "abc", "y")], "y": [(3.0, "ba", "x"), (1.0, "b", "y")]}
    return Graph("x", offers.__getitem__)


def brute_force(graph: Graph, text: str) -> float:
    """P(text) as a window of a long walk: all ways to start inside an edge and to go on, one by one."""
    step = graph.visits[graph.source] * graph.probability
    lengths = np.array([len(t) for t in graph.texts])
    places = step.sum() and (step * lengths).sum()

    def go_on(state: int, rest: str) -> float:
        if not rest:
            return 1.0
        total = 0.0
        for edge in range(graph.first_edge[state], graph.first_edge[state + 1]):
            written = graph.texts[edge]
            if rest.startswith(written) or written.startswith(rest):
                total += graph.probability[edge] * go_on(graph.target[edge], rest[len(written) :])
        return total

    total = 0.0
    for edge, written in enumerate(graph.texts):
        for offset in range(len(written)):
            tail = written[offset:]
            if text.startswith(tail) or tail.startswith(text):
                total += step[edge] / places * go_on(graph.target[edge], text[len(tail) :])
    return total


def test_the_forward_algorithm_agrees_with_enumerating_all_ways():
    graph = small_graph()
    tokenizer = CharTokenizer("abc")
    exact = ExactModel(graph, tokenizer.encode, tokenizer.vocab_size)
    for length in (1, 2, 3, 5):
        total = 0.0
        for letters in itertools.product("abc", repeat=length):
            text = "".join(letters)
            probability, belief = 1.0, exact.anywhere
            for token in tokenizer.encode(text):
                here, belief = exact.read(belief, token)
                probability *= here
                if here == 0.0:
                    break
            assert probability == pytest.approx(brute_force(graph, text), abs=1e-9)
            total += probability
        assert total == pytest.approx(1.0, abs=1e-9)
    graph, tokenizer = small_graph(), CharTokenizer("abc")
    exact = ExactModel(graph, tokenizer.encode, tokenizer.vocab_size)
    for shared in (0, 2, 9):  # however many first beliefs are shared
        losses = exact.losses(np.array([tokenizer.encode("abbaab")]), shared_prefix=shared)
        expected = [
            -math.log(brute_force(graph, "abbaab"[: i + 1]) / brute_force(graph, "abbaab"[:i])) for i in range(1, 6)
        ]
        assert losses[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("unit", ["char", "word"])
def test_every_language_is_possible_under_its_own_exact_model(name, unit):
    corpus = corpus_from_language(name, n_characters=20_000, n_validation=4_000, unit=unit)
    exact = corpus.exact_model()
    inputs, targets = corpus.windows("val", 32, 20)
    losses = exact.losses(np.concatenate((inputs, targets[:, -1:]), axis=1)[:-1])
    assert np.isfinite(losses).all()
    belief = exact.anywhere
    for token in corpus.val[:30].tolist():
        following = exact.next_token(belief)
        assert following.sum() == pytest.approx(1.0)
        probability, belief = exact.read(belief, token)
        assert probability == pytest.approx(following[token])
        assert belief.weights.sum() == pytest.approx(1.0)
    baselines = corpus.baselines(32, 40)
    assert baselines.uniform >= baselines.unigram >= baselines.bigram >= baselines.floor > 0


@pytest.mark.parametrize("name", LANGUAGES)
def test_visits_are_those_of_a_long_walk(name):
    graph = LANGUAGES[name].graph
    moved = np.bincount(graph.target, graph.visits[graph.source] * graph.probability, minlength=len(graph.states))
    assert np.abs(moved - graph.visits).max() < 1e-9
    assert graph.visits.sum() == pytest.approx(1.0)


def test_samples_repeat_with_their_seed_and_their_rate_is_the_floor():
    language = LANGUAGES["dialects"]
    assert language.sample(5_000, seed=3) == language.sample(5_000, seed=3) != language.sample(5_000, seed=4)
    # Addition: entropy per line is ln 10,000, so far into a window the floor is that over the mean line length.
    corpus = corpus_from_language("addition", n_characters=20_000, n_validation=60_000)
    exact = corpus.exact_model()
    inputs, targets = corpus.windows("val", 64)
    losses = exact.losses(np.concatenate((inputs, targets[:, -1:]), axis=1)[:-1])
    mean_line = np.mean([len(f"{a}+{b}={a + b}\n") for a in range(100) for b in range(100)])
    assert losses[:, 20:].mean() == pytest.approx(math.log(10_000) / mean_line, rel=0.01)


def copied(line: str) -> bool:
    first, second = line.split(" ")
    return first == second and set(first) <= set("abcdefgh")


def matched(line: str) -> bool:
    while any(pair in line for pair in ("()", "[]", "{}")):
        line = line.replace("()", "").replace("[]", "").replace("{}", "")
    return not line


def summed(line: str) -> bool:
    terms, total = line.split("=")
    return sum(map(int, terms.split("+"))) == int(total)


@pytest.mark.parametrize(("name", "law"), [("copy", copied), ("brackets", matched), ("addition", summed)])
def test_each_line_obeys_the_law_of_its_language(name, law):
    lines = LANGUAGES[name].sample(5_000, seed=0).split("\n")[:-1]  # the last may be cut short
    assert len(lines) > 100 and all(map(law, lines))
