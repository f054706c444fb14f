"""Scores: hand-computed bits per byte, the same bytes for all tokens, and differences with their interval."""

import math

import pytest
import torch

from playground.data import TextError
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.model import ModelConfig, Transformer
from playground.studies.scores import parts_of, score
from playground.training.losses import windows_at_once

TEXT = "aba bab " * 60


def uniform(tokenizer, tokens):
    """A model for which all of so many tokens are equally likely."""
    config = ModelConfig(vocab_size=tokens, context_length=12, n_layers=1, d_model=8, n_heads=1)
    model = Transformer(config)
    model.head.weight.data.zero_()
    return model, tokenizer


def test_bits_per_byte_are_one_scale_of_the_loss_of_all_tokens_but_the_first_word():
    # every byte costs log2(4) = 2 bits; a word and the space before it are four bytes, and cost log2(256) = 8 bits
    chars = score(*uniform(CharTokenizer.from_text(TEXT), 4), TEXT)
    words = score(*uniform(WordTokenizer.from_text(TEXT), 256), TEXT)
    assert chars.bits_per_byte == pytest.approx(2) and words.bits_per_byte == pytest.approx(2)
    assert chars.loss == pytest.approx(math.log(4)) and words.perplexity == pytest.approx(256)
    assert sum(chars.bytes) == sum(words.bytes) == len(TEXT.strip()) - 3
    assert sum(chars.tokens) == 4 * sum(words.tokens) and chars.minus(words) == pytest.approx((0, 0), abs=1e-6)
    tokenizer = CharTokenizer.from_text(TEXT)
    config = ModelConfig(vocab_size=tokenizer.vocab_size, context_length=500, n_layers=1, d_model=8, n_heads=1)
    one, other = (score(Transformer(config.replace(init_std=std), seed=1), tokenizer, TEXT) for std in (0.3, 0.5))
    ids = torch.tensor([tokenizer.encode(TEXT.strip())])
    with torch.no_grad():
        logits = Transformer(config.replace(init_std=0.3), seed=1)(ids[:, :-1]).logits[0]
    assert one.loss == pytest.approx(torch.nn.functional.cross_entropy(logits[2:], ids[0, 3:]).item(), rel=1e-5)
    difference, margin = one.minus(other)
    assert other.minus(one) == (-difference, margin) and 0 < margin < math.inf


def test_unknown_characters_are_counted_and_parts_follow_each_other_without_a_gap():
    found = score(*uniform(CharTokenizer("ab "), 4), "ééé " + TEXT + "é")
    assert found.unknown == 4 and sum(found.bytes) == len(TEXT) + 3
    small = ModelConfig(vocab_size=65, context_length=64)
    assert windows_at_once(small) == 64
    assert windows_at_once(small.replace(vocab_size=151_936, context_length=1024)) == 1
    text = "one two\r\nthree " * 400 + "x" * 500
    parts = parts_of(text)
    assert "".join(parts) == text.replace("\r\n", "\n") and parts[0] == "one" and 32 < len(parts) <= 65
    with pytest.raises(TextError, match="more than 100"):
        parts_of("too short " * 9)
