"""What a model writes while it learns is judged fairly, cheaply, and without changing what it learns."""

import numpy as np
import pytest
import torch

from playground.data import corpus_from_language, corpus_from_text
from playground.data.judging import Share
from playground.data.languages import ExactModel
from playground.model import ModelConfig, Transformer
from playground.training import Evaluated, Finished, History, SkillMeasured, TrainConfig, skills, train
from playground.training.skills import MOST_TIME, judged, judged_in_the_end, share_right

TINY = dict(n_layers=1, d_model=16, n_heads=2, d_ff=16, context_length=24)
CONFIG = TrainConfig(steps=20, batch_size=4, eval_every=5, eval_windows=8, device="cpu", precision="fp32")


def tiny(corpus, seed=0):
    return Transformer(ModelConfig(vocab_size=corpus.vocab_size, **TINY), seed=seed)


@pytest.mark.parametrize(("name", "unit"), [("addition", "char"), ("copy", "word"), ("brackets", "char")])
def test_the_language_itself_is_judged_right_and_a_random_model_wrong(name, unit, monkeypatch):
    corpus = corpus_from_language(name, n_characters=4000, n_validation=2000, unit=unit)
    model = tiny(corpus)
    assert share_right(model, corpus, 16).right == 0 < share_right(model, corpus, 16).of <= 16

    def write(model, prompt, n, sampling, *, n_samples, **more):
        """The language's own generator in the model's place, a token of every row at a time."""
        exact: ExactModel = corpus.exact_model()
        rng = torch.Generator().manual_seed(sampling.seed)
        beliefs = [exact._enter(np.array([0]), np.array([1.0]))] * n_samples
        for index in range(n):
            tokens = []
            for i, belief in enumerate(beliefs):
                chances = torch.tensor(np.bincount(exact.tokens[belief.places], belief.weights))
                tokens.append(int(torch.multinomial(chances, 1, generator=rng)))
                beliefs[i] = exact.read(belief, tokens[i])[1]
            yield type("Step", (), {"index": index, "tokens": tuple(tokens)})

    monkeypatch.setattr(skills, "generate", write)
    share = share_right(model, corpus, 16)
    assert share.right == share.of >= 8  # an empty line is no line


def test_what_has_no_grammar_or_mask_is_not_judged_and_judging_takes_a_thirtieth_of_the_time(monkeypatch):
    text = corpus_from_text("the cat sat on the mat and the dog lay by the door. " * 20)
    assert share_right(tiny(text), text, 4) == Share(0, 0)
    corpus = corpus_from_language("copy", n_characters=2000, n_validation=1000)
    unmasked = Transformer(ModelConfig(vocab_size=corpus.vocab_size, causal=False, **TINY), seed=0)
    assert share_right(unmasked, corpus, 4) == Share(0, 0)
    clock = [0.0]
    monkeypatch.setattr(skills.time, "perf_counter", lambda: clock[0])

    def slow(*arguments, **more):
        clock[0] += 1.0
        return Share(1, 2)

    monkeypatch.setattr(skills, "share_right", slow)
    events = [Evaluated(step, 2.0 * step, train_loss=1.0, val_loss=1.0) for step in range(101)]
    found = [e for e in judged(iter(events), None, None) if isinstance(e, SkillMeasured)]
    times = [2.0 * event.step for event in found]
    assert 5 <= len(found) <= 6
    assert all((i + 1) * 1.0 <= MOST_TIME * seconds for i, seconds in enumerate(times) if i)


def test_a_run_that_is_judged_learns_the_same(monkeypatch):
    corpus = corpus_from_language("copy", n_characters=4000, n_validation=2000)
    monkeypatch.setattr(skills, "MOST_TIME", 1e9)
    plain, watched = tiny(corpus), tiny(corpus)
    losses = [e.val_loss for e in train(plain, corpus, CONFIG) if isinstance(e, Evaluated)]
    history = History()
    events = judged(train(watched, corpus, CONFIG), watched, corpus)
    for event in events:
        history.add(event)
        if isinstance(event, Finished):
            history.add(judged_in_the_end(event, watched, corpus))
    assert history.evaluations["val_loss"] == losses
    for one, other in zip(plain.parameters(), watched.parameters()):
        assert torch.equal(one, other)
    assert [record["step"] for record in history.judged] == [5, 10, 15, 20, 20]
    assert all(record["of"] for record in history.judged)
    assert History.from_dict(history.to_dict()).judged == history.judged
