"""Batches shift by one and never count padding; the ladder agrees with counting; bad text becomes a sentence."""

import math
from collections import Counter
from itertools import pairwise

import pytest
import torch

from playground.data import (
    IGNORE,
    Ladder,
    TextError,
    corpus_from_language,
    corpus_from_sentences,
    corpus_from_text,
    decode_upload,
    read_file,
)
from playground.data.sentences import HELD_OUT, SENTENCES

TEXT = "the quick brown fox jumps over the lazy dog. " * 40


def test_a_batch_is_shifted_by_one_and_repeats_with_its_seed():
    corpus = corpus_from_text(TEXT)
    x, y = corpus.batch("train", 6, 16, torch.Generator().manual_seed(1))
    assert x.shape == y.shape == (6, 16)
    assert torch.equal(x[:, 1:], y[:, :-1])
    again, _ = corpus.batch("train", 6, 16, torch.Generator().manual_seed(1))
    assert torch.equal(x, again)
    joined = corpus.tokenizer.decode(corpus.train.tolist())
    assert all(corpus.tokenizer.decode(row.tolist()) in joined for row in x)


def test_windows_cover_the_split_once():
    corpus = corpus_from_text(TEXT)
    inputs, targets = corpus.windows("val", 10)
    counted = targets[targets != IGNORE]
    assert torch.equal(counted, corpus.val[1:])
    assert torch.equal(inputs[:-1].flatten(), corpus.val[: inputs[:-1].numel()])
    few, _ = corpus.windows("val", 10, 3)
    assert len(few) == 3 and torch.equal(few[0], inputs[0]) and torch.equal(few[-1], inputs[-1])


def test_nine_tenths_train_and_the_last_tenth_judges():
    corpus = corpus_from_text(TEXT)
    whole = corpus.tokenizer.decode(torch.cat((corpus.train, corpus.val)).tolist())
    assert whole == TEXT
    assert len(corpus.val) == pytest.approx(0.1 * len(TEXT), abs=1)


def test_padding_is_never_counted():
    corpus = corpus_from_sentences(["a b c .", "a b c d e f ."])
    x, y = corpus.batch("train", 50, 8, torch.Generator().manual_seed(0))
    lengths = (y != IGNORE).sum(dim=1)
    assert set(lengths.tolist()) == {3, 6}
    text = {corpus.tokenizer.decode(row[row != IGNORE].tolist()) for row in y}
    assert text == {"b c.", "b c d e f."}
    assert (x >= 0).all()


def test_our_sentences_have_28_tokens():
    corpus = corpus_from_sentences()
    assert corpus.vocab_size == 28
    assert (corpus.train == -1).sum() + (corpus.val == -1).sum() == 20


def test_four_of_our_sentences_are_held_out_and_can_be_guessed_from_the_others():
    """None is learned, each is ours, and their words and the pairs of them that matter stand in the others."""
    corpus = corpus_from_sentences()
    learned = [sentence for sentence in SENTENCES if sentence not in HELD_OUT]
    assert len(set(HELD_OUT)) == 4 and set(HELD_OUT) < set(SENTENCES)
    parts = {"train": corpus.train, "val": corpus.val}
    texts = {split: corpus.tokenizer.decode([t for t in ids.tolist() if t >= 0]) for split, ids in parts.items()}
    assert not any(sentence.removesuffix(" .") in texts["train"] for sentence in HELD_OUT)
    assert all(sentence.removesuffix(" .") in texts["val"] for sentence in HELD_OUT)
    words = {word for sentence in learned for word in sentence.split()}
    verbs = {sentence.split()[2] for sentence in learned}
    for sentence in HELD_OUT:
        assert set(sentence.split()) <= words and sentence.split()[2] in verbs
    assert not torch.equal(corpus.train, corpus.val)


def test_documents_end_with_tokens_that_nothing_follows():
    corpus = corpus_from_sentences()
    assert {corpus.tokenizer.token_text(token) for token in corpus.ends} == {"."}
    assert corpus_from_sentences(["a b c", "b c a"]).ends == frozenset()  # each goes on elsewhere
    assert corpus_from_text(TEXT).ends == frozenset()


def test_the_ladder_agrees_with_counting_by_hand():
    corpus = corpus_from_text(TEXT + "zebra quiz! " * 20)
    inputs, targets = corpus.windows("val", 12)
    ladder = corpus.ladder(12)
    train, V = corpus.train.tolist(), corpus.vocab_size
    ones, twos = Counter(train), Counter(pairwise(train))
    before = Counter(train[:-1])
    unigram = [(ones[t] + 1) / (len(train) + V) for t in range(V)]
    pairs = [(a, b) for a, b in zip(inputs.flatten().tolist(), targets.flatten().tolist()) if b != IGNORE]
    assert ladder.uniform == pytest.approx(math.log(V))
    assert ladder.unigram == pytest.approx(-sum(math.log(unigram[b]) for _, b in pairs) / len(pairs))
    expected = -sum(math.log((twos[a, b] + unigram[b]) / (before[a] + 1)) for a, b in pairs) / len(pairs)
    assert ladder.bigram == pytest.approx(expected)
    assert ladder.floor is None


def test_the_ladder_speaks_plainly():
    ladder = Ladder(uniform=4.0, unigram=3.0, bigram=2.0, floor=1.0)
    assert "0.0400 nats above the floor: 98.7 %" in ladder.in_words(1.04)
    assert "leaked into the training" in ladder.in_words(0.9)
    unknown = Ladder(uniform=4.0, unigram=3.0, bigram=2.0)
    assert "no known floor" in unknown.in_words(1.5)
    assert "0.5000 nats below" in unknown.in_words(1.5)
    assert "Better than unigram, not than bigram" in unknown.in_words(2.5)
    assert "Worse than guessing" in unknown.in_words(5.0)
    assert "not a number" in unknown.in_words(float("nan"))


def test_a_language_is_the_same_every_time_and_held_out_text_is_other_text():
    a, b = (corpus_from_language("stories", n_characters=5_000, n_validation=2_000) for _ in range(2))
    assert a.sha256 == b.sha256 and torch.equal(a.train, b.train)
    other = corpus_from_language("stories", seed=1, n_characters=5_000, n_validation=2_000)
    assert other.sha256 != a.sha256
    assert other.tokenizer.to_dict() == a.tokenizer.to_dict()
    assert not torch.equal(a.train[:1000], a.val[:1000])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: corpus_from_text("  \n"), "there is no text"),
        (lambda: corpus_from_text("short"), "only 5 tokens"),
        (lambda: corpus_from_text(TEXT, "magic"), "no tokenizer called"),
        (lambda: corpus_from_language("klingon"), "no language called 'klingon'"),
        (lambda: corpus_from_language("stories", unit="bpe"), "by char or word"),
        (lambda: corpus_from_text(TEXT).check_context(5000), "use a longer text or a context of at most"),
        (lambda: decode_upload(b""), "is empty"),
        (lambda: decode_upload(b"  \n "), "is empty"),
        (lambda: decode_upload(b"a\0b"), "binary"),
        (lambda: decode_upload("grüße".encode("latin-1")), "not UTF-8 text"),
        (lambda: decode_upload("grüße".encode("utf-16")), "UTF-16"),
        (lambda: decode_upload(b"a" * 11, max_bytes=10), "at most"),
        (lambda: read_file("/no/such/file"), "cannot be read"),
        (lambda: read_file("/"), "is a folder"),
    ],
)
def test_bad_text_becomes_a_sentence(make, sentence):
    with pytest.raises(TextError, match=sentence):
        make()


def test_an_upload_may_carry_a_byte_order_mark_and_windows_line_ends():
    assert decode_upload(b"\xef\xbb\xbfone\r\ntwo\rthree") == "one\ntwo\nthree"
