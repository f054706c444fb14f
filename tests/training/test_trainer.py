"""Laws of training: same run card same losses, resume on the same curve, stops keep what was learned."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from playground.data import corpus_from_language, corpus_from_sentences, corpus_from_text
from playground.model import PRESETS, ModelConfig, Transformer
from playground.training import (
    Evaluated,
    Finished,
    History,
    Snapshotted,
    Stepped,
    TrainConfig,
    evaluate,
    loss_of,
    train,
)

TEXT = "a stitch in time saves nine. " * 60
CORPUS = corpus_from_text(TEXT)
CONFIG = TrainConfig(steps=12, batch_size=4, eval_every=4, eval_windows=6, warmup_steps=2)


def tiny(**changes) -> Transformer:
    config = ModelConfig(CORPUS.vocab_size, context_length=16, n_layers=2, d_model=16, n_heads=2)
    return Transformer(config.replace(**changes))


def losses(events) -> list[float]:
    return [e.loss for e in events if isinstance(e, Stepped)]


def test_a_run_learns_and_tells_the_whole_story():
    events = list(train(tiny(), CORPUS, CONFIG.replace(steps=60, eval_every=20, snapshots=5)))
    names = [e.event for e in events]
    assert names[0] == "started" and names[-1] == "finished"
    assert names.count("stepped") == 60 and names.count("snapshotted") == 5
    evaluations = [e for e in events if isinstance(e, Evaluated)]
    assert [e.step for e in evaluations] == [0, 20, 40, 60]
    assert evaluations[-1].val_loss < 0.7 * evaluations[0].val_loss
    assert events[-1].reason == "done" and events[-1].val_loss == evaluations[-1].val_loss
    seconds = [e.seconds for e in events]
    assert seconds == sorted(seconds)
    assert all(e.tokens_per_second > 0 and e.time_left >= 0 for e in events if isinstance(e, Stepped))
    for event in events:
        assert json.loads(json.dumps(event.to_dict()))["event"] == event.event


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_the_same_run_card_gives_the_same_losses(optimizer, dropout):
    config = CONFIG.replace(optimizer=optimizer)
    torch.manual_seed(1)
    first = losses(train(tiny(dropout=dropout), CORPUS, config))
    torch.manual_seed(2)  # nobody reads the global state
    assert losses(train(tiny(dropout=dropout), CORPUS, config)) == first
    assert losses(train(tiny(dropout=dropout), CORPUS, config.replace(seed=5))) != first


def test_accumulating_equals_a_larger_batch():
    """Two halves of a batch, averaged, give the gradient of the whole."""

    class TwoHalves:
        def __init__(self):
            self.rows = CORPUS.batch("train", 8, 16, torch.Generator().manual_seed(0))
            self.turn = itertools.cycle((slice(0, 4), slice(4, 8)))

        def __getattr__(self, name):
            return getattr(CORPUS, name)

        def batch(self, split, batch_size, context_length, rng):
            rows = slice(None) if batch_size == 8 else next(self.turn)
            return self.rows[0][rows], self.rows[1][rows]

    config = CONFIG.replace(steps=3, optimizer="adamw", eval_every=0)
    whole, halves = tiny(), tiny()
    list(train(whole, TwoHalves(), config.replace(batch_size=8)))
    list(train(halves, TwoHalves(), config.replace(batch_size=4, accumulation=2)))
    for a, b in zip(whole.parameters(), halves.parameters()):
        assert torch.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_resuming_continues_the_same_curve(tmp_path, optimizer):
    config = CONFIG.replace(optimizer=optimizer, eval_every=5)
    whole_model, model = tiny(dropout=0.1), tiny(dropout=0.1)
    whole = list(train(whole_model, CORPUS, config))
    steps_done = itertools.count()
    first = list(train(model, CORPUS, config, folder=tmp_path, should_stop=lambda: next(steps_done) >= 7))
    assert first[-1].reason == "stopped" and "7 of 12" in first[-1].message
    again = tiny(dropout=0.1)
    second = list(train(again, CORPUS, config, folder=tmp_path, resume=True))
    assert losses(first) + losses(second) == losses(whole)
    assert [e.step for e in second if isinstance(e, Stepped)] == [8, 9, 10, 11, 12]
    for a, b in zip(whole_model.parameters(), again.parameters()):
        assert torch.equal(a, b)


def test_resuming_nothing_or_something_else_is_refused_in_words(tmp_path):
    with pytest.raises(ValueError, match="nothing to resume"):
        train(tiny(), CORPUS, CONFIG, folder=tmp_path, resume=True)
    list(train(tiny(), CORPUS, CONFIG, folder=tmp_path))
    with pytest.raises(ValueError, match="another model"):
        train(tiny(d_model=32), CORPUS, CONFIG, folder=tmp_path, resume=True)
    (tmp_path / "resume.safetensors").write_bytes(b"garbage")
    with pytest.raises(ValueError, match="damaged"):
        train(tiny(), CORPUS, CONFIG, folder=tmp_path, resume=True)


def test_a_kill_loses_at_most_the_steps_since_the_last_autosave(tmp_path):
    script = f"""
import sys
from playground.data import corpus_from_text
from playground.model import ModelConfig, Transformer
from playground.training import TrainConfig, train
corpus = corpus_from_text({TEXT!r})
model = Transformer(ModelConfig(corpus.vocab_size, context_length=16, n_layers=2, d_model=16, n_heads=2))
config = TrainConfig(steps=100000, batch_size=4, eval_every=0, autosave_seconds=0.05)
for event in train(model, corpus, config, folder={str(tmp_path)!r}):
    print(event.event, event.step, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=os.getcwd())
    saved = 0
    for line in process.stdout:
        name, step = line.split()
        saved = int(step) if name == "saved" else saved
        if saved > 40:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    model = tiny()
    events = train(model, CORPUS, TrainConfig(steps=100_000, batch_size=4, eval_every=0), folder=tmp_path, resume=True)
    step = next(e.step for e in events if isinstance(e, Stepped))
    assert step > saved
    events.close()


def test_stopping_keeps_what_was_learned_and_is_quick():
    model, began = tiny(), []

    def should_stop() -> bool:
        began.append(time.monotonic())
        return len(began) > 5

    events = list(train(model, CORPUS, CONFIG.replace(steps=10_000, eval_every=0), should_stop=should_stop))
    assert events[-1].reason == "stopped" and events[-1].step == 5
    assert not all(torch.equal(a, b) for a, b in zip(model.parameters(), tiny().parameters()))


def test_time_can_run_out():
    events = list(train(tiny(), CORPUS, CONFIG.replace(steps=100_000, eval_every=0, max_seconds=0.3)))
    assert events[-1].reason == "time" and 0 < events[-1].step < 100_000


def test_divergence_stops_with_a_sentence_and_the_last_good_weights():
    model = tiny()
    config = CONFIG.replace(steps=200, optimizer="adamw", learning_rate=10.0, gradient_clip=0.0, warmup_steps=0)
    poisoned = itertools.count()

    class Poisoned:
        def __getattr__(self, name):
            return getattr(CORPUS, name)

        def batch(self, *arguments):
            if next(poisoned) == 9:  # what an overflow does
                with torch.no_grad():
                    model.blocks[0].attention.out.weight.fill_(float("inf"))
            return CORPUS.batch(*arguments)

    events = list(train(model, Poisoned(), config.replace(learning_rate=1e-3)))
    assert events[-1].reason == "diverged" and "lower learning rate" in events[-1].message
    assert all(torch.isfinite(p).all() for p in model.parameters())
    last_good = [e for e in events if isinstance(e, Evaluated)][-1]
    assert evaluate(model, *CORPUS.windows("val", 16, 6)) == pytest.approx(last_good.val_loss, rel=1e-5)


def test_padding_never_counts():
    corpus = corpus_from_sentences(["a b .", "a b c d e f g ."])
    model = Transformer(ModelConfig(corpus.vocab_size, context_length=12, n_layers=1, d_model=8, n_heads=1))
    x, y = corpus.windows("train", 12)
    changed = x.masked_fill(torch.cat((y[:, :1] * 0, y[:, :-1]), dim=1) == -100, 3)  # other padding ids
    assert not torch.equal(x, changed)
    assert loss_of(model(x).logits, y).item() == pytest.approx(loss_of(model(changed).logits, y).item())
    by_hand = [-model(x[:1, : t + 1]).logits[0, -1].log_softmax(0)[y[0, t]].item() for t in range(2)]
    assert evaluate(model, x[:1], y[:1]) == pytest.approx(sum(by_hand) / 2, rel=1e-4)


def test_without_the_mask_training_falls_below_the_floor():
    """What the missing mask does: the loss dives below what any honest model could reach."""
    corpus = corpus_from_language("copy", n_characters=20_000, n_validation=3_000)
    config = PRESETS["tiny"].config.replace(vocab_size=corpus.vocab_size, context_length=32, causal=False)
    training = TrainConfig(steps=150, batch_size=16, eval_every=0, eval_windows=20)
    last = list(train(Transformer(config), corpus, training))[-1]
    assert last.val_loss < corpus.ladder(32, 20).floor - 0.1


def test_a_mixture_trains_and_reports_its_load():
    model = tiny(n_experts=4, balance="bias")
    events = list(train(model, CORPUS, CONFIG))
    loads = [e for e in events if e.event == "load"]
    assert len(loads) == 3 and len(loads[0].load) == 2
    assert all(sum(layer) == pytest.approx(1.0) for e in loads for layer in e.load)
    assert model.blocks[0].feedforward.selection_bias.abs().max() > 0


def test_snapshots_are_the_weights_of_their_moment():
    model = tiny()
    events = list(train(model, CORPUS, CONFIG.replace(snapshots=3)))
    last = [e for e in events if isinstance(e, Snapshotted)][-1]
    assert last.step == 12
    for name, tensor in model.state_dict().items():
        assert torch.equal(last.state[name], tensor.half())


def test_samples_continue_the_prompt():
    config = CONFIG.replace(sample_every=6, sample_prompt="a stitch", sample_tokens=10)
    samples = [e for e in train(tiny(), CORPUS, config) if e.event == "sampled"]
    assert [s.step for s in samples] == [0, 6, 12]
    assert all(s.prompt == "a stitch" and len(s.text) == 10 for s in samples)
    # without one it begins with the first token of the judging text, which is shown as well
    (first, *_) = (e for e in train(tiny(), CORPUS, config.replace(sample_prompt="")) if e.event == "sampled")
    assert first.prompt == "" and len(first.text) == 11
    assert first.text[0] == CORPUS.tokenizer.decode([int(CORPUS.val[0])])


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_mixed_precision_learns_the_same(precision):
    events = list(train(tiny(), CORPUS, CONFIG.replace(precision=precision, steps=40, eval_every=0)))
    assert events[0].precision == {"fp32": "float32", "bf16": "bfloat16"}[precision]
    reference = list(train(tiny(), CORPUS, CONFIG.replace(precision="fp32", steps=40, eval_every=0)))
    assert events[-1].val_loss == pytest.approx(reference[-1].val_loss, abs=0.05)


def test_what_does_not_fit_together_is_refused_before_anything_happens():
    with pytest.raises(ValueError, match="different tokens"):
        train(Transformer(ModelConfig(2, 16, 1, 8, 1)), CORPUS, CONFIG)
    with pytest.raises(ValueError, match="use a longer text or a context of at most"):
        train(tiny(context_length=4096), CORPUS, CONFIG)
    with pytest.raises(ValueError, match="no device called"):
        train(tiny(), CORPUS, CONFIG.replace(device="abacus"))
    with pytest.raises(ValueError, match="fp16 training needs a GPU"):
        train(tiny(), CORPUS, CONFIG.replace(device="cpu", precision="fp16"))


def test_history_gathers_the_curves_and_survives_json():
    history = History()
    events = list(train(tiny(), CORPUS, CONFIG.replace(sample_every=6, sample_prompt="a")))
    for event in events:
        history.add(event)
    assert history.steps["loss"] == losses(events) and history.last_step == 12
    assert history.val_loss == events[-1].val_loss
    assert isinstance(events[-1], Finished) and history.finished["reason"] == "done"
    again = History.from_dict(json.loads(json.dumps(history.to_dict())))
    assert again == history
    rows = history.to_csv().strip().split("\r\n")
    assert len(rows) == 13 and rows[0].startswith("step,loss")
    assert float(rows[4].split(",")[-1]) == history.evaluations["val_loss"][1]
    thin = history.thinned(5)
    assert thin.steps["step"][0] == 1 and thin.steps["step"][-1] == 12 and len(thin.steps["step"]) <= 6
    with pytest.raises(ValueError, match="equally long"):
        History.from_dict({"steps": {"step": [1], "loss": []}})
