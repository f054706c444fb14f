"""Laws of training: same run card same losses, resume on the same curve, stops keep what was learned."""

import itertools
import json
import math

import pytest
import torch

from playground.data import corpus_from_sentences, corpus_from_text
from playground.model import PRESETS, ModelConfig, Transformer
from playground.training import Evaluated, Finished, History, Snapshotted, Stepped, TrainConfig, evaluate, train
from playground.training.loop import Run
from playground.training.pace import Pace
from playground.training.samples import sample
from tests.training.runs import CORPUS, TEXT, Spoiling, losses

CONFIG = TrainConfig(steps=12, batch_size=4, eval_every=4, eval_windows=6, warmup_steps=2)


def tiny(**changes) -> Transformer:
    config = ModelConfig(CORPUS.vocab_size, context_length=16, n_layers=2, d_model=16, n_heads=2)
    return Transformer(config.replace(**changes))


def test_a_run_learns_and_tells_the_whole_story():
    model = tiny()
    events = list(train(model, CORPUS, CONFIG.replace(steps=60, eval_every=20, snapshots=5)))
    names = [e.event for e in events]
    assert names[0] == "started" and names[-1] == "finished"
    assert names.count("stepped") == 60 and names.count("snapshotted") == 5
    evaluations = [e for e in events if isinstance(e, Evaluated)]
    assert [e.step for e in evaluations] == [0, 20, 40, 60]
    assert evaluations[-1].val_loss < 0.7 * evaluations[0].val_loss
    assert events[-1].reason == "done" and events[-1].val_loss == evaluations[-1].val_loss
    seconds = [e.seconds for e in events]
    assert seconds == sorted(seconds)
    last = [e for e in events if isinstance(e, Snapshotted)][-1]
    assert last.step == 60 and all(torch.equal(last.state[n], t.half()) for n, t in model.state_dict().items())
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


DOCUMENTS = corpus_from_sentences(("the cat sat", "a dog", "the cat saw a dog and the dog ran", "it ran") * 6)


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("bf16", 2e-2)])
@pytest.mark.parametrize("balance", [None, "bias"])
def test_accumulating_equals_a_larger_batch(precision, tolerance, balance):
    """Three thirds of a batch, of which one is mostly padding, give the loss, gradient and load of the whole."""
    x, y = DOCUMENTS.batch("train", 12, 12, torch.Generator().manual_seed(0))
    order = (y != -100).sum(dim=1).argsort()  # the shortest sentences together

    class Thirds:
        def __init__(self):
            self.turn = itertools.cycle(order.split(4))

        def __getattr__(self, name):
            return getattr(DOCUMENTS, name)

        def batch(self, split, batch_size, context_length, rng):
            rows = order if batch_size == 12 else next(self.turn)
            return x[rows], y[rows]

    experts = {"n_experts": 4, "balance": balance} if balance else {}
    config = CONFIG.replace(steps=3, optimizer="adamw", eval_every=1, precision=precision, device="cpu")
    told = {}
    for name, changes in {"whole": {"batch_size": 12}, "thirds": {"batch_size": 4, "accumulation": 3}}.items():
        model = tiny(vocab_size=DOCUMENTS.vocab_size, context_length=12, **experts)
        events = list(train(model, Thirds(), config.replace(**changes)))
        told[name] = (
            losses(events),
            [e.gradient_norm for e in events if isinstance(e, Stepped)],
            [e.load for e in events if e.event == "load"],
            [p.flatten().tolist() for p in model.blocks.buffers()],
        )
    for whole, thirds in zip(told["whole"], told["thirds"]):
        assert len(whole) == len(thirds) and torch.allclose(
            torch.tensor(whole), torch.tensor(thirds), atol=tolerance, rtol=tolerance
        )
    assert bool(told["whole"][2]) == bool(balance)


def test_a_gradient_is_measured_before_it_is_clipped_and_none_that_is_no_number_is_applied():
    """As the whole gradient's length is."""
    loose, tight = (
        [e.norms for e in train(tiny(), CORPUS, CONFIG.replace(gradient_clip=clip, steps=1)) if e.event == "gradients"]
        for clip in (0.0, 1e-3)
    )
    assert loose == tight and loose[0]["head"] > 1e-2
    model = tiny()
    hook = model.head.weight.register_hook(lambda gradient: gradient * float("nan"))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    *_, evaluated, end = train(model, CORPUS, CONFIG.replace(eval_every=0))
    hook.remove()
    assert (end.reason, end.step, end.weights_step, evaluated.step) == ("diverged", 0, None, 0)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_a_stop_amid_an_evaluation_waits_for_one_pass_only():
    corpus, model, stopped, passes, told = corpus_from_text(TEXT * 20), tiny(), [], [], []
    model.register_forward_hook(lambda *_: passes.append(bool(stopped)))
    config = CONFIG.replace(steps=10, eval_every=2, eval_windows=192)
    for event in train(model, corpus, config, should_stop=lambda: bool(stopped)):
        told.append(event)
        if isinstance(event, Stepped) and event.step == 4:
            stopped.append(True)  # while the evaluation after this step is still to come
    assert len(passes) - sum(passes) == 2 * 2 * 3 + 4 and sum(passes) == 1, "of the six passes that it takes"
    assert [event.step for event in told if isinstance(event, Evaluated)] == [0, 2]
    end = told[-1]
    assert (end.event, end.reason, end.step) == ("finished", "stopped", 4) and math.isfinite(end.val_loss)


@pytest.mark.parametrize(("eval_every", "good"), [(4, 8), (0, 0)])
def test_a_divergence_brings_back_the_last_good_weights_and_says_of_which_step_they_are(eval_every, good):
    model, history = tiny(), History()
    config = CONFIG.replace(eval_every=eval_every, optimizer="adamw", learning_rate=1e-3)
    for event in train(model, Spoiling(model, before=10), config):
        history.add(event)
    assert (event.reason, event.step, event.weights_step) == ("diverged", 9, good)
    evaluated = dict(zip(history.evaluations["step"], history.evaluations["val_loss"]))
    assert list(evaluated) == list(range(0, 9, eval_every or 9)), "of step 9 there are no weights to evaluate"
    assert event.val_loss == evaluated[good] == pytest.approx(evaluate(model, *CORPUS.windows("val", 16, 6)), rel=1e-6)
    unspoiled = tiny()
    list(train(unspoiled, CORPUS, config, should_stop=iter([False] * good + [True] * 9).__next__))
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), unspoiled.state_dict().values()))


class Overflowing:
    """Stands in for a GradScaler, which a CPU has none of: in step 2, the gradients of one optimizer overflow."""

    def __init__(self, *_, **settings):
        self.steps, self.updates, self.found = [], 0, set()

    def is_enabled(self):
        return True

    def scale(self, loss):
        return loss

    def unscale_(self, optimizer):
        if self.updates == 1 and type(optimizer).__name__ == "Muon":
            optimizer.param_groups[0]["params"][0].grad[0, 0] = float("inf")
            self.found.add(optimizer)

    def step(self, optimizer):
        if optimizer not in self.found:  # torch's skips each optimizer by itself
            optimizer.step()

    def update(self):
        self.updates, self.found = self.updates + 1, set()

    def state_dict(self):
        return {}


def test_where_one_optimizers_gradients_overflow_none_steps(monkeypatch):
    """Nor do momentum, weight decay and the routers' biases move: the step is made, and nothing was changed by it."""
    monkeypatch.setattr(torch.amp, "GradScaler", Overflowing)
    model = tiny(n_experts=4, balance="bias")
    config = CONFIG.replace(steps=4, eval_every=0, schedule="constant", warmup_steps=0, weight_decay=0.1)
    seen = {}
    for event in train(model, CORPUS, config):
        if isinstance(event, Stepped):
            seen[event.step] = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert (event.reason, event.step) == ("done", 4)
    moved = {step: {name for name in seen[step] if not torch.equal(seen[step][name], seen[step - 1][name])}
             for step in (2, 3)}  # fmt: skip
    assert not moved[2]
    assert {"head.weight", "blocks.0.attention.qkv.weight", "blocks.0.feedforward.selection_bias"} <= moved[3]


def test_tokens_per_second_are_those_of_the_last_second():
    pace = Pace(began=0.0)
    for seconds in [4.0] + [0.01] * 200 + [0.4] * 3:
        pace.add(seconds)
    assert pace.per_step == pytest.approx(0.4) and pace.seconds == pytest.approx(7.2) and pace.steps == 204
    assert pace.time_left(7.2, 203) == pytest.approx(3.2), "a forecast rests on the last minute, without the first step"
    for _ in range(100):
        pace.add(0.01)
    assert pace.per_step == pytest.approx(0.01)
    pace.add(5.0)
    assert pace.per_step == 5.0, "at least the last step"
    for _ in range(13):
        pace.add(5.0)
    assert pace.time_left(pace.seconds, 10) == pytest.approx(50), "what was quicker is over a minute ago"


def test_the_history_has_every_event_before_it_is_handed_on_and_until_a_step_is_that_of_a_run_that_ended_there():
    run = Run(tiny(), CORPUS, CONFIG.replace(sample_every=6, sample_tokens=3, device="cpu"))
    seen = History()
    for event in run.loop([sample]):
        seen.add(event)
        assert run.history.to_dict() == seen.to_dict()
    assert run.history.samples and run.history.finished
    whole, part = History(), History()
    for event in train(tiny(), CORPUS, CONFIG.replace(sample_every=2, sample_tokens=3)):
        whole.add(event)
        if event.step <= 8 and event.event != "finished":
            part.add(event)
    assert whole.until(8).to_dict() == part.to_dict() != whole.to_dict()


def test_samples_continue_the_prompt_and_end_with_their_sentence():
    config = CONFIG.replace(sample_every=6, sample_prompt="a stitch", sample_tokens=10)
    samples = [e for e in train(tiny(), CORPUS, config) if e.event == "sampled"]
    assert [s.step for s in samples] == [0, 6, 12]
    assert all(s.prompt == "a stitch" and len(s.text) == 10 for s in samples)
    # without one it begins with the first token of the judging text, which is shown as well
    (first, *_) = (e for e in train(tiny(), CORPUS, config.replace(sample_prompt="")) if e.event == "sampled")
    assert first.prompt == "" and len(first.text) == 11
    assert first.text[0] == CORPUS.tokenizer.decode([int(CORPUS.val[0])])
    # What follows the full stop nobody has learned.
    corpus = corpus_from_sentences()
    shape = PRESETS["s5"].replace(vocab_size=corpus.vocab_size)
    training = CONFIG.replace(steps=40, batch_size=16, sample_every=40, sample_tokens=30, sample_prompt="the cat")
    events = list(train(Transformer(shape), corpus, training))
    (sample,) = [e for e in events if e.event == "sampled" and e.step]
    assert sample.text.endswith(".") and sample.text.count(".") == 1 and len(sample.text.split()) < 30


def test_what_does_not_fit_together_is_refused_before_anything_happens():
    with pytest.raises(ValueError, match="different tokens"):
        train(Transformer(ModelConfig(2, 16, 1, 8, 1)), CORPUS, CONFIG)
    with pytest.raises(ValueError, match=r"longer.*context"):
        train(tiny(context_length=4096), CORPUS, CONFIG)
    with pytest.raises(ValueError, match="device called"):
        train(tiny(), CORPUS, CONFIG.replace(device="abacus"))
    with pytest.raises(ValueError, match="fp16 training"):
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
    thin = history.thinned(5)
    assert thin.evaluations == history.evaluations, "of steps not kept, too"
    assert thin.steps["step"][0] == 1 and thin.steps["step"][-1] == 12 and len(thin.steps["step"]) <= 6
    with pytest.raises(ValueError, match="equally long"):
        History.from_dict({"steps": {"step": [1], "loss": []}})


def test_what_files_write_as_null_is_no_number_again():
    """A diverged run can be saved and opened: JSON has no NaN."""
    values = {
        "steps": {"step": [1, 2], "loss": [0.5, None], "learning_rate": [0.1, 0.1], "gradient_norm": [1.0, None],
                  "tokens_per_second": [9.0, 9.0], "seconds": [0.1, 0.2]},
        "evaluations": {"step": [0, 2], "train_loss": [2.0, None], "val_loss": [2.5, None], "seconds": [0.0, 0.2]},
        "gradients": [{"step": 2, "norms": {"head": None, "embedding": 1.0}}],
        "load": [{"step": 2, "load": [[0.5, None]]}],
        "finished": {"event": "finished", "val_loss": None},
    }  # fmt: skip
    history = History.from_dict(values)
    assert math.isnan(history.steps["loss"][1]) and math.isnan(history.val_loss)
    assert math.isnan(history.gradients[0]["norms"]["head"]) and math.isnan(history.load[0]["load"][0][1])
    assert history.best == (0, 2.5) and history.finished["val_loss"] is None
    with pytest.raises(ValueError, match="hold numbers"):
        History.from_dict({"steps": {name: [None] for name in values["steps"]}})
    for changes in ([{"step": 1}], [{"step": 1, "settings": {"steps": 3}}], [{"step": 1, "settings": []}]):
        with pytest.raises(ValueError, match=r"changes.*settings"):
            History.from_dict({"changes": changes})
