"""Replay: every moment is the model of that moment; the shipped run shows induction appear."""

from pathlib import Path

import numpy as np
import pytest
import torch

from playground.data.tokenizers import CharTokenizer
from playground.inspection.replay import Replay, appearance, look_at, most_learned, replay, snapshots_of
from playground.model import Transformer
from playground.model.forward_pass import trace
from playground.storage import Checkpoint, load
from playground.storage.snapshots import find_snapshots, keep_snapshot
from playground.training import History
from tests.model.configs import TINY

IDS = [3, 1, 4, 1, 5, 9, 2, 6]
SHIPPED = Path(__file__).resolve().parents[2] / "checkpoints" / "induction"


@pytest.fixture
def watched(tmp_path):
    models = {step: Transformer(TINY, seed=step) for step in (0, 10, 40)}
    for step, model in models.items():
        keep_snapshot(tmp_path, step, model.state_dict())
    snapshots = find_snapshots(tmp_path, TINY)
    return models, Checkpoint(models[40], CharTokenizer("abcdefghij"), History(), "run", {}, snapshots)


def test_each_moment_is_the_model_of_then(watched):
    models, checkpoint = watched
    found = replay(checkpoint, IDS)
    assert found.steps == (0, 10, 40)
    for i, model in enumerate(models.values()):
        halved = Transformer(TINY)
        halved.load_state_dict({name: tensor.half().float() for name, tensor in model.state_dict().items()})
        seen = trace(halved, torch.tensor([IDS]))
        assert torch.equal(look_at(checkpoint, found.steps[i], IDS).pattern(1), seen["pattern", 1][0])
        for layer in range(2):
            pattern = seen["pattern", layer][0].numpy()
            # 1 stands at places 1 and 3: the follower of the earlier one is at 2, seen from place 3
            assert np.allclose(found.scores["induction"][i, layer], pattern[:, 3, 2], atol=1e-6)
            previous = [pattern[:, t, t - 1] for t in range(1, 8)]
            assert np.allclose(found.scores["previous"][i, layer], np.mean(previous, axis=0), atol=1e-6)


def test_a_run_without_moments_says_so_and_of_used_weights_only_what_came_before_is_the_past(watched):
    _, checkpoint = watched
    one = replay(checkpoint, IDS[:1])
    assert appearance(one, "induction") is None
    bare = Checkpoint(checkpoint.model, checkpoint.tokenizer, History())
    with pytest.raises(ValueError, match="no snapshots"):
        replay(bare, IDS)
    _, checkpoint = watched
    steps = checkpoint.snapshots.steps
    cut = History(finished={"reason": "moment"})
    cut.steps["step"].append(steps[-2])
    used = Checkpoint(checkpoint.model, checkpoint.tokenizer, cut, "used", {}, checkpoint.snapshots)
    assert snapshots_of(used).steps == steps[:-1] and snapshots_of(checkpoint).steps == steps


def test_the_appearance_is_where_the_strongest_head_is_halfway_there_and_in_the_shipped_run():
    scores = np.zeros((4, 2, 2))

    def appeared(scores):
        return appearance(Replay((0, 10, 20, 40), {"first": scores}), "first")

    scores[:, 1, 0] = (0.1, 0.15, 0.7, 0.8)
    scores[:, 0, 1] = (0.0, 0.6, 0.1, 0.2)
    found = appeared(scores)
    assert (found.layer, found.head, found.before, found.after) == (1, 0, 10, 20)
    assert found.final == 0.8
    scores[:, 1, 0] = (0.4, 0.7, 0.5, 0.8)  # up, down again, and up to stay
    found = appeared(scores)
    assert (found.before, found.after, found.score_first) == (20, 40, 0.4)
    assert appeared(scores * 0.1) is None  # too little
    assert appeared(np.ones((4, 2, 2))) is None  # nothing came
    # On the copy language, a head of the second layer learns to look at what followed last time, early in the run.
    checkpoint = load(SHIPPED)
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) <= 1.5e6
    assert checkpoint.config.n_layers == 2 and checkpoint.about["language"] == "copy"
    assert 30 <= len(checkpoint.snapshots.steps) <= 40
    found = replay(checkpoint, checkpoint.tokenizer.encode("bdfh bdfh\n"))
    seen = appearance(found, "induction")
    assert most_learned(found) in found.scores and most_learned(replay(checkpoint, IDS[:1])) is None
    assert seen.layer == 1 and found.scores["induction"][0].max() < 0.25 and seen.final > 0.4
    assert seen.after <= 0.1 * checkpoint.history.last_step
    last = Transformer(checkpoint.config)
    last.load_state_dict(checkpoint.snapshots.model(found.steps[-1]).state_dict())
    ids = torch.tensor([checkpoint.tokenizer.encode("bdfh bdfh\n")])
    assert torch.allclose(last(ids).logits, checkpoint.model(ids).logits, atol=0.05)
