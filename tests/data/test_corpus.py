"""Batches shift by one and never count padding; bad text, also from the Hub, becomes a sentence; overlap is found."""

import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from playground.data import (
    IGNORE,
    TextError,
    corpus_from_language,
    corpus_from_sentences,
    corpus_from_text,
    decode_upload,
    read_file,
    read_hub,
    real_tokens,
)
from playground.data.overlap import MUCH, overlap
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


def test_a_language_is_the_same_every_time_and_an_upload_may_have_other_line_ends():
    a, b = (corpus_from_language("stories", n_characters=5_000, n_validation=2_000) for _ in range(2))
    assert a.sha256 == b.sha256 and torch.equal(a.train, b.train)
    other = corpus_from_language("stories", seed=1, n_characters=5_000, n_validation=2_000)
    assert other.sha256 != a.sha256
    assert other.tokenizer.to_dict() == a.tokenizer.to_dict()
    assert not torch.equal(a.train[:1000], a.val[:1000])
    assert decode_upload(b"\xef\xbb\xbfone\r\ntwo\rthree") == "one\ntwo\nthree"


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
    assert "yaks" in loud.held_out and "yaks" not in loud.learned().words


LETTERS = "abcdefghijklmnopqrstuvwxyz "


def random_text(n: int, seed: int) -> str:
    drawn = torch.randint(len(LETTERS), (n,), generator=torch.Generator().manual_seed(seed))
    return "".join(LETTERS[i] for i in drawn)


@given(
    train=st.lists(st.integers(0, 3), min_size=1, max_size=60),
    val=st.lists(st.integers(0, 3), min_size=1, max_size=20),
    length=st.integers(1, 5),
)
def test_it_is_the_share_of_pieces_that_a_plain_search_finds(train, val, length):
    length = min(length, len(val))
    pieces = [val[i : i + length] for i in range(len(val) - length + 1)]  # few enough that all of them are asked
    found = [any(train[i : i + length] == piece for i in range(len(train))) for piece in pieces]
    assert overlap(torch.tensor(train), torch.tensor(val), length) == sum(found) / len(found)


def test_a_text_that_repeats_itself_is_warned_of_and_refrains_and_our_own_texts_are_not():
    text = random_text(2_000, 0)
    for kind in ("char", "word", "bpe"):
        assert corpus_from_text(text * 12, kind).baselines(16).overlap > 0.98
        assert corpus_from_text(random_text(24_000, 1), kind).overlap() < MUCH
    verses = [
        random_text(300, seed) + "\nand so we all go home again, and so we all go home to sleep\n" for seed in range(40)
    ]
    corpus = corpus_from_text("".join(verses))
    assert corpus.overlap() < MUCH
    ids = torch.tensor([199_997, 50_256, 0, 5])
    assert overlap(ids, ids, 4) == 1 and overlap(ids, ids + 1, 1) == 0
    for corpus in (corpus_from_language("copy", n_characters=20_000, n_validation=4_000), corpus_from_sentences()):
        assert corpus.overlap() == 0


FILES = {"story.txt": b"Once upon a time there was a small server.\n" * 3, "picture.txt": b"\x89PNG\0\0"}


@pytest.mark.usefixtures("signed_in")
def test_a_text_is_fetched_once_and_never_where_it_is_too_large_or_with_this_machines_login(hub):
    # whoever names a repository must not learn by it whether a private one has such a file, or how large it is
    hub.add("anna/tales", FILES, kind="dataset")
    hub.add("anna/diary", FILES, kind="dataset", private=True)
    for file in ("story.txt", "missing.txt"):
        with pytest.raises(TextError, match="dataset anna/diary"):
            read_hub("anna/diary", file, endpoint=hub.address)
    with pytest.raises(TextError, match=r"MB.*used"):
        read_hub("anna/tales", "story.txt", endpoint=hub.address, max_bytes=10)
    assert not [line for line in hub.log if "/resolve/" in line]
    with pytest.raises(TextError, match=r"check.*connection"):
        read_hub("anna/tales", "story.txt", endpoint="http://127.0.0.1:9")
    assert read_hub("anna/tales", "story.txt", endpoint=hub.address) == FILES["story.txt"].decode()
    # a connection that is open outlives the server, so the second time another address is asked, where nobody listens
    assert read_hub("anna/tales", "story.txt", endpoint="http://127.0.0.1:9") == FILES["story.txt"].decode()


@pytest.mark.parametrize(
    ("repo", "file", "sentence"),
    [
        ("anna/tales", "missing.txt", r"missing\.txt.*anna/tales"),
        ("anna/nothing", "story.txt", "dataset anna/nothing"),
        ("anna/tales", "picture.txt", r"^picture\.txt.*anna/tales"),  # not where its copy lies here
        ("not a name!", "story.txt", "write.*user/name"),
        ("", "story.txt", "name.*repository"),
    ],
)
def test_what_cannot_be_fetched_is_a_sentence(hub, repo, file, sentence):
    hub.add("anna/tales", FILES, kind="dataset")
    with pytest.raises(TextError, match=sentence):
        read_hub(repo, file, endpoint=hub.address)
