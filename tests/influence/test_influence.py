"""Influence is what autograd's gradients say, matches are those of a search, and a planted sentence is found."""

import math
import random

import numpy as np
import pytest
import torch

from playground.data import corpus_from_language, corpus_from_sentences, corpus_from_text
from playground.data.baselines import IGNORE
from playground.influence.geometry import optimizer_step
from playground.influence.gradients import (
    changes_along,
    log_probability,
    loss_gradient,
    product,
    selection_gradient,
    selection_windows,
    step_length,
)
from playground.influence.passages import first_copies, most_similar, passages_of, windows_of
from playground.influence.proof import Trial, mean_effect, prove, random_passages, rank_correlation, retrain, without
from playground.influence.ranking import Measured, Progress, Ranked, measure, moments_of, rank
from playground.influence.verbatim import Match, SuffixArray, copied, matches
from playground.model import ModelConfig, Transformer
from playground.training import TrainConfig
from playground.training.losses import Interrupted
from tests.model.configs import GPU

TEXT = "Ann has a red kite. Ben has a blue boat! Cy has one drum? " * 6
CORPUS = corpus_from_text(TEXT, "char")
DENSE = ModelConfig(CORPUS.vocab_size, 16, 2, 8, 2)
IDS = CORPUS.tokenizer.encode("Ben has a blue boat! Ann has")
TRAINING = TrainConfig(steps=10, batch_size=4)


def model_of(config: ModelConfig) -> Transformer:
    model = Transformer(config, seed=3).double()
    with torch.no_grad():
        for parameter in model.parameters():  # also those that begin at zero
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return model.to(GPU)


@pytest.mark.parametrize("config", [DENSE, DENSE.replace(n_experts=4, d_expert=8), DENSE.replace(tie_embeddings=True)])
def test_the_change_along_a_direction_is_the_product_with_each_examples_gradient(config):
    model = model_of(config)
    inputs, targets, _ = windows_of(CORPUS, 16)
    direction = gradient = selection_gradient(model, IDS, 20)
    slopes = changes_along(model, direction, step_length(model, gradient, direction) / 2, inputs[:3], targets[:3])
    for i in range(3):
        one = -product(direction, loss_gradient(model, inputs[i : i + 1], targets[i : i + 1]))
        assert float(slopes[i].sum()) == pytest.approx(one, rel=1e-3, abs=1e-6)
    only = torch.arange(16)[None] == 4
    one = -product(direction, loss_gradient(model, inputs[:1], targets[:1], only))
    assert float(slopes[0, 4]) == pytest.approx(one, rel=1e-3)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_influence_is_what_a_step_on_a_passage_changes(optimizer):
    """Learn each passage a little more and a little less, and see what the selection is worth then."""
    model, training = model_of(DENSE), TRAINING.replace(optimizer=optimizer)
    *_, ranked = rank(moments_of(model, 10, training), CORPUS, training, IDS[:20], 4)
    inputs, targets, places = windows_of(CORPUS, 16)
    rate = sum(training.rate_at(n) for n in range(1, 11))

    def after(step: dict, amount: float) -> float:
        moved = model_of(DENSE)
        with torch.no_grad():
            for name, parameter in moved.named_parameters():
                parameter.add_(step[name], alpha=-amount)
        return log_probability(moved, IDS[:20], 4)

    assert ranked.raising and ranked.lowering
    for each in ranked.raising + ranked.lowering:
        inside = torch.from_numpy(np.any([(start <= places) & (places < end) for start, end in each.places], axis=0))
        gradient = loss_gradient(model, inputs, targets, inside & (targets >= 0))
        step = optimizer_step(model, CORPUS, training, gradient)
        amount = 1e-3 / math.sqrt(product(step, step))
        slope = (after(step, amount) - after(step, -amount)) / (2 * amount)
        assert each.effect == pytest.approx(rate * slope, rel=0.01)


@pytest.mark.parametrize("first", [1, 3, 27])
def test_each_selected_token_is_predicted_once(first):
    inputs, targets, counts = selection_windows(IDS, first, 8)
    assert targets[counts].tolist() == IDS[first:] and inputs.shape == targets.shape and inputs.shape[1] == 8
    for x, y in zip(inputs.tolist(), targets.tolist()):
        assert all(x[i + 1] == y[i] for i in range(7) if y[i + 1] != IGNORE)


def test_passages_are_sentences_and_those_that_share_most_with_the_selection_are_measured():
    passages, tokens = passages_of(CORPUS), CORPUS.train.tolist()
    texts = [CORPUS.tokenizer.decode(tokens[a:b]) for a, b in zip(passages.starts, passages.ends)]
    assert texts[:3] == ["Ann has a red kite.", " Ben has a blue boat!", " Cy has one drum?"]
    assert "".join(texts) == CORPUS.tokenizer.decode(tokens)
    apart = corpus_from_sentences()
    whole = passages_of(apart)
    assert len(whole) == 16 and all(apart.train[end] == -1 for end in whole.ends)
    inputs, _, places = windows_of(apart, 8)
    assert apart.train[places[3, 0]] == inputs[3, 1]
    tokens = torch.arange(640).reshape(40, 16) % 97
    tokens[33, 4:10] = torch.tensor([90, 3, 90, 3, 90, 4])
    found = most_similar(CORPUS, tokens, [90, 3, 90, 3, 90, 4], 8)
    assert found[0] == 33 and len(set(found.tolist())) == 8
    assert most_similar(CORPUS, tokens, [1, 2], 40).tolist() == list(range(40))


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_passages_that_say_the_same_raise_a_selection(optimizer):
    training, model = TRAINING.replace(optimizer=optimizer), Transformer(DENSE, seed=0)
    moments = moments_of(model, 10, TRAINING, [0, 4, 7], lambda step: Transformer(DENSE, seed=step))
    assert [m.step for m in moments] == [4, 7, 10]
    assert sum(m.rate for m in moments) == pytest.approx(sum(TRAINING.rate_at(n) for n in range(1, 11)))
    *progress, found = measure(moments, CORPUS, training, IDS[:20], 4)
    assert isinstance(found, Measured) and progress[-1].share == 1.0
    sums = found.passages.sums(found.effects)
    best = found.passages.starts[int(np.argmax(sums))]
    assert CORPUS.tokenizer.decode(CORPUS.train[best : best + 6].tolist()) == " Ben h"


def test_a_ranking_names_both_sides_and_the_rules_and_stops_when_asked():
    model = Transformer(DENSE, seed=0).to(GPU)
    moments = moments_of(model, 10, TRAINING)
    *_, ranked = rank(moments, CORPUS, TRAINING, IDS[:20], 4)
    assert isinstance(ranked, Ranked) and ranked.measured == ranked.of == len(passages_of(CORPUS))
    effects = [each.effect for each in ranked.raising]
    assert effects == sorted(effects, reverse=True) and all(each.effect < 0 for each in ranked.lowering)
    assert ranked.log_probability == log_probability(model, IDS[:20], 4) and ranked.rules == ()
    with pytest.raises(Interrupted):
        list(rank(moments, CORPUS, TRAINING, IDS[:20], 4, should_stop=lambda: True))
    corpus = corpus_from_language("addition", n_characters=1500, n_validation=400)
    model = Transformer(DENSE.replace(vocab_size=corpus.vocab_size), seed=0)
    ids = corpus.tokenizer.encode("12+34=46\n")
    *_, ranked = rank(moments_of(model, 10, TRAINING), corpus, TRAINING, ids, 6)
    known = set(corpus.kinds(*corpus.windows("train", 16)).names)
    assert {name for name, _ in ranked.rules} <= known and len(known) > 3
    assert sum(share for _, share in ranked.rules) == pytest.approx(1)


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
    assert copied(SuffixArray(text), "too short", held_out=text).usual is None and not found.whole
    assert copied(SuffixArray(text), " with five", begun="my box").matches == (), "a few words"
    short = copied(SuffixArray(text), " with five dozen", "0123456789" * 30, begun="my box")
    assert short.whole and short.usual == 0.0 and short.matches == (Match(0, 16, 1, (text.index(" with five"),)),)
    assert copied(SuffixArray(text), text[10:60], held_out=text).usual == 1.0


NAMES = ("Ann", "Ben", "Cy", "Dot", "Eva", "Fay")
THINGS = ("a kite", "a boat", "a drum", "a doll", "a ball")
PLACES = ("in the park", "by the wood", "at the lake")
LINES = [f"{NAMES[i % 6]} has {THINGS[(i * 7 + i // 6) % 5]} {PLACES[i % 3]}. " for i in range(120)]
ODD = "Zed eats purple mud. "
PROVEN = TrainConfig(steps=150, batch_size=8, learning_rate=1e-2, eval_every=0, eval_windows=2, device="cpu",
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
    *_, model = retrain(config, PROVEN, corpus, PROVEN.steps)
    ids, first = corpus.tokenizer.encode("Zed eats purple mud"), 2
    *_, ranked = rank(moments_of(model, PROVEN.steps, PROVEN), corpus, PROVEN, ids, first)
    texts = [corpus.tokenizer.decode(corpus.train[slice(*each.places[0])].tolist()) for each in ranked.raising]
    odd = ranked.raising[0].places
    assert len(odd) == 2 and "purple" in texts[0] and len(set(texts)) == len(texts), texts
    *progress, trial = prove(config, PROVEN, corpus, odd, ids, first, steps=PROVEN.steps, seed=0)
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
    config, ids = DENSE.replace(vocab_size=corpus.vocab_size), corpus.tokenizer.encode("the cat plays with")
    *_, trial = prove(config, PROVEN, corpus, [gone], ids, 3, steps=60, seed=0)
    assert trial.said.index(".") == len(trial.said) - 1, "it ends where its document ends"
    with pytest.raises(ValueError, match="whole text"):
        without(corpus, list(zip(passages.starts.tolist(), passages.ends.tolist())), 0)


def test_the_same_seed_trains_the_same_model_and_seeds_have_their_numbers():
    corpus = corpus_from_text(planted(1), "char")
    config, short = ModelConfig(corpus.vocab_size, 16, 1, 8, 2), PROVEN.replace(steps=40)
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
