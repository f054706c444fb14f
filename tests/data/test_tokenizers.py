"""decode∘encode is the identity, JSON gives the same tokenizer back, and special strings are ordinary text."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.data import TextError, build_tokenizer, load_encoding, tokenizer_from_dict
from playground.data.byte_pairs import PATTERNS, byte_pairs, train_bpe
from playground.data.tokenizers import CharTokenizer, WordTokenizer

TEXT = "The cat sat on the mat. The dog, too; it didn't mind!\nÜber 12 naïve façades — 你好 😀\n" * 8
BPE = train_bpe(TEXT, 300)

TOKENIZERS = {"char": CharTokenizer.from_text(TEXT), "word": WordTokenizer.from_text(TEXT), "bpe": BPE}
any_text = st.text(max_size=60)


@settings(max_examples=50)
@given(any_text)
def test_bytes_give_back_every_text(text):
    text = text.encode("utf-8", errors="ignore").decode()
    assert BPE.decode(BPE.encode(text)) == text


@given(any_text)
def test_characters_give_back_what_they_know_and_show_what_they_do_not(text):
    tokenizer = TOKENIZERS["char"]
    decoded = tokenizer.decode(tokenizer.encode(text))
    assert len(decoded) == len(text)
    unknown = set(tokenizer.unknown_parts(text))
    assert all(d == ("�" if t in unknown else t) for t, d in zip(text, decoded))


@settings(max_examples=60)
@given(any_text)
def test_words_reach_a_normal_form_in_one_go(text):
    tokenizer = WordTokenizer.from_text(text)
    normal = tokenizer.decode(tokenizer.encode(text))
    assert tokenizer.decode(tokenizer.encode(normal)) == normal
    assert "<unk>" not in normal


@given(any_text, any_text)
def test_cutting_at_a_line_end_cuts_the_tokens(first, second):
    for name in ("char", "word"):
        tokenizer = TOKENIZERS[name]
        assert tokenizer.encode(first + "\n" + second) == tokenizer.encode(first + "\n") + tokenizer.encode(second)


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS.keys())
def test_json_gives_the_same_tokenizer_back_and_special_strings_are_ordinary_text(tokenizer):
    again = tokenizer_from_dict(json.loads(json.dumps(tokenizer.to_dict())))
    assert again.vocab_size == tokenizer.vocab_size
    assert again.encode(TEXT) == tokenizer.encode(TEXT)
    assert max(tokenizer.encode(TEXT)) < tokenizer.vocab_size
    assert all(isinstance(tokenizer.token_text(i), str) for i in range(tokenizer.vocab_size))
    ids = tokenizer.encode("<|endoftext|>")
    assert len(ids) > 1


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_long_text_encoded_in_parts_has_the_same_tokens(pattern, monkeypatch):
    tokenizer = byte_pairs([*(bytes([b]) for b in range(256)), b"\n\n", b"  ", b"th"], pattern)
    text = (TEXT + "  \nthe  \n\n the\nthe\r\nthe,\nThe 'll\n12\n\nthe\n" + "\n \nThe") * 20
    whole = tokenizer.encode(text)
    monkeypatch.setattr("playground.data.byte_pairs.AT_ONCE", 7)
    assert tokenizer.encode(text) == whole


def test_words_are_read_and_written_as_people_do_and_what_was_saved_as_a_list_opens_with_its_ids():
    tokenizer = WordTokenizer.from_text("The cat sat. (It didn't mind!)\nThe end")
    text = "The cat didn't mind!\nThe end"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.unknown_parts("The cow sat") == ["cow"]
    assert tokenizer.decode(tokenizer.encode("The cow")) == "The <unk>"
    tokens = [bytes([b]) for b in range(256)] + [b"th", b" th", b"the", b" the"]
    old = {"kind": "bpe", "tokens": [base64.b64encode(t).decode() for t in tokens], "special": {"<end>": 0}}
    tokenizer = tokenizer_from_dict(old)
    assert tokenizer.encode("the the<end>") == [259, 260, *(1 + b for b in b"<end>")]
    assert tokenizer.decode([0, 260]) == "<end> the" and tokenizer.vocab_size == 261
    assert tokenizer_from_dict(tokenizer.to_dict()).to_dict() == tokenizer.to_dict()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "tokenizer's description"),
        ({"kind": "magic"}, "tokenizer.*'magic'"),
        ({"kind": "char", "characters": "aa"}, "distinct characters"),
        ({"kind": "char", "characters": 5}, "distinct characters"),
        ({"kind": "word", "words": ["a", 3]}, "distinct words"),
        ({"kind": "bpe", "tokens": ["!!"]}, "tokenizer's description"),
        ({"kind": "bpe", "tokens": ["YQ=="]}, "have gaps|needs the 256 bytes"),
        ({"kind": "tiktoken", "name": "../etc"}, "encoding called"),
    ],
)
def test_nonsense_is_refused_in_words(values, sentence):
    with pytest.raises(TextError, match=sentence):
        tokenizer_from_dict(values)
    with pytest.raises(TextError, match="tokenizer called"):
        build_tokenizer("magic", "text")


def test_an_encoding_that_cannot_be_reached_is_a_sentence(monkeypatch):
    import time

    def hang(name):
        time.sleep(5)

    monkeypatch.setattr("tiktoken.get_encoding", hang)
    began = time.monotonic()
    with pytest.raises(TextError, match="Go online"):
        load_encoding("gpt2", patience=0.2)
    assert time.monotonic() - began < 2

    def fail(name):
        raise ConnectionError("no route to host")

    monkeypatch.setattr("tiktoken.get_encoding", fail)
    with pytest.raises(TextError, match=r"neither.*reachable"):
        load_encoding("gpt2", patience=5)
