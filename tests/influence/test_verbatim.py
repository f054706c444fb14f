"""Verbatim matches equal a search through all pieces, whatever the text."""

import random

import pytest

from playground.influence.verbatim import SuffixArray, copied, matches


def longest_by_search(text: str, query: str) -> list[int]:
    found = []
    for start in range(len(query)):
        length = 0
        while start + length < len(query) and query[start : start + length + 1] in text:
            length += 1
        found.append(length)
    return found


@pytest.mark.parametrize("letters", ["a", "ab", "abc ", "aé漢😀"])
def test_the_longest_matches_are_those_of_a_search(letters):
    rng = random.Random(len(letters))
    for _ in range(100):
        text = "".join(rng.choices(letters, k=rng.randint(1, 60)))
        query = "".join(rng.choices(letters + "x", k=rng.randint(1, 30)))
        index = SuffixArray(text)
        assert [text[i:] for i in index.order] == sorted(text[i:] for i in range(len(text)))
        assert index.longest(query) == longest_by_search(text, query)
        for match in matches(index, query, least=2):
            piece = query[match.start : match.end]
            places = [i for i in range(len(text)) if text.startswith(piece, i)]
            assert match.count == len(places) and set(match.sources) <= set(places)


def test_the_share_copied_and_that_of_held_out_text():
    text = "".join(map(chr, range(1000, 2000)))
    assert SuffixArray(text).longest(text[500:520] + "a") == [*range(20, 0, -1), 0]
    assert SuffixArray("z").longest("zz") == [1, 1]
    text = "the quick brown fox jumps over the lazy dog. " * 3 + "pack my box with five dozen liquor jugs."
    found = copied(SuffixArray(text), "say:the quick brown fox jumps over the red dog", held_out="0123456789" * 30)
    (match,) = found.matches
    assert (match.start, match.end, match.count) == (4, 39, 3)
    assert found.share == 35 / 46 and found.usual == 0.0
    assert copied(SuffixArray(text), "too short", held_out=text).usual is None
    assert copied(SuffixArray(text), text[10:60], held_out=text).usual == 1.0
