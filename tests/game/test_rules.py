"""The game's numbers: bets are fair and finite, nobody knows more than is shown, perfect is the floor."""

import math

import numpy as np
import pytest
import torch

from playground.data import corpus_from_language, corpus_from_sentences, corpus_from_text
from playground.data.sentences import HELD_OUT
from playground.game.rules import (
    BIGRAM,
    FLOOR,
    MODEL,
    OPEN,
    POINTS,
    ROUNDS,
    SURE,
    YOU,
    Game,
    Passage,
    exact_bets,
    exact_most,
    model_bets,
    model_most,
    passage,
    points,
    single,
    stakes,
    with_choices,
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


def test_bets_are_distributions_and_points_are_bits():
    for V in (2, 7, 4000):
        for share in SURE.values():
            bet = single(1, share, V)
            assert bet.sum() == pytest.approx(1.0) and bet.min() > 0
    assert points([0, math.log2(40)], 40).tolist() == [POINTS, 0]
    for right, wrong in stakes(40).values():
        assert wrong < 0 < right <= POINTS
    rights, wrongs = zip(*(stakes(40)[name] for name in ("guess", "think", "sure")))
    assert list(rights) == sorted(rights) and list(wrongs) == sorted(wrongs, reverse=True), (
        "who risks more may earn more"
    )
    rng = np.random.default_rng(0)
    you, model = rng.uniform(0.5, 4, 12), rng.uniform(0.5, 4, 12)
    game = played(you.tolist(), model.tolist())
    assert game.bits(YOU) == pytest.approx(you) and game.over
    assert game.points(YOU) == pytest.approx(POINTS * (1 - you / 2), abs=0.5), "of four tokens"


def test_a_game_starts_at_a_real_choice_where_there_is_one_and_half_of_its_bets_are_real():
    corpus = CORPORA["language"]
    exact = corpus.exact_model()
    for seed in range(3):
        whole = passage(corpus, 128, seed)
        most = [exact_most(exact, whole.ids)[place] for _, place in whole.places]
        played = with_choices(whole, most)
        real = [most[whole.places.index(place)] <= OPEN for place in played.places]
        assert len(real) == ROUNDS and real[0] and sum(real) >= ROUNDS / 2
        assert played.ids == whole.ids[: len(played.ids)] and list(played.places) == sorted(played.places)
    text = Passage(tuple(range(6)), tuple((0, i) for i in range(2, 6)))
    assert with_choices(text, [1.0] * 4).places == text.places
    assert with_choices(text, [1.0, 1.0, 0.5, 1.0]).places[0] == (0, 4)


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("context", [1, 16, 128])
def test_a_passage_is_unseen_text_of_which_a_bet_knows_what_stands_before(name, context):
    corpus = CORPORA[name]
    for seed in range(5):
        found = passage(corpus, context, seed)
        assert found == passage(corpus, context, seed) and found.places
        for start, place in found.places:
            assert 0 <= start < place < len(found.ids) and place - start <= context
        places = [place for _, place in found.places]
        assert places == sorted(set(places)) and places[-1] == len(found.ids) - 1
        text = corpus.tokenizer.decode(found.ids)
        if name == "language":
            assert text in corpus.language.sample(3500, seed=2 * seed + 1)
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


def test_the_model_bets_its_softmax_and_is_asked_once_for_many_places():
    model = Transformer(TINY, seed=1).eval()
    context, V = TINY.context_length, TINY.vocab_size
    ids = np.random.default_rng(0).integers(0, V, context).tolist()
    most = model_most(model, ids)
    assert most[1:] == pytest.approx([np.exp2(model_bets(model, ids[:i])).max() for i in range(1, context)], rel=1e-4)
    longer = model_most(model, ids * 3)
    assert len(longer) == 3 * context and longer[: context // 2] == pytest.approx(most[: context // 2], rel=1e-4)
    model, known = Transformer(TINY, seed=1), [1, 2, 3]
    wanted = model(torch.tensor([known])).logits[0, -1].softmax(0).detach().numpy()
    assert np.exp2(model_bets(model, known)) == pytest.approx(wanted, rel=1e-4)
    with torch.no_grad():
        model.head.weight.fill_(math.nan)
    with pytest.raises(ValueError, match="not numbers"):
        model_bets(model, known)


def played(you: list[float], model: list[float], bigram: float = 1.5) -> Game:
    """A game in which the players paid so many bits."""
    n = len(you)
    game = Game(Passage(tuple([0] * (n + 1)), tuple((0, i + 1) for i in range(n))), 4)

    def bets(bits: float) -> np.ndarray:
        return np.array([-bits, *[np.log2((1 - 2.0**-bits) / 3)] * 3])

    for mine, its in zip(you, model):
        game.settle(0, 2.0**-mine, {BIGRAM: bets(bigram), MODEL: bets(its)})
    return game


@pytest.mark.parametrize("V", [2, 27, 40, 4000])
def test_a_bet_gives_the_points_that_its_button_says(V):
    for name, said in stakes(V).items():
        for chosen, promised in zip((1, 0), said):
            game = Game(Passage((0, 1), ((0, 1),)), V)
            game.settle(chosen, SURE[name], {})
            assert game.points(YOU).tolist() == [promised]
