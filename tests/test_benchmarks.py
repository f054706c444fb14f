"""The peers of the benchmarks run, however few steps are asked of them."""

import pytest

from benchmarks import peers, time_to_loss
from playground.data import corpus_from_text

# nanoGPT's learning rate, as its train.py computes it, and what it prints
TRAIN = """
import sys
settings = dict(argument[2:].split("=") for argument in sys.argv[1:])
warmup, decay = int(settings["warmup_iters"]), int(settings["lr_decay_iters"])
for it in range(int(settings["max_iters"]) + 1):
    if warmup <= it <= decay:
        ratio = (it - warmup) / (decay - warmup)
        assert 0 <= ratio <= 1
    print(f"iter {it}: loss 1.0000, time 2.00ms, mfu 1.00%")
"""


@pytest.mark.parametrize("steps", [10, 100, 1000])
def test_nanogpt_is_timed_over_any_number_of_steps(tmp_path, steps):
    """`time-to-loss --peer-steps 200` asks for two halves of 100, as many as its warm-up had: it divided by zero."""
    (tmp_path / "train.py").write_text(TRAIN)
    per_step, seconds = peers.nanogpt(tmp_path, corpus_from_text("a stitch in time saves nine. " * 60), steps)
    assert (per_step, seconds) == (2.0, pytest.approx(0.002 * steps))


def test_too_few_steps_of_the_peer_are_refused():
    class Options:
        peer_steps, steps, text, nanogpt = 1, None, __file__, None

    with pytest.raises(SystemExit, match="too few"):
        time_to_loss.run(Options())
