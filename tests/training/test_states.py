"""States: each kind on a history made up for it and on a real run, and none where noise explains what is seen."""

import dataclasses
import math
import random
from pathlib import Path

import pytest

import playground
from playground.data import Ladder, corpus_from_language, corpus_from_text
from playground.model import PRESETS, ModelConfig, Transformer
from playground.training import RECIPES, History, TrainConfig, train
from playground.training.states import (
    BELOW,
    DIVERGED,
    LEARNING,
    LEVEL,
    OVERFITTING,
    TONES,
    UNCLEAR,
    UNMASKED,
    UNSTEADY,
    risen_for,
    state_of,
)

FALLING = [4.0, 2.5, 1.8, 1.4, 1.2, 1.1, 1.03, 0.99]
LADDER = Ladder(uniform=4.0, unigram=3.0, bigram=2.0, floor=0.9)


def made_up(validation, training=None, *, finished=None) -> History:
    steps = [50.0 * i for i in range(len(validation))]
    columns = {"step": steps, "train_loss": training or validation, "val_loss": validation, "seconds": steps}
    return History(evaluations=columns, finished=finished)


@pytest.mark.parametrize(
    ("history", "kind", "since"),
    [
        (made_up([]), UNCLEAR, None),
        (made_up([4.0, 2.5]), UNCLEAR, None),
        (made_up(FALLING), LEARNING, None),
        (made_up([*FALLING, 0.985, 0.9836, 0.985, 0.984, 0.9845, 0.984]), LEVEL, 400),
        (made_up([*FALLING, 1.05, 1.1, 1.2, 1.3], [*FALLING, 0.8, 0.6, 0.4, 0.3]), OVERFITTING, 350),
        (made_up([*FALLING, 1.05, 1.1, 1.2, 1.3]), UNSTEADY, 350),
        (made_up([4.0, 3.0, 30.0, 12.0, 40.0, 25.0], [4.0, 3.0, 29.0, 13.0, 41.0, 25.0]), DIVERGED, 50),
        (made_up([4.0, 30.0, 12.0]), DIVERGED, 0),
        (made_up([4.6, 843.0, 366.0, 47.0, 9.9, 5.1, 4.9]), UNSTEADY, 0),
        (made_up([4.0, 2.0, math.nan]), DIVERGED, 50),
        (made_up(FALLING, finished={"reason": "diverged"}), DIVERGED, 350),
        (made_up([*FALLING, 0.7, 0.5, 0.4, 0.35]), BELOW, None),
    ],
)
def test_a_made_up_history_of_each_kind(history, kind, since):
    state = state_of(history, ladder=LADDER)
    assert (state.kind, state.since) == (kind, since), state
    assert state.says and state.tone == TONES[kind]
    assert (state.tone == "good") == (kind in (LEARNING, LEVEL))
    assert ("falling" in state.says or "Learning" in state.says) <= (kind == LEARNING)


def test_without_a_mask_only_a_divergence_matters_more():
    assert state_of(made_up(FALLING), causal=False, ladder=LADDER).kind == UNMASKED
    assert state_of(made_up([*FALLING, 0.5, 0.1, 0.02]), causal=False, ladder=LADDER).kind == UNMASKED
    assert state_of(made_up([4.0, 30.0, 12.0]), causal=False, ladder=LADDER).kind == DIVERGED


def test_still_falling_is_never_said_above_the_best():
    """A run that came to 0.9836 and ended at 0.9945, a rise too small to be called one."""
    course = [4.0, 2.0, 1.5, 1.2, 1.1, 1.05, 1.02, 1.0, 0.99, 0.9836, 0.9850, 0.9880, 0.9910, 0.9945]
    for seen in range(1, len(course) + 1):
        state = state_of(made_up(course[:seen], finished={"reason": "done"}))
        if course[seen - 1] > min(course[:seen]) + 0.005:
            assert "alling" not in state.says and state.kind in (LEVEL, UNCLEAR, OVERFITTING)
    assert "The lowest was 0.9836 after step 450; it is 0.9945 now" in state.says


def test_a_jump_is_told_of_even_where_the_run_came_back():
    """A rate of one: from 4.6 to 34 in a few steps, then down to less than at the beginning."""
    state = state_of(made_up([4.6, 34.1, 24.4, 12.7, 5.0, 3.9, 3.6, 3.4, 3.2, 3.1, 3.0]))
    assert state.kind != DIVERGED and "jumped from 4.6000 to 34.1000 by step 50" in state.says
    assert "lower learning rate" in state.do
    memorised = [4.6, 2.0, 1.9, 2.6, 2.7, 2.8, 2.9], [4.6, 2.0, 1.6, 1.0, 0.6, 0.3, 0.2]
    assert "jumped" not in state_of(made_up(*memorised)).in_words  # training went on falling


def test_diverged_is_who_did_not_come_back_and_start_and_peak_are_named():
    """“It diverged after step 0” was said of a run that had peaked at 13.1 and fallen for its last eight steps."""
    validation = [3.9611, 9.2, 12.4, 13.1, 9.6, 7.0, 6.1, 5.5, 5.094]
    training = [4.1104, 8.8, 12.1, 12.8, 9.1, 6.4, 5.4, 4.7, 4.1742]
    back = state_of(made_up(validation, training))
    assert back.kind == UNSTEADY and "jumped from 3.9611 to 13.1000 by step 150" in back.says
    assert "It is 5.0940 now, still above the 3.9611." in back.says
    there = state_of(made_up(validation[:5], training[:5]))
    assert there.kind == DIVERGED and "from 3.9611 to 13.1000 at step 150 and is 9.6000 now" in there.says
    assert "training loss rose with it, from 4.1104 to 9.1000" in there.says
    assert "to 13.1000; the training" in state_of(made_up(validation[:4], training[:4])).says


def test_of_halves_within_which_a_loss_jumped_nothing_is_said():
    """“Learning: 0.2375 nats lower … since step 520. Before that the validation loss jumped … by step 560”."""
    course = [3.5 - 0.09 * i for i in range(17)]
    for validation in ([*course, 2.01, 2.8, 1.99, 1.98, 1.97, 1.96, 1.95, 1.94], [4.6, 34.0, 5.0, 4.0, 3.9]):
        state = state_of(made_up(validation))
        assert state.kind == UNSTEADY and "jumped from" in state.says and "by step" in state.says, state
        assert f"It has come down to {validation[-1]:.4f} since." in state.says and state.do
        assert not any(words in state.says for words in ("Learning", "halves", "half", "Before that"))
    few = state_of(made_up([4.6, 34.0, 4.0]))
    assert few.says.startswith("Too early to tell") and "On the way the validation loss jumped" in few.says


def test_a_rate_that_was_raised_again_is_not_told_to_be_too_large():
    """“Train longer” stretches the schedule to the new end: the rate jumps back up, and the loss with it."""
    fell = [1.5 + 1.5 * 0.6**i for i in range(12)]
    history = made_up([*fell, 1.56, 1.565, 1.563], [*[loss - 0.1 for loss in fell], 1.45, 1.46, 1.46])
    last = int(history.evaluations["step"][-1])
    longer, at = range(1, last + 1), int(history.evaluations["step"][11])
    history.steps["step"] = list(longer)
    history.steps["learning_rate"] = [0.01 * (1 - n / (at + 1) if n <= at else 1 - n / (2 * at)) for n in longer]
    state = state_of(history)
    assert state.kind == UNCLEAR and "rose again after step 550, where the run was lengthened" in state.says
    history.steps["learning_rate"] = [0.01] * last
    assert state_of(history).kind == UNSTEADY


def test_of_a_moment_of_a_run_no_course_is_said():
    """“Still falling at the end … Train longer” was said of the best weights of a run that had risen since."""
    history = made_up([3.5, 2.9, 2.4, 2.2, 2.1])
    history.finished = {"reason": "moment"}
    assert state_of(history).in_words == "These are the weights of step 200 of a run that went on."
    assert state_of(history, causal=False).kind == UNMASKED


def test_what_never_helped_is_not_said_to_be_known_by_heart():
    """Letters, and digits that judge: 2.4 nats on the training text, and the advice to use the untrained weights."""
    state = state_of(made_up([3.9, 7.0, 8.0, 8.5, 9.0, 8.7], [3.7, 3.3, 2.9, 2.7, 2.5, 2.4]))
    assert (state.kind, state.since, state.do) == (OVERFITTING, 0, "") and "by heart" not in state.says
    assert "does not help with the text that judges it" in state.says


def test_where_nothing_is_left_nothing_is_advised():
    at_the_floor = made_up([4.0, 1.0, 0.92, *[0.902] * 6], finished={"reason": "done"})
    assert state_of(at_the_floor, ladder=LADDER).do == "" != state_of(at_the_floor).do
    one_letter = state_of(made_up([0.9, 0.01, 0.0004, *[0.0] * 4], finished={"reason": "done"}))
    assert (one_letter.kind, one_letter.do) == (LEVEL, "")


def test_a_change_is_small_only_against_what_is_left_above_the_floor():
    def says(validation, **of):
        return state_of(made_up(validation, finished={"reason": "done"}), **of)

    slow = [4.0, 2.0, 1.3, 1.0, 0.95, 0.93, *(0.9 + 0.02 * 0.9**i for i in range(10))]  # ever slower
    known, unknown = says(slow, ladder=LADDER), says(slow)
    assert known.kind == LEARNING and "0.0077 are left above the floor" in known.says
    assert unknown.kind == LEVEL and "0.0032 nats lower on average" in unknown.says
    arrived = says([*slow, 0.906, 0.9045, 0.9037], ladder=LADDER)
    assert arrived.kind == LEVEL and "0.0037 nats above the floor: next to nothing is left" in arrived.says
    assert "evelled" not in arrived.says and not arrived.do


def test_jumps_larger_than_the_change_are_no_part_of_it():
    jumping = [4.0, 3.0, 2.8, 2.3, 2.6, 2.25, 2.55, 2.2, 2.5, 2.3, 2.45, 2.24]
    said = state_of(made_up(jumping, [2.0 * x for x in jumping])).says
    assert "not clear" in said and "are larger than that" in said and "of which" not in said


def test_a_fall_that_has_ended_is_not_said_to_go_on():
    """“Still falling at the end” was said of 2.5885, 2.3694, 2.3155, 2.3146."""
    course = [3.4, 3.0, 2.5885, 2.3694, 2.3155, 2.3146]
    said = state_of(made_up(course, finished={"reason": "done"})).says
    assert "; the last evaluation was 0.0009 lower than the one before." in said
    assert "the one before" not in state_of(made_up(course[:-1], finished={"reason": "done"})).says
    assert "the one before" not in state_of(made_up(course)).says


def test_what_is_said_of_halves_is_said_of_halves_and_a_fall_at_every_evaluation_is_one():
    """“since step 120 the loss went down by 0.0235” was said of .19498 → .16316, and that a fall was not clear."""
    last = [0.19498, 0.185, 0.17, 0.16316]
    falling = state_of(made_up([2.5, 0.9, 0.25, *last]))
    assert falling.kind == LEARNING
    bumpy = state_of(made_up([2.5, 0.9, 0.19, *last]))
    assert bumpy.kind == UNCLEAR and "Each of the last 3 evaluations was lower than the one before" in bumpy.says
    risen_before = state_of(made_up([3.0, 2.0, 2.45, 2.3, 2.1, 2.05])).says
    assert "Each of the last 3 evaluations was lower" in risen_before  # 2.45 was not
    for said in (falling.says, bumpy.says):
        assert "0.0234 nats lower on average in the later half of the evaluations since step 150" in said
        assert "not clear" not in said and "went down" not in said


def test_noise_alone_is_neither_a_rise_nor_a_fall():
    """Flat curves with jitter of several sizes: a rise, and a fall, is said of one in twenty at most."""
    wrong, patience = 0, 0
    for seed in range(400):
        drawn = random.Random(seed)
        size, evaluations = (0.003, 0.02, 0.1)[seed % 3], (6, 10, 24)[seed // 3 % 3]
        noisy = [1.0 + drawn.gauss(0, size) for _ in range(evaluations)]
        history = made_up(noisy, [x - 0.01 * i for i, x in enumerate(noisy)], finished={"reason": "done"})
        wrong += state_of(history).kind not in (LEVEL, UNCLEAR)
        patience += risen_for(history) >= 4
    assert wrong <= 40 and patience <= 2  # either of two things may be said


def test_one_rise_while_the_steps_grow_larger_is_no_overfitting_and_three_steep_ones_are():
    """A text of words: after one rise in the middle of the warm-up, overfitting was said four steps before the best."""
    validation = [5.0, 3.758, 3.974, 3.407, 3.571, 3.746, 3.842, 3.95]
    history = made_up(validation, [5.0, 3.7, 3.2, 2.9, 2.5, 2.1, 1.8, 1.5])
    made = range(1, 48)
    history.steps.update(step=[*made], learning_rate=[min(i / 9, (48 - i) / 39) for i in made])
    history.evaluations["step"] = [4.0 * i for i in range(len(validation))]
    said = [state_of(history.until(step)) for step in history.evaluations["step"]]
    assert [state.kind for state in said] == [UNCLEAR] * 6 + [OVERFITTING] * 2 and said[6].since == 12
    rising = [5.0, 3.0, 2.0, 2.1, 2.2, 2.3, 2.4]
    history = made_up(rising, [5.0, 3.0, 2.0, 1.5, 1.0, 0.5, 0.2])
    assert state_of(history).kind == OVERFITTING
    history.steps.update(step=[*range(1, 301)], learning_rate=[i / 400 for i in range(1, 301)])
    assert state_of(history).kind != OVERFITTING  # all of it is warm-up
    assert state_of(made_up([5.0, 3.0, 2.0, 1.99, 1.985, 2.4], [5.0, 3.0, 2.0, 1.5, 1.0, 0.5])).kind != OVERFITTING


def test_a_rise_is_counted_by_evaluations_in_a_row():
    rises = [1.05, 1.1, 0.995, 1.2, 1.25, 1.3, 1.35]
    history = made_up([*FALLING, *rises], [*FALLING, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3])
    assert (
        risen_for(history) == 4 and risen_for(history.until(500)) == 0
    )  # the one that was nearly as good broke the row
    assert risen_for(made_up([*FALLING, 1.05, 1.1, 1.2, 1.3])) == 0  # training rose as well: not learned by heart
    assert risen_for(made_up([])) == 0 == risen_for(made_up([math.nan, math.nan]))


# ---- real runs -------------------------------------------------------------------------------------------------------

PLACE = {"device": "cpu", "precision": "fp32", "eval_windows": 16}


def state_after(corpus, training, **changes):
    shape = ModelConfig(corpus.vocab_size, context_length=32, n_layers=2, d_model=32, n_heads=2).replace(**changes)
    history = History()
    for event in train(Transformer(shape), corpus, training.replace(**PLACE)):
        history.add(event)
    ladder = corpus.ladder(shape.context_length, training.eval_windows)
    return state_of(history, causal=shape.causal, ladder=ladder), history


@pytest.fixture(scope="module")
def brackets():
    return corpus_from_language("brackets", n_characters=60_000, n_validation=6_000)


SHORT = TrainConfig(steps=60, batch_size=8, eval_every=6)


def test_a_run_that_learns(brackets):
    state, _ = state_after(brackets, SHORT.replace(steps=30, eval_every=3, learning_rate=1e-3, optimizer="adamw"))
    assert state.kind == LEARNING and state.tone == "good"


def test_a_run_at_a_rate_of_one_without_clipping_diverges(brackets):
    wild = SHORT.replace(optimizer="adamw", learning_rate=1.0, gradient_clip=0.0, warmup_steps=0, schedule="constant")
    # nine steps: whether it has come back after eighteen is chance, another one with each processor's rounding
    state, history = state_after(brackets, wild.replace(steps=9, eval_every=3))
    assert state.kind == DIVERGED and state.tone == "error" and "by heart" not in state.in_words
    assert history.val_loss > history.best[1]


def test_two_kilobytes_of_text_are_learned_by_heart():
    corpus = corpus_from_text((Path(playground.__file__).parent / "data/texts/lighthouse.txt").read_text()[:2000])
    history, shape = History(), PRESETS["small"].config.replace(vocab_size=corpus.vocab_size, context_length=48)
    training = RECIPES["small"].replace(steps=60, eval_every=3, batch_size=8, **PLACE)
    for event in train(Transformer(shape), corpus, training):
        history.add(event)
    state = state_of(history)
    assert state.kind == OVERFITTING and state.since == history.best[0] and "by heart" in state.says
    assert state.tone == "warning" and f"step {state.since:,}" in state.do


def test_a_run_without_a_mask_sees_its_answers(brackets):
    state, _ = state_after(brackets, SHORT.replace(steps=120, eval_every=12), causal=False)
    assert state.kind == UNMASKED and "no causal mask" in state.says


def test_a_run_that_levels_off():
    drawn = random.Random(1)
    text = "".join(drawn.choice("abcdefgh") for _ in range(40_000))  # only their number can be learned
    state, history = state_after(corpus_from_text(text), SHORT.replace(steps=120, batch_size=16))
    assert state.kind == LEVEL, state
    assert history.val_loss == pytest.approx(math.log(8), abs=0.03)


def test_a_run_below_its_floor_is_one_that_was_judged_by_what_it_learned(brackets):
    """The validation text is the learned one, and short: the model is no honest guesser of it."""
    short = brackets.train[:300]
    leaked = dataclasses.replace(brackets, train=short, val=short)
    state, _ = state_after(leaked, SHORT.replace(steps=200, eval_every=20))
    assert state.kind == BELOW, state
