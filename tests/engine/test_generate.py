"""Decoding with a cache gives the very tokens of decoding without, for every config and past the end of the context."""

import itertools

import pytest
import torch

from playground.data.tokenizers import CharTokenizer
from playground.engine import InferenceModel, SamplingConfig, count_projections, generate
from playground.engine.request import default_slide, window_start
from playground.model import PRESETS, Transformer
from tests.model.configs import CAUSAL, TINY

PROMPT = [1, 2, 3, 4, 5]


@pytest.mark.parametrize("slide_by", [None, 1, TINY.context_length])
@pytest.mark.parametrize("config", CAUSAL.values(), ids=CAUSAL.keys())
@pytest.mark.parametrize("prompt", [PROMPT, [i % 11 for i in range(30)]], ids=["short prompt", "long prompt"])
def test_every_token_is_chosen_from_a_plain_forward_on_its_window(config, slide_by, prompt):
    model, T, window = Transformer(config, seed=1), config.context_length, prompt[-config.context_length :]
    slid = 0
    both = (generate(model, prompt, 2 * T, slide_by=slide_by, use_cache=use_cache) for use_cache in (True, False))
    for cached, plain in zip(*both):
        if len(window) > T:
            window, slid = window[3 if slide_by is None else slide_by :], slid + 1
        with torch.no_grad():
            expected = model(torch.tensor([window])).logits[:, -1]
        assert all(torch.allclose(step.logits, expected, atol=1e-4) for step in (cached, plain))
        assert (cached.cache_length, plain.cache_length) == (len(window), 0)
        window = [*window, *cached.tokens]
    assert slid >= 2


def test_a_window_slides_by_a_quarter_of_the_context_unless_asked_otherwise():
    assert [default_slide(T) for T in (1, 3, 4, 12, 128)] == [1, 1, 1, 3, 32]
    model = Transformer(TINY, seed=1)
    texts = [[s.tokens for s in generate(model, PROMPT, 40, **more)] for more in ({}, {"slide_by": 3}, {"slide_by": 1})]
    assert texts[0] == texts[1] != texts[2]
    for slide_by in (1, 3, 12):
        first = [window_start(20, length, 12, slide_by) for length in range(20, 60)]
        assert first[0] == 8 and {b - a for a, b in itertools.pairwise(first)} <= {0, slide_by}
        assert all(1 <= length - start <= 12 for length, start in enumerate(first, 20))


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("slide_by", [None, 1, 7, 12])
def test_every_token_takes_one_pass_whose_projections_are_counted(monkeypatch, slide_by, use_cache):
    read = []
    for name in ("prefill", "decode_one"):
        plain = getattr(InferenceModel, name)
        counted = lambda self, ids, *more, plain=plain: read.append(ids.numel()) or plain(self, ids, *more)  # noqa: E731
        monkeypatch.setattr(InferenceModel, name, counted)
    steps = generate(Transformer(TINY), PROMPT, 40, n_samples=2, slide_by=slide_by, use_cache=use_cache)
    assert read == []
    for n, step in enumerate(steps, 1):
        assert len(read) == n and step.projections == 3 * sum(read)


@pytest.mark.parametrize("new_tokens", [3, 500])
def test_golden_counts_of_projections(new_tokens):
    golden = {3: (54, 24), 500: (381_750, 1_515)}[new_tokens]
    assert count_projections(5, new_tokens) == golden
    model = Transformer(PRESETS["s5"].replace(context_length=512, d_model=8, n_layers=1))
    cached, plain = (list(generate(model, PROMPT, new_tokens, use_cache=use))[-1] for use in (True, False))
    # the golden count reads the last token, too, for which no pass is made before somebody wants another one
    assert (plain.projections, cached.projections + 3) == golden


@pytest.mark.parametrize("use_cache", [True, False])
def test_a_sample_is_the_same_however_many_there_are(use_cache):
    model, sampling = Transformer(TINY, seed=1), SamplingConfig(seed=5, top_p=0.9)

    def texts(n):
        steps = list(generate(model, PROMPT, 30, sampling, n_samples=n, use_cache=use_cache))
        return [tuple(s.tokens[i] for s in steps) for i in range(n)]

    four = texts(4)
    assert texts(1) == four[:1] and texts(3) == four[:3]


def test_stop_strings_end_a_sample_and_closing_early_or_no_mask_leaves_nothing_behind():
    tokenizer = CharTokenizer("abcdefghij")
    model = Transformer(TINY, seed=1)
    free = [s.tokens[0] for s in generate(model, PROMPT, 40)]
    stop = tokenizer.decode(free[10:13])
    stopped = list(generate(model, PROMPT, 40, tokenizer=tokenizer, stop=[stop]))
    text = tokenizer.decode([s.tokens[0] for s in stopped])
    assert text.endswith(stop) and text.index(stop) == len(text) - len(stop)
    assert stopped[-1].stopped == (True,) and len(stopped) <= 13
    steps = list(generate(Transformer(TINY.replace(causal=False)), PROMPT, 4))
    assert [(s.cache_length, s.projections) for s in steps] == [(0, 15), (0, 33), (0, 54), (0, 78)]
    steps = generate(Transformer(TINY), PROMPT, 10)
    next(steps)
    assert not torch.is_inference_mode_enabled()
    steps.close()
    assert torch.ones(1, requires_grad=True).requires_grad


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([], 5), "prompt.*empty"),
        (([11], 5), "does.*know"),
        (([-1], 5), "does.*know"),
        ((PROMPT, 0), "max_new_tokens.*1"),
    ],
)
def test_bad_input_is_refused_before_the_first_step(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        generate(Transformer(TINY), *arguments)
    with pytest.raises(ValueError, match=r"strings.*tokenizer"):
        generate(Transformer(TINY), PROMPT, 5, stop=["x"])
    with pytest.raises(ValueError, match=r"slide_by.*1.*0"):
        generate(Transformer(TINY), PROMPT, 5, slide_by=0)
    with pytest.raises(ValueError, match=r"slide_by 13.*12"):
        generate(Transformer(TINY), PROMPT, 5, slide_by=13)
