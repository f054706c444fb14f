"""Edits in generation: cached, uncached, in a batch and among others, the tokens are those of edited passes."""

import pytest
import torch

from playground.engine import ContinuousBatch, Request, SamplingConfig, generate
from playground.inspection.edits import (
    EditCell,
    ForceExpert,
    RemoveMask,
    SwapPattern,
    SwitchOff,
    SwitchOffExperts,
    edits_tap,
)
from playground.model import Pass, Transformer
from tests.model.configs import CAUSAL, TINY

PROMPT, NEW = [1, 2, 3, 4, 5], 6  # within the context of 12
EDITS = (
    SwitchOff(1, "head", 2),
    SwitchOff(0, "feed-forward"),
    EditCell(1, 0, 4, 2, 0.9),
    EditCell(0, 3, 7, 6, 0.2),  # of tokens that are still to be written
    SwapPattern(0, 1, "uniform"),
    SwapPattern(1, 1, "previous"),
    RemoveMask(1),
)
MIXED = (SwitchOff(1, "head", 2), SwitchOffExperts(0, (1,)), ForceExpert(0, 2, (3, 6)))


def written(model, edits, prompt=PROMPT, new=NEW, **more):
    return list(generate(model, prompt, new, tap=edits_tap(edits, model.config), **more))


def check_against_passes(model, edits, **more):
    ids = list(PROMPT)
    for step in written(model, edits, **more):
        ready = [e for e in edits if not isinstance(e, EditCell) or max(e.query, e.key) < len(ids)]
        if len(ids) < 7:
            ready = [ForceExpert(e.layer, e.expert, (3,)) if isinstance(e, ForceExpert) else e for e in ready]
        with torch.no_grad():
            expected = model(torch.tensor([ids]), Pass(tap=edits_tap(ready, model.config))).logits[:, -1]
        assert torch.allclose(step.logits, expected, atol=1e-4)
        ids.append(step.tokens[0])


@pytest.mark.parametrize("edit", EDITS, ids=repr)
def test_every_edit_works_in_generation_as_in_one_pass(edit):
    model = Transformer(TINY, seed=2)
    for use_cache in (True, False):
        check_against_passes(model, [edit], use_cache=use_cache)
    assert written(model, [edit])[-1].cache_length == (0 if isinstance(edit, RemoveMask) else len(PROMPT) + NEW - 1)


@pytest.mark.parametrize("config", CAUSAL.values(), ids=CAUSAL.keys())
def test_every_kind_of_model_can_be_edited_while_it_writes(config):
    model = Transformer(config, seed=2)
    check_against_passes(model, EDITS[:4])


def test_experts_can_be_edited_while_the_model_writes():
    check_against_passes(Transformer(CAUSAL["experts"], seed=2), MIXED)


@pytest.mark.parametrize("more", [{}, {"slide_by": 1}, {"n_samples": 3}], ids=str)
def test_cached_equals_uncached_with_edits_past_the_end_of_the_context(more):
    model = Transformer(CAUSAL["rotary"], seed=2)
    sampled = {**more, "new": 30, "sampling": SamplingConfig(temperature=1.0, seed=3)}
    cached, plain = (written(model, EDITS[:6], use_cache=use, **sampled) for use in (True, False))
    assert [s.tokens for s in cached] == [s.tokens for s in plain]
    assert any(s.rebuilt for s in cached)


def test_edits_concern_no_neighbour_in_a_batch():
    model = Transformer(TINY, seed=2)
    batch = ContinuousBatch(model)
    tap = edits_tap(EDITS[:1], TINY)
    rules = SamplingConfig(temperature=1.0, seed=5)
    edited = batch.join(Request(TINY, PROMPT, NEW, rules, tap=tap))
    plain = batch.join(Request(TINY, PROMPT, NEW, rules))
    together = [(one.tokens, other.tokens) for one, other in zip(edited, plain)]
    alone = [written(model, edits, sampling=rules) for edits in (EDITS[:1], ())]
    assert together == [(one.tokens, other.tokens) for one, other in zip(*alone)]
    assert any(one != other for one, other in together)
