"""Overlap: found where a text repeats itself, and by no other way of counting more or less."""

from pathlib import Path

import torch
from hypothesis import given
from hypothesis import strategies as st

import playground
from playground.data import corpus_from_language, corpus_from_sentences, corpus_from_text
from playground.data.overlap import MUCH, overlap
from playground.ui.forms.excerpts import contents_of
from playground.words.corpus import corpus_warning

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
        assert corpus_from_text(text * 12, kind).overlap() > 0.98
        assert corpus_from_text(random_text(24_000, 1), kind).overlap() < MUCH
    verses = [
        random_text(300, seed) + "\nand so we all go home again, and so we all go home to sleep\n" for seed in range(40)
    ]
    corpus = corpus_from_text("".join(verses))
    assert corpus.overlap() < MUCH and corpus.other_kind() is None
    ids = torch.tensor([199_997, 50_256, 0, 5])
    assert overlap(ids, ids, 4) == 1 and overlap(ids, ids + 1, 1) == 0
    for corpus in (corpus_from_language("copy", n_characters=20_000, n_validation=4_000), corpus_from_sentences()):
        assert corpus.overlap() == 0 and corpus.other_kind() is None and corpus_warning(corpus) == ""


def test_a_text_whose_end_is_another_kind_is_warned_of_and_prose_is_not():
    """Half English, half numbers: only the numbers judge, and nothing said so."""
    prose = (Path(playground.__file__).parent / "data/texts/lighthouse.txt").read_text(encoding="utf-8")
    numbers = " ".join(str(n * n * n) for n in range(100, 2000))
    for length in (600, 5_000, 20_000):
        for share in (0.5, 0.8):
            cut = round(share * length)
            text = prose[:cut] + numbers[: length - cut]
            found = corpus_from_text(text).other_kind()
            assert len(found.characters) == 3 and set(found.characters) <= set("0123456789 ")
            assert found.here > 1.5 * found.there
            assert corpus_warning(corpus_from_text(text)) in contents_of(text)
        for start in range(0, 80_000, 4_000):
            assert corpus_from_text(prose[start : start + length]).other_kind() is None
    for kind in ("word", "bpe"):
        assert corpus_from_text(prose[:4_000] + numbers[:6_000], kind).other_kind() is not None
