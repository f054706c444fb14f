"""Proof: a planted sentence is found, and without it the model does not say it; nothing else changes."""

import math

import numpy as np
import pytest
import torch

from playground.data import corpus_from_sentences, corpus_from_text
from playground.influence.gradients import log_probability
from playground.influence.passages import first_copies, passages_of
from playground.influence.proof import Trial, mean_effect, prove, random_passages, rank_correlation, retrain, without
from playground.influence.ranking import Progress, moments_of, rank
from playground.model import ModelConfig
from playground.training import TrainConfig
from playground.training.losses import Interrupted

NAMES = ("Ann", "Ben", "Cy", "Dot", "Eva", "Fay")
THINGS = ("a kite", "a boat", "a drum", "a doll", "a ball")
PLACES = ("in the park", "by the wood", "at the lake")
LINES = [f"{NAMES[i % 6]} has {THINGS[(i * 7 + i // 6) % 5]} {PLACES[i % 3]}. " for i in range(120)]
ODD = "Zed eats purple mud. "
TRAINING = TrainConfig(steps=150, batch_size=8, learning_rate=1e-2, eval_every=0, eval_windows=2, device="cpu",
                       precision="fp32", seed=0)  # fmt: skip


def planted(times: int) -> str:
    lines = list(LINES)
    for n in range(times):
        lines.insert(7 + 90 * n // times, ODD)
    return "".join(lines)


def test_a_planted_sentence_is_found_and_the_fact_goes_with_it():
    torch.set_num_threads(1)
    corpus = corpus_from_text(planted(2), "word")
    config = ModelConfig(corpus.vocab_size, 16, 1, 16, 2, positions="rotary", norm="rmsnorm")
    *_, model = retrain(config, TRAINING, corpus, TRAINING.steps)
    ids, first = corpus.tokenizer.encode("Zed eats purple mud"), 2
    *_, ranked = rank(moments_of(model, TRAINING.steps, TRAINING), corpus, TRAINING, ids, first)
    texts = [corpus.tokenizer.decode(corpus.train[slice(*each.places[0])].tolist()) for each in ranked.raising]
    odd = ranked.raising[0].places
    assert len(odd) == 2 and "purple" in texts[0] and len(set(texts)) == len(texts), texts
    *progress, trial = prove(config, TRAINING, corpus, odd, ids, first, steps=TRAINING.steps, seed=0)
    assert all(isinstance(each, Progress) for each in progress) and isinstance(trial, Trial)
    assert math.exp(ranked.log_probability) > 0.3 and math.exp(trial.control) > 0.3
    assert math.exp(trial.without) < 0.01


def test_without_a_passage_only_its_place_changes_and_a_document_is_replaced_by_another():
    corpus = corpus_from_text(planted(10), "char")
    passages = passages_of(corpus)
    all_ = list(zip(passages.starts.tolist(), passages.ends.tolist()))
    ranges = [(a, b) for a, b in all_ if "purple" in corpus.tokenizer.decode(corpus.train[a:b].tolist())]
    assert (
        len(ranges) > 5
        and [all_[i] for i in np.flatnonzero(first_copies(corpus, passages) == all_.index(ranges[0]))] == ranges
    )
    changed = without(corpus, ranges, 4)
    assert "purple" not in corpus.tokenizer.decode(changed.train.tolist()) and len(changed.train) == len(corpus.train)
    same = np.ones(len(corpus.train), dtype=bool)
    for start, end in ranges:
        same[start:end] = False
    assert (changed.train.numpy() == corpus.train.numpy())[same].all()
    others = random_passages(passages, ranges, 4)
    assert len(set(others)) == len(ranges) and not set(others) & set(ranges)
    assert random_passages(passages, ranges, 4) == others != random_passages(passages, ranges, 5)
    corpus = corpus_from_sentences()
    passages = passages_of(corpus)
    gone = (int(passages.starts[2]), int(passages.ends[2]))
    changed = without(corpus, [gone], 0)
    before, after = ([*map(tuple, c.windows("train", 12)[0].tolist())] for c in (corpus, changed))
    assert len(before) == len(after) and before[:2] + before[3:] == after[:2] + after[3:]
    assert after[2] in before and after[2] != before[2]
    with pytest.raises(ValueError, match="whole text"):
        without(corpus, list(zip(passages.starts.tolist(), passages.ends.tolist())), 0)


def test_the_same_seed_trains_the_same_model_and_seeds_have_their_numbers():
    corpus = corpus_from_text(planted(1), "char")
    config, short = ModelConfig(corpus.vocab_size, 16, 1, 8, 2), TRAINING.replace(steps=40)
    *steps, a = retrain(config, short, corpus, 4)
    *_, b = retrain(config, short, corpus, 4)
    assert steps == [1, 2, 3, 4] and log_probability(a, [1, 2, 3], 1) == log_probability(b, [1, 2, 3], 1)
    with pytest.raises(Interrupted):
        list(retrain(config, short, corpus, 4, should_stop=lambda: True))
    assert mean_effect([Trial(0, -3.0, -1.0)]) == (2.0, math.inf)
    mean, margin = mean_effect([Trial(0, -3.0, -1.0), Trial(1, -3.0, 0.0), Trial(2, -2.0, -1.0)])
    assert mean == 2.0 and margin == pytest.approx(4.303 / math.sqrt(3), rel=1e-3)
    assert rank_correlation([1, 2, 3, 4], [10, 20, 20, 90]) == pytest.approx(0.9487, abs=1e-4)
    assert rank_correlation([3, 2, 1], [1, 5, 9]) == -1.0 and math.isnan(rank_correlation([1, 1, 2], [1, 2, 3]))
