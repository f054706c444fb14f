"""Scores are on one scale with their interval; in a sweep the lowest mean wins, and luck is not called better."""

import math

import pytest
import torch

from playground.data import TextError, corpus_from_text
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.model import ModelConfig, Transformer
from playground.studies.scores import parts_of, score
from playground.studies.sweep import Row, Sweep, add_result, best_of, lead_of, run_sweep
from playground.training import TrainConfig
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


CLEAR = [Row(0.1, (2.0, 2.1, 1.9)), Row(0.01, (1.0, 1.1, 0.9)), Row(1.0, (0.5, math.nan, 0.5))]


def test_the_lowest_mean_is_best_unless_luck_can_explain_it():
    best, (second, difference, margin) = best_of(CLEAR), lead_of(CLEAR)
    assert best.value == 0.01 and second.value == 0.1
    assert difference == pytest.approx(1.0) and margin == pytest.approx(0.0, abs=1e-9)
    assert best.margin == pytest.approx(4.302653 * 0.1 / math.sqrt(3), rel=1e-6)
    assert best_of([*CLEAR, Row(64, (0.1,))]).value == 0.01, "one seed of three"


@pytest.mark.parametrize(
    ("name", "values", "seeds", "sentence"),
    [
        ("learning_rate", (0.1,), 3, "2 to 12 different values"),
        ("learning_rate", (0.1, 0.1), 3, "2 to 12 different values"),
        ("learning_rate", (0.1, 0.2), 0, "1 to 12 seeds, not 0"),
        ("seed", (1, 2), 3, "seed cannot be swept"),
    ],
)
def test_what_cannot_be_swept_is_refused(name, values, seeds, sentence):
    with pytest.raises(ValueError, match=sentence):
        Sweep(name, values, seeds)


def test_all_values_are_trained_with_the_same_seeds_and_a_stopped_run_does_not_count():
    corpus = corpus_from_text("the sea and the lamp, the lamp and the sea. " * 40)
    shape = ModelConfig(vocab_size=corpus.vocab_size, context_length=8, n_layers=1, d_model=8, n_heads=1)
    config = TrainConfig(steps=2, batch_size=2, eval_every=0, eval_windows=2, device="cpu", precision="fp32", seed=5)
    rows, seen = [], []
    for tried in run_sweep(Sweep("d_model", (8, 16), 2), shape, config, corpus, should_stop=lambda: len(seen) > 2):
        if (after := add_result(rows, tried)) != rows:
            seen.append((tried.value, tried.seed, tried.model.config.d_model))
        rows = after
    assert seen == [(8, 5, 8), (8, 6, 8), (16, 5, 16)]
    assert [len(row.losses) for row in rows] == [2, 1] and len({*rows[0].losses, *rows[1].losses}) == 3
