"""The stream: texts of tokens that make up the decoded text, however the tokenizer cuts it."""

import random

import pytest

from playground.data.tokenizers import CharTokenizer, WordTokenizer, train_bpe
from playground.decoding import SamplingConfig, Spelling, generate, stream
from playground.model import Transformer
from tests.model.configs import TINY

TEXT = "The cat (and “the” dog) sat.\nA naïve 😀 café, isn't it?\n\nThe end."
TOKENIZERS = [CharTokenizer.from_text(TEXT), WordTokenizer.from_text(TEXT), train_bpe(TEXT * 3, 300)]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda t: t.name)
def test_pieces_make_up_the_decoded_text(tokenizer):
    draw = random.Random(1)
    sequences = [
        tokenizer.encode(TEXT),
        *([draw.randrange(tokenizer.vocab_size) for _ in range(60)] for _ in range(30)),
    ]
    for ids in sequences:
        for cut in (0, 1, 7, len(ids) // 2):
            spelling = Spelling(tokenizer, ids[:cut])
            pieces = [spelling.add(token, last=i == len(ids) - 1) for i, token in enumerate(ids[cut:], cut)]
            complete = Spelling(tokenizer)
            given = "".join(complete.add(token) for token in ids[:cut])
            assert given + "".join(pieces) == tokenizer.decode(ids)


def test_the_stream_is_generate_with_texts():
    tokenizer = CharTokenizer("abcdefgh\n")
    model = Transformer(TINY.replace(vocab_size=tokenizer.vocab_size), seed=1)
    prompt, sampling = tokenizer.encode("abc"), SamplingConfig(seed=3)
    steps = list(generate(model, prompt, 40, sampling, n_samples=2))
    for i in range(2):
        streamed = [s.new[i] for s in stream(model, tokenizer, prompt, 40, sampling, n_samples=2)]
        assert [new.id for new in streamed] == [step.tokens[i] for step in steps]
        assert [new.probability for new in streamed] == [step.model_probability[i] for step in steps]
        assert "".join(new.text for new in streamed) == tokenizer.decode([step.tokens[i] for step in steps])


def test_a_sample_that_met_its_stop_text_gets_no_more():
    tokenizer = CharTokenizer("abcdefgh\n")
    model = Transformer(TINY.replace(vocab_size=tokenizer.vocab_size), seed=1)
    prompt = tokenizer.encode("abc")
    free = ["".join(s.new[i].text for s in stream(model, tokenizer, prompt, 30, n_samples=3)) for i in range(3)]
    met = [*stream(model, tokenizer, prompt, 30, n_samples=3, stop=["a"])]
    for i in range(3):
        text = "".join(s.new[i].text for s in met if s.new[i])
        assert text == free[i][: free[i].find("a") + 1 or 30]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda t: t.name)
def test_a_token_costs_the_same_late_as_early(tokenizer, monkeypatch):
    """Nothing reads the whole text again for one more token."""
    longest = 0
    decode = type(tokenizer).decode

    def counted(self, ids):
        nonlocal longest
        longest = max(longest, len(ids))
        return decode(self, ids)

    monkeypatch.setattr(type(tokenizer), "decode", counted)
    spelling = Spelling(tokenizer)
    for token in tokenizer.encode(TEXT):
        spelling.add(token)
    assert longest <= 2
