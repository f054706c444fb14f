"""Tokenizers cross to Hugging Face's format and back without a text being read or written otherwise."""

import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from playground.data import TextError, load_encoding, tokenizer_from_dict
from playground.data.byte_pairs import PATTERNS, byte_pairs, train_bpe
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.model import ModelConfig, Transformer
from playground.storage import Checkpoint, CheckpointError, load, save, tokenizers_io
from playground.storage.tokenizers_io import tokenizer_files, tokenizer_from_files
from playground.storage.transformers_export import export
from playground.training import History
from playground.words.card import exported_card

TEXT = "The cat (sat) on the mat, don't! <unk> x² ① é e\u0301 [a] {b}: it’s\n12 345  tabs\t, 漢字 🙂\n" * 3
OURS = {"char": CharTokenizer.from_text, "word": WordTokenizer.from_text, "bpe": lambda text: train_bpe(text, 300)}
pieces = st.sampled_from(
    [*sorted(set(TEXT)), "<unk>", "\ufffd", "\x1c", "\x85", "\u00a0", "\u2003", "'s", "S'", "ſ", "₂"]
)
texts = st.lists(pieces | st.characters(exclude_categories=["Cs"]), max_size=25).map("".join)
each_kind = pytest.mark.parametrize("name", [*OURS, *PATTERNS])


@cache
def ours_of(name: str):
    """A tokenizer of this kind, or byte pairs cut by this pattern."""
    letters = [bytes([b]) for b in range(256)]
    return byte_pairs([*letters, b"  ", b"11", b"th"], name) if name in PATTERNS else OURS[name](TEXT)


@cache
def body_of(name: str) -> str:
    """What goes out of it."""
    return json.dumps(tokenizer_files(ours_of(name))["tokenizer.json"])


@each_kind
@settings(max_examples=150)
@given(data=st.data())
def test_what_goes_out_reads_and_writes_every_text_as_ours_does(name, data):
    ours, theirs = ours_of(name), Tokenizer.from_str(body_of(name))
    text = data.draw(texts)
    assert theirs.encode(text, add_special_tokens=False).ids == ours.encode(text)
    ids = data.draw(st.lists(st.integers(0, ours.vocab_size - 1), max_size=12))
    for tokens in (ours.encode(text), ids):
        assert theirs.decode(tokens, skip_special_tokens=False) == ours.decode(tokens)


@each_kind
def test_what_goes_out_comes_in_again(name, tmp_path):
    (tmp_path / "tokenizer.json").write_text(body_of(name))
    assert tokenizer_from_files(tmp_path).to_dict() == ours_of(name).to_dict()


GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
PUBLISHED = {
    "like GPT-2's": GPT2,
    "single digits": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), GPT2]),
}


@cache
def published(name: str) -> Tokenizer:
    """A byte-level BPE as others train them, with a special token before all others, as some have it."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = PUBLISHED[name], decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([TEXT], trainer)
    return made


@pytest.fixture(scope="module", params=PUBLISHED)
def both(request, tmp_path_factory) -> tuple:
    """One of these, and ours that was read from its file."""
    folder = tmp_path_factory.mktemp("published")
    published(request.param).save(str(folder / "tokenizer.json"))
    return published(request.param), tokenizer_from_files(folder)


@settings(max_examples=150)
@given(text=texts)
def test_what_comes_in_reads_and_writes_every_text_as_theirs_does(both, text):
    theirs, ours = both
    ids = theirs.encode(text).ids
    assert ours.encode(text) == ids
    assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False) == text


def test_a_tokenizer_from_elsewhere_is_the_same_after_it_was_saved_but_reads_special_strings_as_text(tmp_path):
    published("like GPT-2's").save(str(tmp_path / "tokenizer.json"))
    ours = tokenizer_from_files(tmp_path)
    assert published("like GPT-2's").encode("<|endoftext|>").ids == [0]
    assert len(ours.encode("<|endoftext|>")) > 1 and ours.decode([0]) == "<|endoftext|>"
    published("single digits").save(str(tmp_path / "tokenizer.json"))
    ours = tokenizer_from_files(tmp_path)
    config = ModelConfig(vocab_size=ours.vocab_size, context_length=8, n_layers=1, d_model=8, n_heads=2)
    again = load(save(tmp_path / "m", Transformer(config), ours)).tokenizer
    assert again.vocab_size == ours.vocab_size and again.token_text(0) == "<|endoftext|>"
    for text in (TEXT, "  12 can't", "x" * 3):
        assert again.encode(text) == ours.encode(text) == published("single digits").encode(text).ids


def test_a_published_encoding_comes_in_again_and_words_that_no_text_has_cannot_go_out(tmp_path):
    with pytest.raises(CheckpointError, match=r"'two words'.*tokenizer's"):
        tokenizer_files(WordTokenizer(["one", "two words"]))
    assert tokenizer_from_dict({"kind": "word", "words": ["two words"]}).encode("two words") == [0, 0]
    try:
        gpt2 = load_encoding("gpt2", patience=3)
    except TextError:
        pytest.skip("the gpt2 encoding's file is not on this machine")
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer_files(gpt2)["tokenizer.json"]))
    again = tokenizer_from_files(tmp_path)
    assert again.vocab_size == 50_257 and again.encode("It's 12  o'clock <|endoftext|>") == gpt2.encode(
        "It's 12  o'clock <|endoftext|>"
    )
    assert again.decode([50_256]) == "<|endoftext|>"
    assert tokenizer_from_dict(gpt2.to_dict()).decode([31373, 995]) == "hello world"


def test_an_export_says_where_its_tokenizer_differs(tmp_path, monkeypatch):
    words = ours_of("word")
    config = ModelConfig(vocab_size=words.vocab_size, context_length=16, n_layers=1, d_model=8, n_heads=2)
    one = Checkpoint(Transformer(config, seed=1), words, History(), "m", {"prompt": "The cat, ①"})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # Transformers takes long to import
    parity = export(one, tmp_path / "good", card=exported_card)
    assert parity.same_text and parity.texts == 200 and parity.other_texts == 0
    assert "all 200 texts" in (tmp_path / "good" / "README.md").read_text()
    monkeypatch.setattr(tokenizers_io, "_OF_WORDS", decoders.Fuse())
    parity = export(one, tmp_path / "glued", card=exported_card)
    assert not parity.same_text and parity.other_texts > 50
    assert f"{parity.other_texts} of 200 texts" in (tmp_path / "glued" / "README.md").read_text()
