"""Chance: routers that know nothing stay below it as often as it says, however long they keep to an expert."""

import math

import numpy as np
import pytest

from benchmarks.chance import LOOK_AT_TOKENS, rates
from playground.data import LANGUAGES
from playground.data.tokenizers import WordTokenizer
from playground.inspection import chance as s
from playground.inspection.probe import probe

DIALECTS = LANGUAGES["dialects"]


@pytest.fixture(scope="module")
def text():
    """Tokens, sources and sentences (N,) of a text of Dialects in words."""
    made = probe(DIALECTS, WordTokenizer.from_text("".join(DIALECTS.graph.texts)).encode, 32, 24)
    return made.ids.flatten().numpy(), made.sources.ravel(), made.sentences.ravel()


def labels_of(sources, sentences):
    return [int(sources[sentences == number][0]) for number in range(sentences[-1] + 1)]


def test_a_shift_turns_the_sentences_sources_as_on_a_ring(text):
    _, sources, sentences = text
    labels = labels_of(sources, sentences)
    shifted = s.shifted_sources(sources, sentences, shifts=30)
    turned = {tuple(labels[(number + by) % len(labels)] for number in sentences): by for by in range(len(labels))}
    by = [turned[tuple(one.tolist())] for one in shifted]
    assert len(set(by)) == 30 and all(len(labels) // 20 <= n <= len(labels) - len(labels) // 20 for n in by)


@pytest.mark.parametrize("near", [0, 8])
def test_beyond_the_token_sources_come_from_the_nearest_sentence_with_the_same_token(text, near, monkeypatch):
    monkeypatch.setattr(s, "NEAR", near)
    tokens, _, sentences = text
    M = sentences[-1] + 1
    # sentences as their own sources show which one each token was given
    donors, plain = (s.shifted_sources(sentences, sentences, given, shifts=7) for given in (tokens, None))
    shared = []
    has = {token: set(sentences[tokens == token].tolist()) for token in set(tokens.tolist())}
    for given, wanted in zip(donors.tolist(), plain.tolist()):
        lent: dict[tuple[int, int], set[int]] = {}
        for token, donor, place, own in zip(tokens.tolist(), given, wanted, sentences.tolist()):
            away = {other: min((other - place) % M, (place - other) % M) for other in has[token]}
            assert donor in has[token] and away[donor] <= max(min(away.values()), near)
            if away.get(place) == 0:
                assert donor == place, "where the shifted sentence has the token itself, it is the one"
            lent.setdefault((token, donor), set()).add((own, away[donor]))
        shared.append(sum(len(borrowers) - 1 for borrowers in lent.values()) / len(lent))
    assert np.mean(shared) < 0.25 if near else np.mean(shared) > 0.3, "few share a donor where they can take turns"


def test_beyond_the_token_the_shifted_speaker_lends_as_long_as_that_speaker_has_the_token_too(text):
    tokens, sources, sentences = text
    once = np.unique(np.stack([tokens, sentences]), axis=1, return_index=True)[1]  # a token twice in a sentence is one
    plain, given = (s.shifted_sources(sources, sentences, only, shifts=7)[:, once] for only in (None, tokens))
    found = []
    for wanted, lent in zip(plain, given):
        for token in np.unique(tokens):
            here = tokens[once] == token
            for speaker in np.unique(sources):
                asked, owned = (wanted[here] == speaker).sum(), (sources[once][here] == speaker).sum()
                found.append(((lent[here] == speaker) & (wanted[here] == speaker)).sum() >= min(asked, owned))
            assert set(lent[here]) <= set(sources[once][here]), "nobody says what that speaker never says"
    assert all(found) and len(found) > 500


def test_a_chance_is_a_share_of_shifts_and_of_the_best_layer():
    by_shift = np.array([[i / 100, 0.505 if i % 2 else 0.0] for i in range(1, 100)])  # (99 shifts, 2 layers)
    first, second = s.chance([0.985, 0.01], by_shift)
    largest = np.sort(by_shift.max(axis=1))
    assert first.p95 == second.p95 == largest[-5] and first.mean == pytest.approx(largest.mean())
    assert first.p == (1 + (largest >= 0.985).sum()) / 100 and second.p == 1.0
    at = s.chance([largest[-5] + 1e-6, largest[-5]], by_shift)
    assert at[0].p <= 0.05 < at[1].p, "above the 95th percentile is the same as a p of 5 % or less"
    assert s.chance([9.0], np.zeros((18, 1)))[0] == s.Chance(pytest.approx(math.nan, nan_ok=True), math.inf, 1.0)


def test_a_text_of_one_sentence_or_none_tells_nothing():
    for n in (0, 1, 3):
        assert s.shifted_sources(np.zeros(n, int), np.zeros(n, int), np.zeros(n, int)).shape == (0, n)


def test_routers_that_know_nothing_exceed_the_95th_percentile_once_in_twenty():
    """Of every persistence, in every measure, one layer and the best of four; `benchmarks chance` tries many more."""
    texts, draws = 8, 16
    found = rates("word", texts, draws, shifts=39, tokens=2048)
    for title in next(iter(found.values())):
        shares = [each[title] for name, each in found.items()
                  if name not in LOOK_AT_TOKENS or not title.startswith("total")]  # fmt: skip
        assert 0.02 < np.mean(shares) < 0.09, title
        if "best" not in title:
            assert max(shares) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / (texts * draws)), title
