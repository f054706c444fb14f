"""The excess adds up to the loss less the floor, and names the rule that a model has not learned."""

from collections import Counter

import numpy as np
import pytest

from playground.data import LANGUAGES, corpus_from_language, corpus_from_sentences, corpus_from_text
from playground.data.excess_loss import (
    BETWEEN,
    CUT,
    DIVIDED,
    EDGE,
    FIRST,
    MOSTLY,
    NOTHING,
    SPREAD,
    UNCLEAR,
    UNSEEN,
    Partition,
    excess_loss,
    is_excess,
    partitions_of_text,
)
from playground.data.languages.grammar import SPELLING
from playground.data.languages.made import addition, copy, stories


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("unit", ["char", "word"])
def test_the_parts_add_up_to_what_is_above_the_floor(name, unit):
    corpus = corpus_from_language(name, n_characters=20_000, n_validation=3_000, unit=unit)
    baselines, (partition,) = corpus.baselines(24, 40), corpus.partitions(24, 40)
    _, targets = corpus.windows("val", 24, 40)
    assert ((partition.part >= 0) == (targets.numpy() >= 0)).all()
    losses = np.random.default_rng(0).random(partition.part.shape) + 1.0
    found = excess_loss(losses, partition)
    counted = partition.part >= 0
    assert found.nats == pytest.approx(losses[counted].mean() - baselines.floor)
    assert sum(part.nats for part in found.parts) == pytest.approx(found.nats)
    assert sum(part.share_of_tokens for part in found.parts) == pytest.approx(1.0)
    perfect = excess_loss(partition.unavoidable, partition)
    assert perfect.nats == pytest.approx(0.0) and perfect.kind() == (NOTHING, ())


def test_a_character_has_the_kind_of_the_rule_that_decides_it():
    for name, wanted in (
        ("addition", {"+": "ends of words or numbers", "=": "ends of words or numbers"}),
        ("copy", {" ": "free choices", "\n": copy.COPIED}),
        ("brackets", {")": "closing brackets", "(": "free choices"}),
    ):
        corpus = corpus_from_language(name, n_characters=3_000, n_validation=2_000)
        (partition,) = corpus.partitions(24)
        _, targets = corpus.windows("val", 24)
        for character, kind in wanted.items():
            there = targets.numpy()[:, 12:] == corpus.tokenizer.encode(character)[0]
            assert {partition.names[k] for k in partition.part[:, 12:][there]} == {kind}


@pytest.mark.parametrize(
    ("name", "kind"),
    [("stories", stories.OWNER), ("stories", stories.PRONOUN), ("stories", SPELLING), ("addition", addition.DIGITS[1])],
)
def test_the_rule_that_a_model_lacks_is_the_one_that_is_named(name, kind):
    corpus = corpus_from_language(name, n_characters=20_000, n_validation=6_000)
    (partition,) = corpus.partitions(64)
    noise = np.random.default_rng(1).normal(0.0, 0.02, partition.part.shape)
    lacks = partition.part == partition.names.index(kind)
    found = excess_loss(partition.unavoidable + noise + 1.5 * lacks, partition)
    said, parts = found.kind()
    assert said == MOSTLY and [part.name for part in parts] == [kind]


def made_up(parts, n=60, tokens=30, spread=0.0):
    """Windows whose targets belong to parts in turn, each losing so much, give or take."""
    names = tuple(parts)
    which = np.tile(np.arange(tokens) % len(names), (n, 1))
    partition = Partition(names, which, np.zeros((n, tokens)))
    rng = np.random.default_rng(0)
    return excess_loss(np.array(list(parts.values()))[which] + rng.normal(0, spread, which.shape), partition)


def test_what_is_said_is_no_surer_than_the_numbers():
    assert shown({"a": 0.8, "b": 0.1, "c": 0.1}) == (MOSTLY, "a")
    assert shown({"a": 0.9, "b": 0.89, "c": 0.1}, spread=0.5)[1] in ("ab", "ba")  # which is larger cannot be told
    assert shown({letter: 1.0 for letter in "abcdefghij"})[0] == SPREAD
    assert shown({"a": 0.02, "b": 0.0}, n=4, spread=2.0) == (UNCLEAR, "")
    assert shown({"a": 0.002, "b": 0.0}, n=60, spread=0.2) == (NOTHING, "")
    assert excess_loss(np.zeros((1, 3)), Partition((), np.full((1, 3), -1))).kind() == (UNCLEAR, ())
    whole = Partition(("a", "b"), np.arange(12).reshape(2, 6) % 2)
    assert excess_loss(np.zeros((2, 6)), whole).kind() == (NOTHING, ())  # of a text of one letter


def shown(parts, **about):
    kind, named = made_up(parts, **about).kind()
    return kind, "".join(part.name for part in named)


def test_most_is_said_of_what_carries_more_than_its_share_and_less_than_all():
    """“what is left is mostly *copied letters* (63 %) and *free choices* (37 %)” named all there is, and “most of its
    loss is at … and *what stands between words* (2 % on 21 % of the words)” where it is not."""
    which = np.tile(np.arange(20) % 2, (2, 1))
    two = Partition(("copied", "free"), which, np.zeros((2, 20)))
    found = excess_loss(np.array([[0.9, 0.1] * 10, [0.36, 0.64] * 10]), two).to_dict()
    assert found["kind"] == DIVIDED and found["parts"] == [["copied", 0.63, 0.5], ["free", 0.37, 0.5]]
    assert shown({"a": 0.6, "b": 0.0}) == (MOSTLY, "a")
    which = np.tile(np.array([0] * 5 + [1] * 3 + [2] * 2), (2, 1))
    words = Partition(("frequent words", "rarer words", BETWEEN), which)
    losses = np.array([[1.8] * 5 + [0.1] * 3 + [0.05] * 2, [0.6] * 5 + [2.0] * 3 + [0.15] * 2])
    found = excess_loss(losses, words, "word").to_dict()
    assert found["kind"] == DIVIDED and found["of_loss"] and len(found["parts"]) == 3


def test_its_record_is_known_from_others():
    record = made_up({"a": 0.8, "b": 0.1}, n=3, tokens=10).to_dict()
    assert is_excess(record) and record["tokens"] == 30
    for changed in (
        {"kind": "no"}, {"kind": NOTHING}, {"parts": []}, {"parts": [["a", 2.0, 0.1]]}, {"parts": [["a" * 999, 1, 1]]},
        {"tokens": -1}, {"tokens": True}, {"of_loss": 1}, {"unit": 3}, {"by": "x" * 999}, {"more": 1}, {"parts": None},
    ):  # fmt: skip
        assert not is_excess(record | changed)
    assert not is_excess([record])


def test_a_text_without_words_has_no_parts():
    """“most of its loss is at beginnings of windows (100 % on 100 % of the characters)” was said of digits."""
    assert corpus_from_text("".join(str(n * n % 7) for n in range(3000))).partitions(24) == []


def test_on_any_text_the_loss_is_shared_out_by_place_and_by_frequency():
    text = "ab the cat\nxyzzy the"
    letters = sorted(set(text))
    ids = np.array([letters.index(c) for c in text])
    learned = Counter({"the": 50, "cat": 10, "ab": 2})
    by_place, by_count = partitions_of_text(ids[None, :-1], ids[None, 1:], "char", letters.__getitem__, learned)
    places = [by_place.names[p] for p in by_place.part[0]]
    counts = [by_count.names[p] for p in by_count.part[0]]
    shown = dict(zip(range(1, len(text)), zip(text[1:], places, counts)))
    assert shown[1] == ("b", CUT, EDGE)  # of a word whose beginning nobody knows
    assert shown[3] == ("t", FIRST, "frequent words") and shown[2][1:] == (BETWEEN, BETWEEN)
    assert shown[4][1] == "second letters" and shown[5][1] == "later letters"
    assert shown[7] == ("c", FIRST, "rarer words") and shown[11] == ("x", FIRST, UNSEEN)


def test_a_number_that_was_read_and_a_word_that_a_window_cuts_off_were_not_never_read():
    """Of lines as “day 17 rain 42”, all numbers were, and “need” at a window's end, of “needles”."""
    text = "".join(f"day {n * 7 % 90} rain {n * 11 % 90}\n" for n in range(900))
    for kind in ("char", "word"):
        by_count = corpus_from_text(text, kind).partitions(32)[-1]
        assert not (by_count.part == by_count.names.index(UNSEEN)).any()
    letters = sorted(set("on needles"))
    ids = np.array([letters.index(c) for c in "on need"])
    learned = Counter({"on": 1, "needles": 5})
    by_place, by_count = partitions_of_text(ids[None, :-1], ids[None, 1:], "char", letters.__getitem__, learned)
    assert {by_count.names[part] for part in by_count.part[0]} == {BETWEEN, EDGE}
    assert by_place.names[by_place.part[0][2]] == FIRST, "how a word that goes on begins is known"


@pytest.mark.parametrize("kind", ["char", "word", "bpe"])
def test_every_counted_target_of_any_text_has_its_part(kind):
    text = "It was raining, and the keeper's lamp was the only light. " * 40 + "Ångström über naïve 東京 ☂ 3.14 " * 8
    corpus = corpus_from_text(text, kind)
    _, targets = corpus.windows("val", 16)
    partitions = corpus.partitions(16)
    assert len(partitions) == (1 if kind == "word" else 2)
    for partition in partitions:
        assert ((partition.part >= 0) == (targets.numpy() >= 0)).all()
        found = excess_loss(np.ones(targets.shape), partition, corpus.unit)
        assert found.nats == pytest.approx(1.0) and sum(p.nats for p in found.parts) == pytest.approx(1.0)
        assert found.kind()[0] in (DIVIDED, SPREAD)  # all lose alike
    assert corpus.partitions(16) is partitions  # once for all who ask
    documents = corpus_from_sentences()
    (partition,) = documents.partitions(16)
    assert ((partition.part >= 0) == (documents.windows("val", 16)[1].numpy() >= 0)).all()


def test_a_word_that_only_judges_is_one_that_was_never_read():
    text = "the sea is near and the hill is far away. " * 60
    corpus = corpus_from_text(text + "zebras sing. " * 20, "word")
    (by_count,) = corpus.partitions(16)
    _, targets = corpus.windows("val", 16)
    unseen = by_count.part == by_count.names.index(UNSEEN)
    assert unseen.any() and ((targets.numpy() == 0) == unseen).all()
