"""Batches shift by one and never count padding; bad text becomes a sentence."""

import pickle

import pytest
import torch

from playground.data import (
    IGNORE,
    TextError,
    corpus_from_language,
    corpus_from_sentences,
    corpus_from_text,
    decode_upload,
    read_file,
    real_tokens,
)
from playground.data.sentences import HELD_OUT, SENTENCES

TEXT = "the quick brown fox jumps over the lazy dog. " * 40


def test_batches_are_shifted_by_one_and_windows_cover_the_split_once():
    corpus = corpus_from_text(TEXT)
    x, y = corpus.batch("train", 6, 16, torch.Generator().manual_seed(1))
    assert x.shape == y.shape == (6, 16)
    assert torch.equal(x[:, 1:], y[:, :-1])
    again, _ = corpus.batch("train", 6, 16, torch.Generator().manual_seed(1))
    assert torch.equal(x, again)
    joined = corpus.tokenizer.decode(corpus.train.tolist())
    assert all(corpus.tokenizer.decode(row.tolist()) in joined for row in x)
    corpus = corpus_from_text(TEXT)
    inputs, targets = corpus.windows("val", 10)
    counted = targets[targets != IGNORE]
    assert torch.equal(counted, corpus.val[1:])
    assert torch.equal(inputs[:-1].flatten(), corpus.val[: inputs[:-1].numel()])
    few, _ = corpus.windows("val", 10, 3)
    assert len(few) == 3 and torch.equal(few[0], inputs[0]) and torch.equal(few[-1], inputs[-1])


def test_nine_tenths_train_whatever_the_tokens_and_the_last_tenth_judges():
    corpus = corpus_from_text(TEXT)
    whole = corpus.tokenizer.decode(torch.cat((corpus.train, corpus.val)).tolist())
    assert whole == TEXT
    assert len(corpus.val) == pytest.approx(0.1 * len(TEXT), abs=1)
    corpus = corpus_from_text(TEXT + "ÄÖÜ")
    assert corpus.tokenizer.unknown_parts("Ä fox") == []
    assert pickle.loads(pickle.dumps(corpus)).baselines(16) == corpus.baselines(16)  # a lock does not keep it here
    corpus = corpus_from_text(TEXT, "word")
    assert len(corpus.val) == (len(corpus.train) + len(corpus.val)) // 10
    assert TEXT.endswith(corpus.held_out) and not corpus.held_out[:1].isspace()
    whole = corpus.tokenizer.encode(TEXT)
    assert torch.cat((corpus.train, corpus.val)).tolist() == whole
    again = corpus_from_text(TEXT, corpus.tokenizer)  # a ready tokenizer parts the text where one made for it does
    assert torch.equal(again.val, corpus.val)


def test_four_of_our_sentences_are_held_out_and_documents_end_with_tokens_that_nothing_follows():
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
    corpus = corpus_from_sentences()
    assert {corpus.tokenizer.token_text(token) for token in corpus.ends} == {"."}
    assert corpus_from_sentences(["a b c", "b c a"]).ends == frozenset()  # each goes on elsewhere
    assert corpus_from_text(TEXT).ends == frozenset()


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
        (lambda: corpus_from_text("  \n"), "no text"),
        (lambda: corpus_from_text("short"), "only 5 tokens"),
        (lambda: corpus_from_text(TEXT, "magic"), "tokenizer called"),
        (lambda: corpus_from_language("klingon"), "language.*'klingon'"),
        (lambda: corpus_from_text(TEXT).check_context(5000), "longer.*context"),
        (lambda: decode_upload(b""), "is empty"),
        (lambda: decode_upload(b"a\0b"), "binary"),
        (lambda: decode_upload("grüße".encode("latin-1")), "UTF-8 text"),
        (lambda: decode_upload("grüße".encode("utf-16")), "UTF-16"),
        (lambda: decode_upload(b"a" * 11, max_bytes=10), "at most"),
        (lambda: read_file("/no/such/file"), "cannot.*read"),
        (lambda: read_file("/"), "a folder"),
    ],
)
def test_bad_text_becomes_a_sentence(make, sentence):
    with pytest.raises(TextError, match=sentence):
        make()


def test_an_upload_may_carry_a_byte_order_mark_and_windows_line_ends():
    assert decode_upload(b"\xef\xbb\xbfone\r\ntwo\rthree") == "one\ntwo\nthree"


def test_every_token_of_a_sentence_is_real_and_all_that_follows_it_is_padding():
    corpus = corpus_from_sentences(["a b c .", "a b c d e f ."])
    inputs, targets = corpus.windows("train", 8)
    lengths = [4, 7]
    real = real_tokens(targets)
    assert real.tolist() == [[place < length for place in range(8)] for length in lengths]
    assert real.sum() == (targets != IGNORE).sum() + 2  # the full stops are read, and predict nothing
    assert [corpus.tokenizer.decode(row[kept].tolist()) for row, kept in zip(inputs, real)] == [
        "a b c.",
        "a b c d e f.",
    ]
    cut_short = corpus.windows("train", 3)[1]  # longer than the context: nothing is padded
    assert real_tokens(cut_short) is None
    _, targets = corpus_from_text(TEXT).windows("val", 100)  # 179 targets: the second window ends with padding
    real = real_tokens(targets)
    assert real[0].all() and real[1].sum() == 80 and not real[1, 80:].any()


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_what_judges_is_not_in_the_vocabulary(kind):
    """Words and merges that only the validation part has were learned from it, too."""
    prose = "the quick brown fox jumps over the lazy dog. " * 90
    quiet, loud = (corpus_from_text(prose + ending * 10, kind) for ending in ("the lazy dog. ", "hex yaks jab. "))
    assert quiet.tokenizer.to_dict() == loud.tokenizer.to_dict()
    assert torch.equal(quiet.train, loud.train)
    shown = loud.tokenizer.decode(loud.val.tolist())
    assert ("yaks" in shown) == (kind == "bpe") and ("<unk>" in shown) == (kind == "word")
    assert "yaks" in loud.held_out and quiet.other_kind() is None
    assert "yaks" not in loud.learned().words and loud.learned().usual.right < loud.learned().usual.of
