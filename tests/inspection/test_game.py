"""The game's numbers: bets are fair and finite, nobody knows more than is shown, perfect is the floor."""

import math

import numpy as np
import pytest
import torch

from playground.data import corpus_from_language, corpus_from_sentences, corpus_from_text
from playground.data.sentences import HELD_OUT
from playground.inspection.game import (
    BIGRAM,
    CHIPS,
    FLOOR,
    MODEL,
    ROUNDS,
    SPREAD,
    YOU,
    Game,
    Passage,
    exact_bets,
    model_bets,
    passage,
    single,
    spread,
    trust,
)
from playground.model import Transformer
from tests.model.configs import TINY

TEXT = "the cat sat on the mat.\nthe dog sat on the cat.\n" * 40
CORPORA = {
    "char": corpus_from_text(TEXT),
    "word": corpus_from_text(TEXT, "word"),
    "short": corpus_from_text("abc " * 20),
    "documents": corpus_from_sentences(),
    "language": corpus_from_language("stories", n_characters=4000, n_validation=2000),
}
HELD_OUT_TEXTS = [sentence.replace(" .", ".") for sentence in HELD_OUT]


def test_every_bet_is_a_distribution_that_fears_nothing():
    for V in (2, 7, 4000):
        for bet in (
            spread({}, V),
            spread({0: 1, 1: 98}, V),
            spread({1: CHIPS - SPREAD}, V),
            single(1, trust(0, 40), V),
        ):
            assert bet.sum() == pytest.approx(1.0) and bet.min() > 0
    assert spread({3: 60}, 10)[[3, 4]] == pytest.approx([0.64, 0.04])
    # whoever is right k times of n pays no more for the choices than had he known k / n, and half a log n + 1 bits
    for n, k in ((1, 0), (10, 7), (40, 40), (40, 3)):
        right = paid = 0
        for i in range(n):
            p = trust(right, i)
            came = i < k
            paid -= math.log2(p if came else 1 - p)
            right += came
        least = sum(-m * math.log2(m / n) for m in (k, n - k) if m)
        assert paid <= least + 0.5 * math.log2(n) + 1 + 1e-9


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("context", [1, 16, 128])
def test_a_passage_is_unseen_text_of_which_a_bet_knows_what_stands_before(name, context):
    corpus = CORPORA[name]
    for seed in range(5):
        found = passage(corpus, context, seed)
        assert found == passage(corpus, context, seed) and 1 <= len(found.places) <= ROUNDS
        for start, place in found.places:
            assert 0 <= start < place < len(found.ids) and place - start <= context
        places = [place for _, place in found.places]
        assert places == sorted(set(places)) and places[-1] == len(found.ids) - 1
        text = corpus.tokenizer.decode(found.ids)
        if name == "language":
            assert text in corpus.language.sample(2000, seed=2 * seed + 1)
        elif name == "documents":
            ends = [*found.document_starts[1:], len(found.ids)]
            pieces = [corpus.tokenizer.decode(found.ids[a:b]) for a, b in zip(found.document_starts, ends)]
            assert sorted(pieces) == sorted(HELD_OUT_TEXTS)
            assert all(start >= max(b for b in found.document_starts if b < place) for start, place in found.places)
        else:
            assert text in corpus.tokenizer.decode(corpus.val.tolist())


@pytest.mark.parametrize("unit", ["char", "word"])
def test_perfect_is_the_floor_and_nobody_beats_it_in_the_long_run(unit):
    corpus = corpus_from_language("addition", n_characters=40_000, n_validation=3000, unit=unit)
    exact, bigram = corpus.exact_model(), corpus._guesser().shorter(2)
    paid = {BIGRAM: 0.0, FLOOR: 0.0}
    for seed in range(3):
        text = passage(corpus, 64, seed)
        for n, (_, place) in enumerate(text.places):
            window, token = text.window(n), text.ids[place]
            bets = exact_bets(exact, window)
            assert np.exp2(bets).sum() == pytest.approx(1.0)
            whole = np.array([[*window, token]])
            assert -bets[token] * math.log(2) == pytest.approx(exact.losses(whole)[0, -1])
            paid[FLOOR] -= bets[token]
            paid[BIGRAM] -= math.log2(bigram.next_token(window)[token])
    assert paid[FLOOR] < paid[BIGRAM]


def test_the_model_bets_its_softmax_on_the_processor_in_float32():
    model, known = Transformer(TINY, seed=1), [1, 2, 3]
    wanted = model(torch.tensor([known])).logits[0, -1].softmax(0).detach().numpy()
    assert np.exp2(model_bets(model, known)) == pytest.approx(wanted, rel=1e-4)
    with torch.no_grad():
        model.head.weight.fill_(math.nan)
    with pytest.raises(ValueError, match="not numbers"):
        model_bets(model, known)


def played(you: list[float], model: list[float]) -> Game:
    """A game in which the two paid so many bits."""
    n = len(you)
    game = Game(Passage(tuple([0] * (n + 1)), tuple((0, i + 1) for i in range(n))), 4)
    for mine, its in zip(you, model):
        rest = np.log2((1 - 2.0**-its) / 3)
        game.settle(np.array([2.0**-mine, *[(1 - 2.0**-mine) / 3] * 3]), {MODEL: np.array([-its, rest, rest, rest])}, 1)
    return game


def test_the_visitor_is_compared_by_differences_on_the_same_tokens():
    rng = np.random.default_rng(0)
    you, model = rng.uniform(0.5, 4, 12), rng.uniform(0.5, 4, 12)
    game = played(you.tolist(), model.tolist())
    differences = you - model
    gap, margin = game.behind(MODEL)
    assert gap == pytest.approx(differences.mean())
    assert margin == pytest.approx(2.200985 * differences.std(ddof=1) / math.sqrt(12), rel=1e-5)  # t at 11 degrees
    assert game.bits(YOU) == pytest.approx(you) and game.trust == trust(0, 12)
    assert game.over and game.forgotten == 0
    game.passage = Passage(game.passage.ids, tuple((max(i - 7, 0), i + 1) for i in range(12)))
    assert game.forgotten == 8, "a window of eight tokens does not reach back to the beginning"
