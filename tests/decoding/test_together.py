"""Streams that share their passes write what each would write alone, however they come, go and pause."""

import itertools
import threading

import pytest
import torch

from playground.decoding import SamplingConfig, Together, generate
from playground.model import ModelConfig, Transformer

TINY = ModelConfig(vocab_size=29, context_length=12, n_layers=2, d_model=16, n_heads=2)
KINDS = {
    "learned": {},
    "rotary": {"positions": "rotary", "norm": "rmsnorm", "qk_norm": True, "activation": "swiglu"},
    "sinusoidal, separate heads": {"positions": "sinusoidal", "attention_layout": "separate_heads"},
    "grouped heads": {"n_heads": 4, "n_kv_heads": 2},
    "experts": {"n_experts": 4, "positions": "rotary"},
    "no mask": {"causal": False},
}


def of_kind(kind: str) -> Transformer:
    model = Transformer(TINY.replace(init_std=0.3, **KINDS[kind]), seed=3)
    return model


def asked(number: int) -> tuple[list[int], int, SamplingConfig, dict]:
    """The wishes of visitor `number`: prompts, lengths, rules and ways to slide that differ."""
    rules = (
        SamplingConfig(seed=number),
        SamplingConfig(seed=number, temperature=0.7, top_k=5),
        SamplingConfig(greedy=True),
        SamplingConfig(seed=number, top_p=0.9, repetition_penalty=1.3),
    )[number % 4]
    more = ({}, {"n_samples": 3}, {"slide_by": 4}, {"when_full": "stop"}, {"use_cache": False})[number % 5]
    return [number % 29, 5, 7, 11][: 1 + number % 4] * (1 + number % 4), 8 + number % 13, rules, more


def told(steps) -> list[tuple]:
    return [(s.index, s.tokens, s.length, s.cache_length, s.cache_bytes, s.projections, s.rebuilt) for s in steps]


@pytest.mark.parametrize("kind", KINDS)
def test_many_streams_write_what_each_writes_alone(kind):
    model = of_kind(kind)
    shared = Together(model)
    wishes = [asked(number) for number in range(11)]
    running = {i: shared.generate(*wish[:3], **wish[3]) for i, wish in enumerate(wishes)}
    found = {i: [] for i in running}
    turn = 0
    while running:  # each at its own pace: stream i moves every (i mod 3 + 1)th turn, and they end at different times
        for i in [i for i in running if turn % (i % 3 + 1) == 0]:
            step = next(running[i], None)
            if step is None:
                del running[i]
            else:
                found[i].append(step)
        turn += 1
    for i, (prompt, n, rules, more) in enumerate(wishes):
        alone = list(generate(model, prompt, n, rules, **more))
        assert told(found[i]) == told(alone)
        for ours, theirs in zip(found[i], alone):
            assert torch.allclose(ours.logits, theirs.logits, atol=1e-4)
    assert len(shared) == 0


def test_threads_that_come_and_go_in_the_middle_disturb_nobody():
    model = of_kind("rotary")
    shared = Together(model)
    wishes = [asked(number) for number in range(24)]
    found: dict[int, list] = {}

    def visit(i: int) -> None:
        prompt, n, rules, more = wishes[i]
        steps = shared.generate(prompt, n, rules, **more)
        if i % 4 == 3:  # leaves after two tokens
            found[i] = list(itertools.islice(steps, 2))
            steps.close()
        else:
            found[i] = list(steps)

    visitors = [threading.Thread(target=visit, args=(i,)) for i in range(len(wishes))]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join(60)
    for i, (prompt, n, rules, more) in enumerate(wishes):
        alone = told(generate(model, prompt, n, rules, **more))
        assert told(found[i]) == (alone[:2] if i % 4 == 3 else alone)
    assert len(shared) == 0


def test_one_who_pauses_holds_up_nobody_and_finds_the_text_unchanged():
    model = of_kind("learned")
    shared = Together(model)
    rules = SamplingConfig(seed=1)
    paused = shared.generate([1, 2], 200, rules)
    first = [next(paused) for _ in range(3)]
    other = list(shared.generate([3, 4, 5], 150, rules))
    assert told(other) == told(generate(model, [3, 4, 5], 150, rules))
    assert told(first + list(paused)) == told(generate(model, [1, 2], 200, rules))


def test_what_goes_wrong_in_a_pass_reaches_everyone_and_the_next_stream_begins_anew(monkeypatch):
    model = of_kind("learned")
    shared = Together(model)
    streams = [shared.generate([1, 2], 20), shared.generate([3], 20)]
    for stream in streams:
        next(stream)
    works = shared._read.newest
    shared._read.newest = lambda *_: (_ for _ in ()).throw(RuntimeError("no memory"))
    for stream in streams:
        with pytest.raises(RuntimeError, match="no memory"):
            list(stream)
    shared._read.newest = works
    assert told(shared.generate([1, 2], 5)) == told(generate(model, [1, 2], 5))


def test_bad_wishes_are_refused_before_anybody_waits():
    shared = Together(of_kind("learned"))
    with pytest.raises(ValueError, match="the prompt is empty"):
        shared.generate([], 5)
    with pytest.raises(ValueError, match="does not know"):
        shared.generate([99], 5)
    assert len(shared) == 0
