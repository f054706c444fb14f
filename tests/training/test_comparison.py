"""A comparison is two ordinary runs on the same batches, in turns: each ends exactly as it would have alone."""

import itertools
import math

import pytest
import torch

from playground.data import corpus_from_text
from playground.model import ModelConfig, Transformer
from playground.model.matched_pair import match_dense
from playground.training import Evaluated, Finished, Stepped, TrainConfig, evaluate, train
from playground.training.comparison import PairPlan, PairsJudged, SideEvent, Trained, compare

CORPUS = corpus_from_text("the cat sat on the mat and the dog sat on the cat. " * 60)
MOE = ModelConfig(
    vocab_size=CORPUS.vocab_size, context_length=16, n_layers=1, d_model=16, n_heads=2, n_experts=4, d_expert=16
)
MATCHED = match_dense(MOE)
TRAINING = TrainConfig(
    steps=12, batch_size=4, eval_every=4, eval_windows=9, warmup_steps=2, device="cpu", precision="fp32", seed=3
)
PLAN = PairPlan(MATCHED.dense, MATCHED.moe, TRAINING, seeds=2)


def test_each_side_ends_as_it_would_have_alone_in_turns_and_their_last_losses_are_judged():
    events = list(compare(PLAN, CORPUS))
    for seed, side in itertools.product((3, 4), ("dense", "moe")):
        alone = Transformer(PLAN.config(side), seed=seed)
        list(train(alone, CORPUS, TRAINING.replace(seed=seed)))
        (trained,) = [e for e in events if isinstance(e, Trained) and (e.seed, e.side) == (seed, side)]
        for mine, other in zip(trained.model.parameters(), alone.parameters()):
            torch.testing.assert_close(mine, other, rtol=0, atol=0)
    steps = [
        (e.seed, e.side, e.event.step) for e in events if isinstance(e, SideEvent) and isinstance(e.event, Stepped)
    ]
    assert steps == [(seed, side, step) for seed in (3, 4) for step in range(1, 13) for side in ("dense", "moe")]
    for trained in (e for e in events if isinstance(e, Trained)):
        last = [e.event for e in events if isinstance(e, SideEvent) and (e.seed, e.side) == (trained.seed, trained.side)
                and isinstance(e.event, Evaluated)][-1]  # fmt: skip
        assert math.isclose(trained.losses.mean, last.val_loss, rel_tol=1e-5)
        windows = CORPUS.windows("val", 16, 9)
        assert math.isclose(evaluate(trained.model, *windows), trained.losses.mean, rel_tol=1e-5)
    verdicts = [e.verdict for e in events if isinstance(e, PairsJudged)]
    assert [v.seeds for v in verdicts] == [1, 2]
    means = {(e.seed, e.side): e.losses.mean for e in events if isinstance(e, Trained)}
    expected = sum(means[s, "moe"] - means[s, "dense"] for s in (3, 4)) / 2
    assert math.isclose(verdicts[-1].difference, expected, abs_tol=1e-6)


def test_stopping_one_lets_the_other_finish_and_begins_no_further_pair():
    asked = {"dense": 0, "moe": 0}

    def stop(side: str) -> bool:
        asked[side] += 1
        return side == "moe" and asked["moe"] > 6

    events = list(compare(PLAN, CORPUS, should_stop=stop))
    ends = {e.side: (e.event.reason, e.event.step) for e in events if isinstance(e, SideEvent)
            and isinstance(e.event, Finished)}  # fmt: skip
    assert ends == {"dense": ("done", 12), "moe": ("stopped", 6)}
    assert {e.side for e in events if isinstance(e, Trained)} == {"dense", "moe"}  # both are kept
    assert not any(isinstance(e, PairsJudged) for e in events)
    assert {e.seed for e in events if isinstance(e, SideEvent)} == {3}


@pytest.mark.parametrize("wrong", [
    {"moe": MATCHED.dense}, {"dense": MOE}, {"seeds": 0}, {"dense": MATCHED.dense.replace(context_length=8)},
])  # fmt: skip
def test_an_unfair_plan_is_refused(wrong):
    with pytest.raises(ValueError):
        PairPlan(**{"dense": MATCHED.dense, "moe": MATCHED.moe, "training": TRAINING, **wrong})
