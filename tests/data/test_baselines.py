"""Baselines agree with counting by hand, and a loss passes what it clearly beats."""

import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import playground
from playground.data import IGNORE, LANGUAGES, Baselines, corpus_from_language, corpus_from_sentences, corpus_from_text
from playground.data.ngrams import count_ngrams, tune_strengths

TEXT = "a rose is a rose is a rose, said the rose to the other rose. " * 30


def windows_of(corpus, context):
    return tuple(tensor.numpy() for tensor in corpus.windows("val", context))


def test_guessers_agree_with_counting_by_hand():
    corpus = corpus_from_text(TEXT + "zebra quiz! " * 20)
    inputs, targets = windows_of(corpus, 12)
    train, V = corpus.train.tolist(), corpus.vocab_size
    ones, twos, threes = Counter(train), Counter(pairwise(train)), Counter(zip(train, train[1:], train[2:]))
    before, before_two = Counter(train[:-1]), Counter(pairwise(train[:-1]))
    unigram = [(ones[t] + 1) / (len(train) + V) for t in range(V)]

    def bigram(a, b):
        return (twos[a, b] + 2.0 * unigram[b]) / (before[a] + 2.0)

    def trigram(a, b, c):
        return (threes[a, b, c] + 0.5 * bigram(b, c)) / (before_two[a, b] + 0.5)

    guesser = count_ngrams(corpus.train.numpy(), V, [2.0, 0.5])
    for n in (1, 2, 3):
        losses = guesser.shorter(n).losses(inputs, targets)
        for x, y, row in zip(inputs.tolist(), targets.tolist(), losses.tolist()):
            for t, (wanted, loss) in enumerate(zip(y, row)):
                if wanted == IGNORE:
                    assert loss == 0.0
                elif n == 3 and t:
                    assert loss == pytest.approx(-math.log(trigram(x[t - 1], x[t], wanted)))
                else:
                    assert loss == pytest.approx(-math.log(unigram[wanted] if n == 1 else bigram(x[t], wanted)))
    everything = guesser.losses(np.array([[train[0], train[1]]] * V), np.stack([np.full(V, -1), np.arange(V)], axis=1))
    assert np.exp(-everything[:, 1]).sum() == pytest.approx(1.0)
    assert guesser.next_token([0, *train[:2]]) == pytest.approx(np.exp(-everything[:, 1]))
    assert guesser.next_token([V - 1, V - 1]) == pytest.approx(guesser.shorter(2).next_token([V - 1]))
    assert guesser.next_token([]) == pytest.approx(unigram)


def test_how_far_to_look_back_is_not_chosen_on_the_judging_text_and_a_bigram_loses_to_no_frequencies():
    corpus = corpus_from_language("copy", n_characters=30_000, n_validation=4_000)
    strengths = tune_strengths(corpus.train.numpy(), corpus.vocab_size)
    assert corpus.baselines(32).order == 1 + len(strengths) >= 3
    noise = np.random.default_rng(1).integers(0, 9, 40_000)
    assert len(tune_strengths(noise, 9)) == 1  # nothing to gain from looking back
    # With a fixed weight for the shorter context it did: on words most contexts were seen once.
    words = [f"w{int(i)}" for i in np.random.default_rng(0).zipf(1.3, 30_000) if i < 3000]
    baselines = corpus_from_text(" ".join(words), "word").baselines(32, 60)
    assert baselines.bigram <= baselines.unigram + 0.01


@pytest.mark.parametrize("n", [1, 2, 3])
def test_guessers_write_as_they_guess(n):
    train = corpus_from_language("stories", n_characters=60_000, n_validation=2_000).train.numpy()
    V = train.max() + 1
    guesser = count_ngrams(train, V, [0.1, 0.1]).shorter(n)
    written = np.array(guesser.write(6000, seed=3))
    assert written.tolist() == guesser.write(6000, seed=3) != guesser.write(6000, seed=4)
    # what it wrote is as surprising to itself as its own probabilities are on average, wherever it may stand
    surprise = guesser.losses(written[None, :-1], written[None, 1:])[0]
    every = np.tile(np.arange(V), (400, 1))
    expected = []
    for at, options in zip(range(200, 600), every):
        back = written[at - 5 : at]
        rows = np.stack([np.append(back[1:], t) for t in options])
        losses = guesser.losses(np.tile(back, (V, 1)), rows)[:, -1]
        expected.append((np.exp(-losses) * losses).sum())
    assert surprise.mean() == pytest.approx(np.mean(expected), abs=4 * surprise.std() / 20)
    assert 5 not in guesser.write(500, seed=1, without=(5,))


def test_every_rung_has_a_text_and_its_loss_in_bits_compares_across_tokenizers():
    corpus = corpus_from_language("stories", n_characters=60_000, n_validation=4_000)
    baselines = corpus.baselines(48, 40)
    assert [name for name, _ in baselines.losses()] == ["uniform", "unigram", "bigram", "5-gram", "floor"]
    assert list(baselines.texts) == [name for name, _ in baselines.losses()] and len(set(baselines.texts.values())) == 5
    assert all(len(text) == 160 and "�" not in text for text in baselines.texts.values())
    assert baselines.at_best["uniform"] == pytest.approx(math.log(40)) and baselines.uniform == pytest.approx(
        math.log(41)
    )
    sentences = corpus_from_sentences().baselines(16)
    assert all(sentences.texts.values()) and sentences.unit == "word"
    baselines = Baselines(4.0, 3.0, 2.0, unit="word", characters_per_token=5.0)
    assert baselines.bits_per_character(5 * math.log(2)) == pytest.approx(1.0)
    words, letters = (
        corpus_from_language("stories", n_characters=40_000, n_validation=8_000, unit=u) for u in ("word", "char")
    )
    by_word, by_letter = words.baselines(64), letters.baselines(300)
    assert letters.baselines(64).characters_per_token == 1.0 and 3 < by_word.characters_per_token < 5
    # one language has one entropy, however it is cut; windows that begin in the middle cost each a little more
    rates = [baselines.bits_per_character(baselines.floor) for baselines in (by_word, by_letter)]
    assert rates[0] == pytest.approx(rates[1], rel=0.25)


def test_a_loss_passes_what_it_clearly_beats_and_has_learned_from_the_bigram_to_the_floor():
    baselines = Baselines(uniform=4.0, unigram=3.0, bigram=2.0, floor=1.0, ngram=1.5, order=4, unit="character")
    for loss, name in ((4.1, None), (3.5, "uniform"), (2.5, "unigram"), (1.7, "bigram"), (1.04, "4-gram")):
        assert baselines.passed(loss) == name
    for close in (1.505, 1.5, 1.495):
        assert baselines.passed(close) == "bigram"
    baselines = Baselines(uniform=4.0, unigram=2.0, bigram=2.2)
    assert baselines.passed(2.1) == "uniform" and baselines.passed(1.9) == "unigram"  # which may know no pairs
    assert (baselines.ahead(4.1), baselines.ahead(2.1), baselines.ahead(1.9)) == ("uniform", "unigram", None)
    assert (baselines.unsure(1.995), baselines.unsure(1.9), baselines.unsure(2.1)) == ("unigram", None, None)
    assert baselines.passed(1.995) == "uniform"  # a hundredth of a nat may be a matter of smoothing


def test_few_tokens_tell_little_and_who_only_knows_what_occurs_has_passed_nothing():
    """“Worse than guessing all characters alike (3.3673)” was said of 3.4201 on 29 characters."""
    few, many = (corpus_from_text((TEXT + "then it stood apart in the rain. ")[-n:]).baselines(16) for n in (300, 1800))
    assert few.tokens == 29 and many.tokens == 179 and few.clearly("uniform") > 2 * many.clearly("uniform")
    for loss in (few.uniform + 0.05, few.uniform - 0.2):
        assert few.passed(loss) is None
    words = corpus_from_sentences().baselines(16)
    assert words.passed(words.bigram - 0.17) == "uniform" and words.passed(words.bigram - 1) == "bigram"
    # of two hundred short texts by one who knows no more than the frequencies, few are said to show that he does
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(200):
        drawn = rng.choice(6, 300, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
        baselines = corpus_from_text("".join("abcdef"[i] for i in drawn)).baselines(8)
        known = -np.log(np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1]))[drawn[271:]].mean()
        wrong += baselines.passed(float(known)) not in (None, "uniform")
    assert wrong <= 10
    assert Baselines.from_dict(few.to_dict()) == few
    for false in ({"tokens": -1}, {"tokens": True}, {"chance": {"uniform": -0.1}}, {"chance": {"7-gram": 0.1}}):
        with pytest.raises(ValueError, match="baselines"):
            Baselines.from_dict(few.to_dict() | false)
    # “so it knows that some characters come more often” was said of ten digits that come alike: an eleventh token, for
    # what is unknown, never comes.
    digits = torch.randperm(20_000, generator=torch.Generator().manual_seed(0)) % 10
    baselines = corpus_from_text("".join(map(str, digits.tolist()))).baselines(32)
    assert baselines.uniform == pytest.approx(math.log(11)) and baselines.at_best["uniform"] == pytest.approx(
        math.log(10)
    )
    assert baselines.passed(2.3143) is None and baselines.passed(2.1) == "bigram"


@pytest.mark.parametrize(("kind", "length"), [("word", 600), ("word", 2000), ("bpe", 2000), ("char", 1000)])
def test_who_goes_by_frequencies_alone_is_not_said_to_use_more(kind, length):
    """Smoothing that happens to suit a short text passes a rung without knowing what the rung does not."""
    text = (Path(playground.__file__).parent / "data/texts/lighthouse.txt").read_text(encoding="utf-8")
    corpus = corpus_from_text(text[:length], kind)
    context = max((len(corpus.val) - 1) // 8 * 8, 8)
    baselines, (_, targets) = corpus.baselines(context), corpus.windows("val", context)
    counts, judged = np.bincount(corpus.train.numpy(), minlength=corpus.vocab_size), targets[targets >= 0].numpy()
    smoothed = [(counts + a) / (counts + a).sum() for a in (0.1, 0.3, 1, 3, 10, 100)]
    best = min(float(-np.log(each[judged]).mean()) for each in smoothed)
    assert baselines.passed(best) in (None, "uniform"), baselines.losses()


def test_ladders_come_back_from_records_and_false_ones_are_refused():
    baselines = Baselines(4.0, 3.0, 2.0, 1.0, 1.5, 4, "word", 5.0, {"4-gram": "a text", "floor": "another"})
    assert Baselines.from_dict(baselines.to_dict()) == baselines
    assert Baselines.from_dict({"uniform": 4.0, "unigram": 3.0, "bigram": 2.0, "floor": None}) == Baselines(
        4.0, 3.0, 2.0
    )
    fine = baselines.to_dict()
    for changed in (
        {"uniform": "x"}, {"bigram": math.nan}, {"bigram": True}, {"floor": 5.0}, {"unit": "<b>"}, {"order": 10**9},
        {"characters_per_token": 0.0}, {"texts": {"5-gram": "x"}}, {"texts": {"floor": 3}}, {"texts": None}, {"x": 1},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="baselines"):
            Baselines.from_dict(fine | changed)


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("unit", ["char", "word"])
def test_every_target_has_a_rule_and_the_floor_is_the_languages_own_loss(name, unit):
    corpus = corpus_from_language(name, n_characters=20_000, n_validation=3_000, unit=unit)
    windows = corpus.windows("val", 24, 40)
    kinds, counted = corpus.kinds(*windows), windows[1].numpy() >= 0
    assert ((kinds.part >= 0) == counted).all()
    assert kinds.unavoidable[counted].mean() == pytest.approx(corpus.baselines(24, 40).floor)


def test_a_text_without_a_grammar_has_no_rules():
    for corpus in (corpus_from_text("the cat sat on the mat. " * 40), corpus_from_sentences()):
        assert corpus.kinds(*corpus.windows("val", 16)) is None
