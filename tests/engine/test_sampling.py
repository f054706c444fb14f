"""Each sampling rule keeps what it says; tokens spelled one by one make up the text, and stop strings are found."""

import itertools
import math
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.data.byte_pairs import train_bpe
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.engine import SamplingConfig, Spelling, explain, generate
from playground.engine.sampling import draw, keep_min_p, keep_top_k, keep_top_p, penalise, probabilities, streams
from playground.engine.spelling import StopFinder
from playground.model import Transformer
from tests.model.configs import TINY

scores = st.lists(st.floats(-8, 8, width=32), min_size=2, max_size=12).map(lambda xs: torch.tensor([xs]))


def numbers_of(randomness, n: int) -> list[list[float]]:
    """The next n numbers of each stream."""
    return [[stream.next() for _ in range(n)] for stream in randomness]


NO_HISTORY = torch.zeros(1, 0, dtype=torch.long)


@given(scores, st.integers(1, 12))
def test_top_k_keeps_the_k_highest_and_their_equals(x, k):
    kept = torch.isfinite(keep_top_k(x, k))[0]
    edge = sorted(x[0].tolist(), reverse=True)[min(k, x.shape[1]) - 1]
    assert torch.equal(kept, x[0] >= edge)


@given(scores, st.floats(0.01, 1.0))
def test_top_p_keeps_the_smallest_set_that_holds_p(x, p):
    kept = torch.isfinite(keep_top_p(x, p))[0]
    probability = x.softmax(-1)[0]
    total = probability[kept].sum().item()
    assert total >= p - 1e-5
    assert probability[kept].min() >= probability[~kept].max() - 1e-6 if (~kept).any() else True
    if kept.sum() > 1 and p < 1:
        assert total - probability[kept].min().item() < p + 1e-5  # nothing could have been left out


@given(scores, st.floats(0.0, 1.0))
def test_min_p_keeps_what_is_likely_enough(x, p):
    kept = torch.isfinite(keep_min_p(x, p))[0]
    ratio = (x - x.max()).exp()[0]
    assert kept[ratio > p * 1.0001].all() and not kept[ratio < p * 0.9999].any()


@settings(max_examples=80)
@given(
    scores,
    st.builds(
        SamplingConfig,
        temperature=st.floats(0.1, 5),
        top_k=st.none() | st.integers(1, 12),
        top_p=st.floats(0.05, 1),
        min_p=st.floats(0, 1),
        repetition_penalty=st.floats(0.5, 2),
        greedy=st.booleans(),
    ),
)
def test_a_distribution_is_a_distribution_and_the_table_explains_it(x, config):
    history = torch.tensor([[0, 1]])
    result = probabilities(x, history, config)[0]
    assert result.sum().item() == pytest.approx(1.0, abs=1e-5)
    rows = explain(x[0], history[0], config, rows=99)
    assert sum(r.probability for r in rows) == pytest.approx(1.0, abs=1e-5)
    for row in rows:
        assert row.probability == pytest.approx(result[row.token].item())
        assert (row.removed_by is not None) == (row.probability == 0.0) or row.tempered_probability < 1e-30
        assert row.logit == x[0, row.token].item()


def test_rules_do_by_hand_what_they_say_and_equal_scores_are_cut_alike():
    x = torch.randn(1, 9)
    assert torch.allclose(probabilities(x, NO_HISTORY, SamplingConfig()), x.softmax(-1))
    x = torch.tensor([[1.0, 2.0, 4.0]])
    assert torch.allclose(probabilities(x, NO_HISTORY, SamplingConfig(temperature=2.0)), (x / 2).softmax(-1))
    assert SamplingConfig(temperature=0.0).greedy
    assert probabilities(x, NO_HISTORY, SamplingConfig(temperature=0.0)).tolist() == [[0.0, 0.0, 1.0]]
    x = torch.tensor([[2.0, -2.0, 2.0]])
    assert penalise(x, torch.tensor([[0, 1]]), 2.0).tolist() == [[1.0, -4.0, 2.0]]
    x = torch.tensor([[-math.inf, 1.0, -math.inf, 0.0]])
    for penalty in (0.01, 2.0, 100.0):
        config = SamplingConfig(repetition_penalty=penalty)
        result = probabilities(x, torch.tensor([[0, 1, 3]]), config)
        assert result[0, 0] == result[0, 2] == 0 and result.sum().item() == pytest.approx(1.0)
    row = torch.zeros(1, 40)
    alone = keep_top_p(row, 0.5)
    assert torch.isfinite(alone)[0].tolist() == [True] * 20 + [False] * 20
    together = keep_top_p(torch.cat((torch.randn(7, 40), row)), 0.5)
    assert torch.equal(together[-1:], alone)


@pytest.mark.parametrize("rows", [1, 4])
def test_draws_follow_the_distribution_and_repeat_with_the_seed(rows):
    distribution = torch.tensor([[0.5, 0.0, 0.2, 0.3]]).repeat(rows, 1)
    drawn = torch.cat([draw(distribution, numbers) for numbers in zip(*numbers_of(streams(0, rows), 8000 // rows))])
    counts = torch.bincount(drawn, minlength=4) / len(drawn)
    assert counts[1] == 0
    assert torch.allclose(counts, distribution[0], atol=0.03)


def test_a_samples_draws_do_not_depend_on_the_others():
    distribution = torch.full((5, 1000), 0.001)

    def drawn(n):
        return [draw(distribution[:n], numbers).tolist() for numbers in zip(*numbers_of(streams(7, n), 20))]

    alone, among_two, among_five = drawn(1), drawn(2), drawn(5)
    assert [row[:1] for row in among_two] == [row[:1] for row in among_five] == alone
    assert [row[:2] for row in among_five] == among_two
    assert len({tuple(row[i] for row in among_five) for i in range(5)}) == 5
    assert numbers_of(streams(8, 1), 20) != numbers_of(streams(7, 1), 20) == numbers_of(streams(7, 1), 20)
    first, plain = streams(7, 5)[0], torch.Generator().manual_seed(7)
    assert [first.next() for _ in range(70)] == [
        torch.rand(1, generator=plain, dtype=torch.float64).item() for _ in range(70)
    ]


@pytest.mark.parametrize("temperature", [1e-6, 1e-30, 1e-38, 1e-45, 5e-324])
def test_a_temperature_near_nothing_leaves_the_likeliest_and_its_equals(temperature):
    x = torch.tensor([[3.0, -40.0, 3.0, 2.999, -math.inf], [-90.0, -20.0, -30.0, -20.0, -20.001]])
    config = SamplingConfig(temperature=temperature, top_k=4, top_p=0.99, min_p=0.01)
    result = probabilities(x, NO_HISTORY.expand(2, 0), config)
    assert result.tolist() == [[0.5, 0.0, 0.5, 0.0, 0.0], [0.0, 0.5, 0.0, 0.5, 0.0]]
    rows = explain(x[0], NO_HISTORY[0], config)
    assert [row.token for row in rows if row.removed_by is None and row.probability] == [0, 2]
    assert not any(math.isnan(number) for row in rows for number in (row.score, row.tempered_probability))


@pytest.mark.parametrize("rules", [{"top_p": 1e-46}, {"min_p": 5e-324}, {"top_p": 1e-46, "min_p": 1.0, "top_k": 1}])
def test_the_likeliest_token_stays_however_strict_a_rule_is(rules):
    x = torch.tensor([[0.0, 2.0, 1.0, -math.inf]])
    result = probabilities(x, NO_HISTORY, SamplingConfig(**rules))
    assert result.sum().item() == pytest.approx(1.0) and result.argmax() == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"temperature": -1}, "0.*100"),
        ({"top_k": 0}, "top_k.*1"),
        ({"top_p": 0.0}, "top_p.*0"),
        ({"greedy": 1}, "greedy.*1"),
        ({"seed": -1}, "seed must"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
    ],
)
def test_nonsense_is_refused_in_words(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        SamplingConfig(**changes)


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
