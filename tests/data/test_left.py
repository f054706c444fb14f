"""What is left adds up to the loss less the floor, and names the rule that a model has not learned."""

from collections import Counter

import numpy as np
import pytest

from playground.data import LANGUAGES, Ladder, corpus_from_language, corpus_from_sentences, corpus_from_text
from playground.data.languages.grammar import SPELLING
from playground.data.languages.made import addition, copy, stories
from playground.data.left import BETWEEN, CUT, EDGE, FIRST, UNSEEN, Partition, left, partitions_of_text, standing

LADDER = Ladder(uniform=4.0, unigram=3.0, bigram=2.0, floor=0.5, unit="character")


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("unit", ["char", "word"])
def test_the_parts_add_up_to_what_is_above_the_floor(name, unit):
    corpus = corpus_from_language(name, n_characters=20_000, n_validation=3_000, unit=unit)
    ladder, (partition,) = corpus.ladder(24, 40), corpus.partitions(24, 40)
    _, targets = corpus.windows("val", 24, 40)
    assert ((partition.part >= 0) == (targets.numpy() >= 0)).all()
    losses = np.random.default_rng(0).random(partition.part.shape) + 1.0
    found = left(losses, partition)
    counted = partition.part >= 0
    assert found.nats == pytest.approx(losses[counted].mean() - ladder.floor)
    assert sum(part.nats for part in found.parts) == pytest.approx(found.nats)
    assert sum(part.share_of_tokens for part in found.parts) == pytest.approx(1.0)
    perfect = left(partition.unavoidable, partition)
    assert perfect.nats == pytest.approx(0.0) and perfect.in_words() == "next to nothing is left"


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
    found = left(partition.unavoidable + noise + 1.5 * lacks, partition)
    assert found.parts[0].name == kind and f"mostly *{kind}*" in found.in_words()
    said = standing(LADDER, 0.6, found.in_words())
    assert said.startswith("Passed the bigram") and f"What is left is mostly *{kind}*" in said
    assert standing(LADDER, 0.501, found.in_words()) == LADDER.in_words(
        0.501
    )  # at the floor nothing else is to be said
    assert standing(LADDER, float("nan"), found.in_words()) == "The loss is not a number."


def made_up(parts, n=60, tokens=30, spread=0.0):
    """Windows whose targets belong to parts in turn, each losing so much, give or take."""
    names = tuple(parts)
    which = np.tile(np.arange(tokens) % len(names), (n, 1))
    partition = Partition(names, which, np.zeros((n, tokens)))
    rng = np.random.default_rng(0)
    return left(np.array(list(parts.values()))[which] + rng.normal(0, spread, which.shape), partition)


def test_the_words_are_no_surer_than_the_numbers():
    assert "mostly *a* (80 %)" in made_up({"a": 0.8, "b": 0.1, "c": 0.1}).in_words()
    tie = made_up({"a": 0.9, "b": 0.89, "c": 0.1}, spread=0.5).in_words()
    assert "*a*" in tie and "*b*" in tie and " and " in tie  # which of the two is larger cannot be told
    many = made_up({letter: 1.0 for letter in "abcdefghij"}).in_words()
    assert "spread over many" in many
    assert made_up({"a": 0.02, "b": 0.0}, n=4, spread=2.0).in_words() == "what is left cannot be told"
    assert made_up({"a": 0.002, "b": 0.0}, n=60, spread=0.2).in_words() == "next to nothing is left"
    assert left(np.zeros((1, 3)), Partition((), np.full((1, 3), -1))).in_words() == "what is left cannot be told"
    whole = Partition(("a", "b"), np.arange(12).reshape(2, 6) % 2)
    assert left(np.zeros((2, 6)), whole).in_words() == "next to nothing is left"  # of a text of one letter


def test_most_is_said_of_what_carries_more_than_its_share_and_less_than_all():
    """“what is left is mostly *copied letters* (63 %) and *free choices* (37 %)” named all there is, and “most of its
    loss is at … and *what stands between words* (2 % on 21 % of the words)” where it is not."""
    which = np.tile(np.arange(20) % 2, (2, 1))
    two = left(np.array([[0.9, 0.1] * 10, [0.36, 0.64] * 10]), Partition(("copied", "free"), which, np.zeros((2, 20))))
    assert two.in_words().startswith("what is left divides into *copied* (63 %) and *free* (37 %)")
    assert "mostly *a* (100 %)" in made_up({"a": 0.6, "b": 0.0}).in_words()
    which = np.tile(np.array([0] * 5 + [1] * 3 + [2] * 2), (2, 1))
    words = Partition(("frequent words", "rarer words", BETWEEN), which)
    losses = np.array([[1.8] * 5 + [0.1] * 3 + [0.05] * 2, [0.6] * 5 + [2.0] * 3 + [0.15] * 2])
    said = left(losses, words, "word").in_words()
    assert (
        said.startswith("its loss divides into *frequent words*") and f"*{BETWEEN}* (2 % on 20 % of the words)" in said
    )


def test_shares_of_few_tokens_name_their_number():
    found = made_up({"a": 0.8, "b": 0.1}, n=3, tokens=10)
    assert found.in_words().endswith("mostly *a* (89 %), counted on 30 tokens only")
    assert "counted" not in made_up({"a": 0.8, "b": 0.1}).in_words()


def test_a_text_without_words_has_no_parts_and_who_is_worse_than_guessing_has_nothing_left():
    """“most of its loss is at beginnings of windows (100 % on 100 % of the characters)” was said of digits."""
    digits = corpus_from_text("".join(str(n * n % 7) for n in range(3000)))
    assert digits.partitions(24) == []
    assert standing(LADDER, 18.0, "what is left is mostly *spelling* (29 %)") == LADDER.in_words(18.0)


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
        found = left(np.ones(targets.shape), partition, corpus.unit)
        assert found.nats == pytest.approx(1.0) and sum(p.nats for p in found.parts) == pytest.approx(1.0)
        assert "its loss divides into" in found.in_words() or "spread over" in found.in_words()  # all lose alike
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
