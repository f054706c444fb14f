"""Laws of resuming: a run with interruptions is the run without, to the last digit, or it is refused by name."""

import dataclasses
import json
import os
import signal
import subprocess
import sys

import pytest
import torch
from filelock import FileLock
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from playground.data import corpus_from_sentences, corpus_from_text
from playground.model import ModelConfig, Transformer
from playground.training import Finished, Noticed, Saved, SettingsChanged, Stepped, TrainConfig, train
from playground.training.autosave import FILE, LOCK
from playground.training.config import FREELY, NEVER, NOTICED, ON_RESUME
from playground.training.events import OTHER_MACHINE
from playground.training.resume import SavedRun
from tests.training.runs import CORPUS, TEXT, Spoiling, losses, stop_after

SHAPE = ModelConfig(CORPUS.vocab_size, context_length=16, n_layers=2, d_model=16, n_heads=2)
CONFIG = TrainConfig(
    steps=12, batch_size=4, eval_every=5, eval_windows=6, warmup_steps=2, precision="fp32", device="cpu", snapshots=4
)
EXPERTS = {"n_experts": 4, "experts_per_token": 2}


def first_part(folder, config=CONFIG, model=SHAPE, corpus=CORPUS) -> None:
    list(train(Transformer(model), corpus, config, folder=folder, should_stop=stop_after(5)))


@pytest.mark.parametrize(("optimizer", "precision"), [("adamw", "fp32"), ("muon", "bf16")])
@pytest.mark.parametrize(
    ("model", "training"),
    [
        ({}, {}),
        ({"dropout": 0.2, "tie_embeddings": True}, {"accumulation": 2}),
        ({**EXPERTS, "balance": "bias", "router_noise": 0.1}, {"schedule": "cosine"}),
        ({**EXPERTS, "balance": "switch", "shared_expert": True}, {"accumulation": 3}),
    ],
    ids=["plain", "dropout", "bias balance", "switch balance"],
)
def test_a_run_with_interruptions_is_the_run_without(tmp_path, optimizer, precision, model, training):
    samples = {"sample_every": 5, "sample_tokens": 3}  # one more at each interruption
    config = CONFIG.replace(optimizer=optimizer, precision=precision, **samples, **training)
    shape = SHAPE.replace(**model)
    whole = Transformer(shape)
    expected = list(train(whole, CORPUS, config))
    told = []
    for steps in (2, 3, 1, 99):
        model, resume = Transformer(shape), bool(told)
        told += train(model, CORPUS, config, folder=tmp_path, resume=resume, should_stop=stop_after(steps))
    assert losses(told) == losses(expected)
    assert all(torch.equal(a, b) for a, b in zip(whole.state_dict().values(), model.state_dict().values()))
    assert [e.step for e in told if e.event == "snapshotted"] == [e.step for e in expected if e.event == "snapshotted"]


def test_the_whole_history_is_kept_whatever_the_number_of_rounds(tmp_path):
    config, rounds = CONFIG.replace(steps=120, eval_every=0, snapshots=0), (50, 20, 15, 10, 99_999)
    for steps in rounds:
        going_on = {"folder": tmp_path, "resume": (tmp_path / FILE).exists(), "should_stop": stop_after(steps)}
        last = list(train(Transformer(SHAPE), CORPUS, config, **going_on))
    assert last[-1].reason == "done"
    history = SavedRun.of(tmp_path).history
    assert history.steps["step"] == list(range(1, 121)) and all(isinstance(step, int) for step in history.steps["step"])
    assert history.steps["loss"][-25:] == losses(last)
    assert history.steps["seconds"] == sorted(history.steps["seconds"]) and not history.changes


def test_where_a_run_stops_it_writes_a_sample_once(tmp_path):
    config = CONFIG.replace(eval_every=0, snapshots=0, sample_every=6, sample_tokens=3)

    def sampled(stop: int, **changes) -> list[int]:
        resume = (tmp_path / FILE).exists()
        events = train(Transformer(SHAPE), CORPUS, config.replace(**changes), folder=tmp_path, resume=resume,
                       should_stop=stop_after(stop))  # fmt: skip
        return [event.step for event in events if event.event == "sampled"]

    assert sampled(4) == [0, 4] and sampled(0) == [] and sampled(2) == [6]
    assert sampled(1, sample_every=0) == [], "none where none are wanted"
    assert [record["step"] for record in SavedRun.of(tmp_path).history.samples] == [0, 4, 6]
    assert sampled(99) == [12]


def test_losses_that_are_no_numbers_survive_saving(tmp_path):
    class Silent:  # nothing of it can be judged
        def __getattr__(self, name):
            return getattr(CORPUS, name)

        def windows(self, *arguments):
            x, y = CORPUS.windows(*arguments)
            return x, torch.full_like(y, -100)

    first_part(tmp_path, corpus=Silent())
    events = list(train(Transformer(SHAPE), Silent(), CONFIG, folder=tmp_path, resume=True))
    assert events[-1].reason == "done"


def test_the_batches_of_a_run_are_its_own_beside_a_compiler_and_in_documents(monkeypatch, tmp_path):
    """Compiling tries a batch; the run's own batches stay what they are without."""
    monkeypatch.setattr("playground.training.loop.compiled", lambda model, *_: (model, "not here"))
    plain = losses(train(Transformer(SHAPE), CORPUS, CONFIG))
    assert losses(train(Transformer(SHAPE), CORPUS, CONFIG.replace(compile=True))) == plain
    documents = corpus_from_sentences()
    shape, config = SHAPE.replace(vocab_size=documents.vocab_size), CONFIG.replace(accumulation=2)
    expected = losses(train(Transformer(shape), documents, config))
    first_part(tmp_path, config, shape, documents)
    assert losses(train(Transformer(shape), documents, config, folder=tmp_path, resume=True)) == expected[5:]


OTHER_VALUES = {"int": 7, "int | None": 3, "float": 0.5, "float | None": 999.0, "bool": True}
OTHER_WORDS = {"optimizer": "adamw", "schedule": "cosine", "precision": "bf16", "device": "cpu:0", "sample_prompt": "a"}


@pytest.mark.parametrize("field", dataclasses.fields(TrainConfig), ids=lambda field: field.name)
def test_a_changed_setting_is_refused_by_name_or_written_down(tmp_path, monkeypatch, field):
    monkeypatch.setattr("playground.training.loop.compiled", lambda model, *_: (model, None))  # takes a minute
    first_part(tmp_path)
    value = OTHER_WORDS.get(field.name, OTHER_VALUES.get(field.type))
    before, config = getattr(CONFIG, field.name), CONFIG.replace(**{field.name: value})
    kind, _ = ON_RESUME[field.name]
    if kind == NEVER:
        with pytest.raises(ValueError, match=f"{field.name} was {before!r}, is now {value!r}"):
            train(Transformer(SHAPE), CORPUS, config, folder=tmp_path, resume=True)
        return
    events = list(train(Transformer(SHAPE), CORPUS, config, folder=tmp_path, resume=True))
    changed = [event for event in events if isinstance(event, SettingsChanged)]
    if kind == FREELY:
        assert not changed
        return
    assert [(event.step, event.settings) for event in changed] == [(5, {field.name: [before, value]})]
    saved = SavedRun.of(tmp_path)
    assert saved.history.changes == [{"step": 5, "settings": {field.name: [before, value]}}]
    assert getattr(saved.training, field.name) == value
    noticed = [event for event in events if isinstance(event, Noticed) and event.kind == OTHER_MACHINE]
    assert bool(noticed) == (kind == NOTICED)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"activation": "relu"}, "'gelu'.*'relu'"),
        ({"norm_eps": 1e-6}, "now 1e-06"),
        ({"d_model": 32, "n_heads": 4}, "32; n_heads"),
        ({"dropout": 0.5}, "now 0.5"),
    ],
)
def test_another_model_is_refused_by_name(tmp_path, changes, sentence):
    first_part(tmp_path)
    model = Transformer(SHAPE.replace(**changes))
    with pytest.raises(ValueError, match=sentence):
        train(model, CORPUS, CONFIG, folder=tmp_path, resume=True)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), Transformer(model.config).parameters())), (
        "untouched"
    )


def test_nothing_damage_another_text_or_tokenizer_are_refused_in_words(tmp_path):
    first_part(tmp_path)
    same_letters = corpus_from_text("in a stitch nine saves time. " * 60)
    assert same_letters.vocab_size == CORPUS.vocab_size
    with pytest.raises(ValueError, match=r"text.*another"):
        train(Transformer(SHAPE), same_letters, CONFIG, folder=tmp_path, resume=True)
    words = corpus_from_text(TEXT, "word")
    with pytest.raises(ValueError, match=r"tokenizer.*another"):
        train(Transformer(SHAPE), words, CONFIG, folder=tmp_path, resume=True)
    with pytest.raises(ValueError, match=r"nothing.*resume"):
        train(Transformer(SHAPE), CORPUS, CONFIG, folder=tmp_path / "none", resume=True)
    with pytest.raises(ValueError, match=r"name.*folder"):
        train(Transformer(SHAPE), CORPUS, CONFIG, resume=True)
    first_part(tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    for damaged in (b"garbage", whole[: len(whole) // 2], whole[:200], b""):
        (tmp_path / FILE).write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged"):
            train(Transformer(SHAPE), CORPUS, CONFIG, folder=tmp_path, resume=True)


def broken(tensors: dict, notes: dict, what: str) -> None:
    """Damage one part of a saved state."""
    part = next(name for name in tensors if name.startswith(what.removesuffix("-1/")))
    if what == "optimizer/0/-1/":  # the last parameter, counted from the end
        last = max(int(name.split("/")[2]) for name in tensors if name.startswith("optimizer/0/"))
        for name in [name for name in tensors if name.startswith(f"optimizer/0/{last}/")]:
            tensors[name.replace(f"/{last}/", "/-1/")] = tensors.pop(name)
    elif what == "generator/batches":
        tensors[part] = torch.full_like(tensors[part], 255)
    elif what == "best":
        notes["best"] = {"step": 3, "val_loss": 1.0}
    elif what == "generator/dropout":
        del tensors[part]
    else:
        tensors[part] = torch.zeros(3, 3, 3)


@pytest.mark.parametrize(
    "what",
    ["model/head", "optimizer/0/", "optimizer/0/-1/", "optimizer/1/", "generator/dropout", "generator/batches", "best",
     "text"],
)  # fmt: skip
def test_a_refused_resume_leaves_the_model_as_it_was_and_where_it_was(tmp_path, monkeypatch, what):
    config = CONFIG.replace(eval_every=2)
    list(train(Transformer(SHAPE), CORPUS, config, folder=tmp_path, should_stop=stop_after(5)))
    with safe_open(tmp_path / FILE, framework="pt") as file:
        notes = json.loads(file.metadata()["notes"])
    tensors = {"best": None, "text": None, **load_file(tmp_path / FILE)}
    if what == "text":
        notes["text"] = "another"
    else:
        broken(tensors, notes, what)
    saved = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    save_file(saved, tmp_path / FILE, metadata={"notes": json.dumps(notes)})
    model, moved = Transformer(SHAPE), []
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    monkeypatch.setattr(Transformer, "to", lambda self, device: moved.append(device) or self)
    with pytest.raises(ValueError, match="the text" if what == "text" else "is damaged"):
        train(model, CORPUS, config, folder=tmp_path, resume=True)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert not moved
    for parameter in model.parameters():
        assert parameter.device.type == "cpu"


def test_nothing_is_moved_or_loaded_before_the_first_event_is_asked_for(tmp_path, monkeypatch):
    first_part(tmp_path)
    model, moved = Transformer(SHAPE), []
    monkeypatch.setattr(Transformer, "to", lambda self, device: moved.append(device) or self)
    events = train(model, CORPUS, CONFIG, folder=tmp_path, resume=True)
    assert not moved and all(torch.equal(a, b) for a, b in zip(model.parameters(), Transformer(SHAPE).parameters()))
    next(events)
    assert moved and not torch.equal(model.head.weight, Transformer(SHAPE).head.weight)
    events.close()


def test_another_number_of_threads_is_said_aloud(tmp_path):
    threads, said = torch.get_num_threads(), []
    try:
        for now in (1, 2):
            torch.set_num_threads(1)
            first_part(tmp_path / str(now))
            torch.set_num_threads(now)
            events = train(Transformer(SHAPE), CORPUS, CONFIG, folder=tmp_path / str(now), resume=True)
            said += [event.facts for event in events if isinstance(event, Noticed) and event.kind == OTHER_MACHINE]
    finally:
        torch.set_num_threads(threads)
    assert [(each["before"][-10:], each["now"][-10:]) for each in said] == [("threads: 1", "threads: 2")]


def test_another_rate_is_the_rate_of_the_next_steps(tmp_path):
    first_part(tmp_path)
    config = CONFIG.replace(learning_rate=6e-3, muon_learning_rate=0.04)
    steps = [
        e for e in train(Transformer(SHAPE), CORPUS, config, folder=tmp_path, resume=True) if isinstance(e, Stepped)
    ]
    assert [e.learning_rate for e in steps] == pytest.approx([6e-3 * CONFIG.rate_at(step) for step in range(6, 13)])


def test_a_folder_has_one_owner_until_the_last_event_was_taken(tmp_path):
    first = train(Transformer(SHAPE), CORPUS, CONFIG, folder=tmp_path)
    next(first)
    for resume in (False, True):
        with pytest.raises(ValueError, match=r"another.*trained"):
            train(Transformer(SHAPE), CORPUS, CONFIG, folder=tmp_path, resume=resume)
    first.close()
    assert list(train(Transformer(SHAPE), CORPUS, CONFIG, folder=tmp_path))[-1].reason == "done"
    never_begun = train(Transformer(SHAPE), CORPUS, CONFIG, folder=tmp_path)
    del never_begun
    with pytest.raises(ValueError, match="d_model was"):  # a refusal gives the folder back, too
        train(Transformer(SHAPE.replace(d_model=32)), CORPUS, CONFIG, folder=tmp_path, resume=True)
    FileLock(tmp_path / LOCK, timeout=0).acquire().__enter__()


SCRIPT = f"""
import sys
from playground.data import corpus_from_text
from playground.model import ModelConfig, Transformer
from playground.training import TrainConfig, train
corpus = corpus_from_text({TEXT!r})
model = Transformer(ModelConfig(corpus.vocab_size, context_length=16, n_layers=2, d_model=16, n_heads=2))
config = TrainConfig(steps=100000, batch_size=4, eval_every=0, autosave_seconds=0.05, precision="fp32", device="cpu")
for event in train(model, corpus, config, folder=sys.argv[1]):
    print(event.event, event.step, flush=True)
"""


def test_a_kill_loses_at_most_the_steps_since_the_last_autosave_and_holds_nothing(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=os.getcwd()
    )
    saved = 0
    for line in process.stdout:
        name, step = line.split()
        saved = int(step) if name == "saved" else saved
        if saved > 40:
            break
    config = TrainConfig(steps=100_000, batch_size=4, eval_every=0, precision="fp32", device="cpu")
    with pytest.raises(ValueError, match=r"another.*trained"):
        train(Transformer(SHAPE), CORPUS, config, folder=tmp_path, resume=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    events = train(Transformer(SHAPE), CORPUS, config, folder=tmp_path, resume=True)
    step = next(e.step for e in events if isinstance(e, Stepped))
    assert step > saved
    events.close()


def test_nothing_is_saved_of_a_divergence_so_the_run_before_it_can_go_on(tmp_path):
    model = Transformer(SHAPE)
    events = list(train(model, Spoiling(model, before=8), CONFIG.replace(autosave_seconds=0), folder=tmp_path))
    assert isinstance(events[-1], Finished) and events[-1].reason == "diverged"
    assert [event.step for event in events if isinstance(event, Saved)][-1] == 7 == SavedRun.of(tmp_path).step
    model = Transformer(SHAPE)
    list(train(model, Spoiling(model, before=8), CONFIG.replace(autosave_seconds=999), folder=tmp_path / "rarely"))
    assert not (tmp_path / "rarely" / FILE).exists(), "nor at its end"
    lower = CONFIG.replace(learning_rate=1e-4)
    assert list(train(Transformer(SHAPE), CORPUS, lower, folder=tmp_path, resume=True))[-1].reason == "done"
