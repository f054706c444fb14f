"""Streams that share their passes write what each would write alone, however they come, go and pause."""

import gc
import itertools
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from playground.engine import ContinuousBatch, Request, SamplingConfig, generate, shared_batch, writers_with
from playground.engine import batch as batch_module
from playground.engine.sampling import draw, streams
from playground.model import ModelConfig, Transformer
from playground.processes import Aside

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
    more = (
        {}, {"n_samples": 3}, {"slide_by": 1}, {"slide_by": 4}, {"slide_by": 2, "n_samples": 2}, {"use_cache": False},
        {"slide_by": 12},
    )[number % 7]  # fmt: skip
    return [number % 29, 5, 7, 11][: 1 + number % 4] * (1 + number % 4), 8 + number % 13, rules, more


def facts(steps) -> list[tuple]:
    return [(s.index, s.tokens, s.length, s.cache_length, s.projections, s.rebuilt) for s in steps]


def join(batch: ContinuousBatch, prompt: list[int], n: int, rules: SamplingConfig | None = None, **more):
    return batch.join(Request(TINY, prompt, n, rules, **more))


@pytest.mark.parametrize("kind", KINDS)
def test_many_requests_write_what_each_writes_alone(kind):
    model = of_kind(kind)
    batch = ContinuousBatch(model)
    wishes = [asked(number) for number in range(11)]
    running = {i: batch.join(Request(model.config, *wish[:3], **wish[3])) for i, wish in enumerate(wishes)}
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
        assert facts(found[i]) == facts(alone)
        for ours, theirs in zip(found[i], alone):
            assert torch.allclose(ours.logits, theirs.logits, atol=1e-4)
    assert len(batch) == 0


def test_threads_that_come_and_go_in_the_middle_disturb_nobody():
    model = of_kind("rotary")
    batch = ContinuousBatch(model)
    wishes = [asked(number) for number in range(24)]
    found: dict[int, list] = {}

    def visit(i: int) -> None:
        prompt, n, rules, more = wishes[i]
        steps = batch.join(Request(model.config, prompt, n, rules, **more))
        if i % 4 == 3:  # leaves after two tokens
            found[i] = list(itertools.islice(steps, 2))
            steps.close()
        else:
            found[i] = list(steps)

    with ThreadPoolExecutor(len(wishes)) as visitors:
        list(visitors.map(visit, range(len(wishes))))
    for i, (prompt, n, rules, more) in enumerate(wishes):
        alone = facts(generate(model, prompt, n, rules, **more))
        assert facts(found[i]) == (alone[:2] if i % 4 == 3 else alone)
    assert len(batch) == 0


def test_a_failure_of_the_shared_pass_reaches_all_and_the_next_request_begins_anew():
    model = of_kind("learned")
    batch = ContinuousBatch(model)
    both = [join(batch, [1, 2], 20), join(batch, [3], 20)]
    for steps in both:
        next(steps)
    works = batch._model.decode_one
    batch._model.decode_one = lambda *_: (_ for _ in ()).throw(RuntimeError("no memory"))
    for steps in both:
        with pytest.raises(RuntimeError, match="no memory"):
            list(steps)
    batch._model.decode_one = works
    assert facts(join(batch, [1, 2], 5)) == facts(generate(model, [1, 2], 5))


def five_of_which_one_fails(batch: ContinuousBatch, **more) -> None:
    """Requests with equal rules, of one length, so that all that can be done together is; the third one fails."""
    wishes = [([1 + i, 2], 30, SamplingConfig(seed=i)) for i in range(5)]
    running_requests = [join(batch, *wish, **more) for wish in wishes]
    found, problems = [[] for _ in wishes], {}
    for _ in range(31):
        for i, running in enumerate(running_requests):
            try:
                found[i] += [step] if (step := next(running, None)) else []
            except RuntimeError as problem:
                problems[i] = str(problem)
    assert problems == {2: "of number 2 alone"} and len(found[2]) < 30 and len(batch) == 0
    model = of_kind("learned")
    for i in (0, 1, 3, 4):
        assert facts(found[i]) == facts(generate(model, *wishes[i], **more))


def fail_if(wrong: bool) -> None:
    if wrong:
        raise RuntimeError("of number 2 alone")


@pytest.mark.parametrize("n_samples", [1, 2])
def test_a_request_whose_choice_fails_ends_alone(monkeypatch, n_samples):
    stream = streams(2, 1)[0]
    sixth = [stream.next() for _ in range(6)][5]  # the random number that the third request's sixth choice is made by
    monkeypatch.setattr(
        "playground.engine.request.draw", lambda rows, numbers: fail_if(sixth in numbers) or draw(rows, numbers)
    )
    five_of_which_one_fails(ContinuousBatch(of_kind("learned")), n_samples=n_samples)


def test_a_request_whose_prompt_cannot_be_read_ends_alone(monkeypatch):
    batch = ContinuousBatch(of_kind("learned"))
    prefill = batch._model.prefill
    batch._model.prefill = lambda ids, cache: fail_if([3, 2] in ids.tolist()) or prefill(ids, cache)
    five_of_which_one_fails(batch)


def test_a_stream_closed_by_the_garbage_collector_during_a_pass_disturbs_nobody(monkeypatch):
    model = of_kind("rotary")
    batch = ContinuousBatch(model)
    alone = facts(generate(model, [3, 4, 5], 30))
    abandoned = join(batch, [1, 2], 50)
    next(abandoned)
    cycle = [abandoned]
    cycle.append(cycle)
    del abandoned, cycle  # nobody holds the stream but itself

    collected = []

    def collecting(distribution, numbers):
        if not collected:
            collected.append(gc.collect())
        return draw(distribution, numbers)

    monkeypatch.setattr("playground.engine.request.draw", collecting)
    found = []
    reader = threading.Thread(target=lambda: found.extend(join(batch, [3, 4, 5], 30)), daemon=True)
    reader.start()
    reader.join(60)
    assert facts(found) == alone and collected and len(batch) == 0


def test_writers_are_counted_until_they_leave_and_a_batch_does_not_keep_its_model_alive():
    model = of_kind("learned")
    steps = [join(shared_batch(model, precision), [1], 9) for precision in ("fp32", "bf16")]
    assert writers_with(model) == 0
    for step in steps:
        next(step)
    assert writers_with(model) == 2 and shared_batch(model) is shared_batch(model)
    steps[0].close()
    assert writers_with(model) == 1
    for hooked in (False, True):
        model = Transformer(TINY)
        if hooked:
            model.register_forward_hook(lambda *_: None)
        assert len(list(shared_batch(model).join(Request(model.config, [1], 3)))) == 3
        reference = weakref.ref(model)
        del model
        gc.collect()
        assert reference() is None


@pytest.mark.parametrize("at_once", [50, 20])
@pytest.mark.parametrize("kind", ["learned", "rotary", "experts"])
def test_windows_that_slide_in_the_same_pass_are_read_together_as_many_as_stay_in_the_cache(monkeypatch, kind, at_once):
    monkeypatch.setattr(batch_module, "TOKENS_AT_ONCE", at_once)
    model = of_kind(kind)
    batch, read = ContinuousBatch(model), []
    plain = batch._model.prefill
    monkeypatch.setattr(batch._model, "prefill", lambda ids, cache: read.append(tuple(ids.shape)) or plain(ids, cache))
    # who joins a pass later brings a token more, so that all texts have the same length
    prompts = [[7 * i % 29 for i in range(1, 3 + number)] for number in range(5)]
    rules = [SamplingConfig(seed=number) for number in range(5)]
    running = [join(batch, *wish) for wish in zip(prompts, [20] * 5, rules)]
    found = [facts(steps) for steps in zip(*zip(*running))]
    assert read[:5] == [(1, n) for n in range(2, 7)]
    assert {length for _, length in read[5:]} == {10}  # 13 tokens less a quarter of the context
    assert max(n for n, _ in read[5:]) == at_once // 10
    assert found == [facts(generate(model, *wish)) for wish in zip(prompts, [20] * 5, rules)]


class Slow(Aside):
    """Work of which another thread has begun each piece, and ends none before it is `let`."""

    let = False

    def __init__(self, work, offered):
        super().__init__(work, False)

    @property
    def underway(self) -> bool:
        return not Slow.let


@pytest.mark.parametrize("kind", ["learned", "experts"])
def test_others_write_on_while_a_window_is_read_and_a_reader_may_leave_meanwhile(monkeypatch, kind):
    monkeypatch.setattr(batch_module, "Aside", Slow)
    monkeypatch.setattr(Slow, "let", False)
    model, rules = of_kind(kind), SamplingConfig(seed=1)
    batch, requests = ContinuousBatch(model), [Request(TINY, [number], 9, rules) for number in (3, 4, 5)]
    members = [batch_module._Member(request) for request in requests]
    batch._members += members[:1]
    batch._steps(1)  # nobody else is writing: its prompt is read at once
    batch._members += members[1:]
    batch._steps(3)
    assert [len(request.texts[0]) for request in requests] == [5, 1, 1]
    members[1].gone, Slow.let = True, True
    batch._steps(12)
    assert [len(request.texts[0]) for request in requests] == [10, 1, 10]
    for request in (requests[0], requests[2]):
        alone = generate(model, request.texts[0][:1], 9, rules)
        assert request.texts[0][1:] == [step.tokens[0] for step in alone]
    assert not batch._rows
