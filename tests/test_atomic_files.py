"""At every moment of a kill a folder opens as the old state or the new one, and the next save succeeds."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from playground.atomic_files import COMMITTED, bytes_of, current_file, read_folder, write_file, write_folder
from playground.data import corpus_from_text
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.model import Transformer
from playground.storage import Checkpoint, CheckpointError, load, save, write_checkpoint
from playground.storage.archive import pack
from playground.storage.opening import load_archive
from playground.storage.snapshots import find_snapshots, keep_snapshot, save_snapshots
from playground.training import History, Stepped, TrainConfig, train
from playground.words.card import model_card
from tests.model.configs import TINY
from tests.storage.kills import moments


def history(loss: float) -> History:
    made = History()
    made.evaluations = {"step": [1, 2], "train_loss": [loss, loss], "val_loss": [loss, loss], "seconds": [0.0, 1.0]}
    return made


OLD = Checkpoint(Transformer(TINY, seed=1), CharTokenizer("abcdefghij"), history(2.0), "old", {"prompt": "a"})
OTHER = TINY.replace(d_ff=32, n_layers=1)
NEW = Checkpoint(Transformer(OTHER, seed=2), WordTokenizer(["b", "c"]), history(1.0), "new", {"prompt": "b"})


def saved(folder: Path, one: Checkpoint) -> None:
    write_checkpoint(folder, one, card=model_card(one))


def is_whole(found: Checkpoint, one: Checkpoint) -> bool:
    """Whether everything of a loaded checkpoint is this one's; weights that differ in form cannot be compared."""
    same = found.config == one.config and found.tokenizer.to_dict() == one.tokenizer.to_dict()
    same = same and found.history == one.history and found.name == one.name and found.about == one.about
    states = found.model.state_dict(), one.model.state_dict()
    return same and all(torch.equal(states[0][name], tensor) for name, tensor in states[1].items())


def test_a_folder_saved_over_is_old_or_new_at_every_moment_and_can_be_saved_over_again(tmp_path):
    folder = tmp_path / "here" / "m"
    saved(folder, OLD)
    (folder / "resume.safetensors").write_bytes(b"kept")
    copies = moments(lambda: saved(folder, NEW), tmp_path / "here", tmp_path / "copies")
    states = []
    for copy in copies:
        found = load(copy / "m")
        assert is_whole(found, OLD) or is_whole(found, NEW), copy.name
        states.append(found.name)
        assert "Validation loss" in current_file(copy / "m", "README.md").read_text()
        saved(copy / "m", OLD)
        assert is_whole(load(copy / "m"), OLD)
        assert (copy / "m" / "resume.safetensors").read_bytes() == b"kept"
        assert not (copy / "m" / COMMITTED).exists()
    assert len(copies) > 20 and states == sorted(states, reverse=True)  # once it is new it stays new
    assert states[0] == "old" and states[-1] == "new"
    assert sorted(os.listdir(folder)) == [
        "README.md", "config.json", "history.json", "model.safetensors", "resume.safetensors", "tokenizer.json",
    ]  # fmt: skip


def test_a_new_folder_is_whole_or_not_there(tmp_path):
    (tmp_path / "here").mkdir()
    copies = moments(lambda: saved(tmp_path / "here" / "m", NEW), tmp_path / "here", tmp_path / "copies")
    there = [(copy / "m").exists() for copy in copies]
    assert there == sorted(there) and there[-1] and not there[0]
    for copy, is_there in zip(copies, there):
        if is_there:
            assert is_whole(load(copy / "m"), NEW)
        saved(copy / "m", OLD)
        assert is_whole(load(copy / "m"), OLD)


def test_archives_and_snapshots_are_old_or_new_at_every_moment(tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    pack(OLD, here / "m.zip")
    save_snapshots(here, [(5, OLD.model.state_dict())])
    keep_snapshot(here, 3, OLD.model.state_dict())

    def write() -> None:
        pack(NEW, here / "m.zip")
        save_snapshots(here, [(5, OLD.model.state_dict()), (6, OLD.model.state_dict())])
        keep_snapshot(here, 4, OLD.model.state_dict())

    kept = set()
    for copy in moments(write, here, tmp_path / "copies"):
        found = load_archive(copy / "m.zip", max_bytes=10**7)
        snapshots = find_snapshots(copy, TINY)
        for step in snapshots.steps:
            assert torch.equal(
                snapshots.weights(step)["head.weight"], OLD.model.state_dict()["head.weight"].half().float()
            )
        kept.add((found.name, snapshots.steps))
    assert sorted(kept, key=str) == sorted(
        [("old", (3, 5)), ("new", (3, 5)), ("new", (3, 5, 6)), ("new", (3, 4, 5, 6))], key=str
    )


def test_a_run_that_saves_itself_goes_on_from_every_moment(tmp_path):
    corpus, here = corpus_from_text("a stitch in time saves nine. " * 20), tmp_path / "here"
    config = TrainConfig(
        steps=3, batch_size=2, eval_every=3, eval_windows=2, warmup_steps=1, autosave_seconds=0.0, device="cpu"
    )

    def run(folder: Path, resume: bool) -> list[float]:
        model = Transformer(TINY.replace(vocab_size=corpus.vocab_size), seed=1)
        events = list(train(model, corpus, config, folder=folder, resume=resume))
        assert events[-1].reason == "done"
        return [event.loss for event in events if isinstance(event, Stepped)]

    here.mkdir()
    losses: list[float] = []
    copies = moments(lambda: losses.extend(run(here, resume=False)), here, tmp_path / "copies")
    resumed = [run(copy, resume=True) for copy in copies if (copy / "resume.safetensors").exists()]
    assert len(resumed) > 6 and all(rest == losses[len(losses) - len(rest) :] for rest in resumed)


def test_every_file_is_flushed_before_it_counts(tmp_path, monkeypatch):
    """A file that is moved before it was flushed may be empty after the power has failed."""
    saved(tmp_path / "m", OLD)
    flushed, flush, move = set(), os.fsync, os.replace

    def note(at: int) -> None:
        flushed.add(os.fstat(at).st_ino)
        flush(at)

    def check(source, target) -> None:
        files = list(Path(source).iterdir()) if Path(source).is_dir() else [Path(source)]
        assert files and all(file.stat().st_ino in flushed for file in files), source
        move(source, target)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(os, "replace", check)
    saved(tmp_path / "m", NEW)
    saved(tmp_path / "n", NEW)
    pack(NEW, tmp_path / "m.zip")


def test_a_writer_that_fails_leaves_nothing_and_raises_an_os_error(tmp_path):
    def fail(made: Path) -> None:
        (made / "half" if made.is_dir() else made).write_text("half")
        raise OSError("disk full")

    (tmp_path / "there").mkdir()
    (tmp_path / "file").write_text("old")
    for write, name in ((write_folder, "there"), (write_folder, "new"), (write_file, "file"), (write_file, "none")):
        with pytest.raises(OSError, match="disk full"):
            write(tmp_path / name, fail)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "there"] and (tmp_path / "file").read_text() == "old"

    # It is none by itself, so that a run on a full disk ended with nothing to keep.
    def fail(made: Path) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    for write in (write_file, write_folder):
        with pytest.raises(OSError, match="space left"):
            write(tmp_path / "x", fail)


def test_what_killed_writers_left_goes_when_it_is_old_and_what_moves_is_measured(tmp_path, monkeypatch):
    for name in (".m.0123.new", "m/.files.0123.new"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.json").write_text("{")
    (tmp_path / ".a.json.0123.partial").write_text("{")
    saved(tmp_path / "m", OLD)
    assert (tmp_path / "m" / ".files.0123.new").exists()  # its writer may be alive
    for path in (*tmp_path.glob(".*"), tmp_path / "m" / ".files.0123.new"):
        os.utime(path, (0, 0))
    saved(tmp_path / "m", OLD)
    write_file(tmp_path / "a.json", lambda path: path.write_text("{}"))
    shutil.rmtree(tmp_path / "m")
    saved(tmp_path / "m", OLD)
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]
    # A run that had ended was called unsaved: its notes were moved while its folder was measured.
    (tmp_path / "run" / "snapshots").mkdir(parents=True)
    for file in ("model", "snapshots/0"):
        (tmp_path / "run" / file).write_bytes(bytes(100))
    walk = os.walk
    monkeypatch.setattr(
        os, "walk", lambda top: ((at, inner, [*names, ".job.json.partial"]) for at, inner, names in walk(top))
    )
    assert bytes_of(tmp_path / "run") == 200


def test_a_reader_never_mixes_two_states(tmp_path):
    """A writer who comes between the reading of two files is noticed, and the files are read again."""
    folder, rounds = tmp_path / "m", []
    names = ("a", "b")

    def write(what: str) -> None:
        write_folder(folder, lambda made: [(made / name).write_text(what) for name in names])

    def read() -> str:
        first = current_file(folder, "a").read_text()
        if len(rounds) < 3:
            rounds.append(first)
            write(f"state {len(rounds)}")
        return first + current_file(folder, "b").read_text()

    write("state 0")
    assert read_folder(folder, names, read) == "state 3state 3"
    with pytest.raises(OSError, match="being written"):
        read_folder(folder, names, lambda: write("again"))


def test_whatever_is_saved_can_be_loaded_however_long_its_record(tmp_path):
    made = history(1.0)
    norms = {f"blocks.{i}.feedforward.up.weight": 1.23456e-5 for i in range(100)}
    made.gradients = [{"step": step, "norms": norms} for step in range(2100)]
    made.samples = [{"step": step, "prompt": "a", "text": "b" * 300} for step in range(2100)]
    save(tmp_path / "m", OLD.model, OLD.tokenizer, made)
    again = load(tmp_path / "m").history
    assert again.gradients[-1]["step"] == 2099 and again.samples[-1]["step"] == 2099
    assert 100 < len(again.gradients) < 2100 and json.loads((tmp_path / "m" / "history.json").read_text())
    with pytest.raises(CheckpointError, match=r"long.*saved"):
        save(tmp_path / "m", OLD.model, OLD.tokenizer, name="x" * 10**7)
    with pytest.raises(CheckpointError, match="most 256"):
        save(tmp_path / "deep", Transformer(TINY.replace(n_layers=300)), OLD.tokenizer)
