"""Zip files: what was packed comes out again, what a stranger put in is refused with a sentence and leaves nothing."""

import json
import pickle
import stat
import struct
import zipfile
from pathlib import Path

import pytest
import torch

from playground.data import Baselines
from playground.data.tokenizers import CharTokenizer
from playground.model import ModelConfig, Transformer
from playground.storage import Checkpoint, CheckpointError, write_checkpoint
from playground.storage.archive import FILES, MAX_CONTENTS, file_name, pack, unpack
from playground.storage.opening import load_archive
from playground.storage.record import sanitised_history
from playground.training import Evaluated, Finished, History, Sampled, Stepped, TrainConfig

CONFIG = ModelConfig(vocab_size=6, context_length=8, n_layers=1, d_model=8, n_heads=2)
ROOM = 1_000_000


def made() -> Checkpoint:
    """A small model with a record."""
    history = History()
    common = {"learning_rate": 0.1, "gradient_norm": 1.0, "tokens_per_second": 10.0, "time_left": 1.0}
    for step in (1, 2):
        history.add(Stepped(step, float(step), loss=2.0 / step, **common))
    history.add(Evaluated(2, 2.0, train_loss=1.5, val_loss=1.6))
    history.add(Sampled(2, 2.0, prompt="ab", text="cde"))
    history.add(Finished(2, 2.0, reason="done", steps=2, val_loss=1.6))
    baselines = Baselines(1.8, 1.7, 1.6, texts={"bigram": "abab"}).to_dict()
    about = {"corpus": "Your text", "prompt": "ab", "ladder": baselines, "training": TrainConfig(steps=2).to_dict()}
    return Checkpoint(Transformer(CONFIG, seed=1), CharTokenizer("abcde"), history, "Run 1 · My <b>text</b>", about)


@pytest.fixture
def folder(tmp_path) -> Path:
    """A checkpoint's folder, to be spoilt."""
    return write_checkpoint(tmp_path / "good", made(), card="# A model")


def zipped(tmp_path: Path, files: dict[str, bytes], **entry) -> Path:
    """A zip file of these names and contents."""
    path = tmp_path / "upload.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            for key, value in entry.items():
                setattr(info, key, value)
            archive.writestr(info, data)
    return path


def files_of(folder: Path) -> dict[str, bytes]:
    """Name → bytes."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(path: Path, complaint: str, **options) -> None:
    """Loading must end in this sentence, without the name of a place on this machine."""
    with pytest.raises(CheckpointError, match=complaint) as caught:
        load_archive(path, **{"max_bytes": ROOM, **options})
    assert "/tmp" not in str(caught.value) and "playground-unpack" not in str(caught.value)


def test_what_was_packed_comes_out_again(tmp_path):
    one = made()
    again = load_archive(pack(one, tmp_path / "model.zip"), max_bytes=ROOM)
    for name, tensor in one.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], tensor), name
    assert again.name == one.name and again.about == one.about
    assert again.history.to_dict() == one.history.to_dict()
    assert again.tokenizer.decode(again.tokenizer.encode("bad")) == "bad"


def test_the_zip_is_a_folder_of_the_five_files_whose_places_do_no_harm_but_whose_damage_does(tmp_path, folder):
    path = pack(made(), tmp_path / "model.zip", card="# A model")
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == sorted(f"run-1-my-b-text-b/{name}" for name in FILES)
    assert file_name("Run 1 · ../../Tiny/Stories\n") == "run-1-tiny-stories" and file_name("…") == "model"
    files = files_of(folder)
    extra = {"__MACOSX/._config.json": b"x", "m/.DS_Store": b"x", "m/": b""}
    load_archive(zipped(tmp_path, files), max_bytes=ROOM)
    load_archive(zipped(tmp_path, {**{f"m/{n}": d for n, d in files.items()}, **extra}), max_bytes=ROOM)
    path = zipped(tmp_path, files_of(folder))
    data = path.read_bytes()
    for spoilt_data in (data[:-30], data[100:], data[:300] + bytes([data[300] ^ 255]) + data[301:]):
        path.write_bytes(spoilt_data)
        refused(path, "zip|damaged|JSON|config")


@pytest.mark.parametrize(
    "name",
    ["../config.json", "/etc/config.json", "a/../../config.json", "..\\config.json", "C:config.json", "//x/a.json"],
)
def test_names_that_lead_out_of_the_folder_are_refused_and_nothing_is_written(tmp_path, name):
    before = sorted(tmp_path.rglob("*"))
    path = zipped(tmp_path, {name: b"{}"})
    with pytest.raises(CheckpointError, match=r"outside.*itself"):
        unpack(path, tmp_path / "out", max_bytes=ROOM)
    assert sorted(tmp_path.rglob("*")) == sorted([*before, path])


@pytest.mark.parametrize(("kind", "word"), [(stat.S_IFLNK, "link"), (stat.S_IFIFO, "device"), (stat.S_IFCHR, "device")])
def test_links_and_devices_are_refused(tmp_path, kind, word):
    path = zipped(tmp_path, {"config.json": b"/etc/passwd"}, external_attr=(kind | 0o777) << 16, create_system=3)
    refused(path, word)


class _Runs:
    """A pickle that would leave a trace if anything opened it."""

    def __init__(self, trace: Path):
        self.trace = str(trace)

    def __reduce__(self):
        return (open, (self.trace, "w"))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "m/model.PTH", "x.pkl", "optimizer.ckpt"])
def test_a_pickle_is_named_and_never_opened(tmp_path, folder, name):
    trace = tmp_path / "trace"
    path = zipped(tmp_path, {**files_of(folder), name: pickle.dumps(_Runs(trace))})
    refused(path, "is a pickle, which can run code")
    assert not trace.exists()


def test_what_is_unknown_nested_locked_or_oddly_packed_is_refused(tmp_path, folder):
    files = files_of(folder)
    refused(zipped(tmp_path, {**files, "run.py": b"print()"}), "run.py, which is no part of a model")
    refused(zipped(tmp_path, {**files, "a/b/config.json": b"{}"}), "no part of a model")
    refused(zipped(tmp_path, {**files, "other/README.md": b"", "README.md": b""}), "twice|several folders")
    del files["README.md"]
    refused(zipped(tmp_path, {**files, "other/README.md": b""}), "several folders")
    inner = zipped(tmp_path, files_of(folder)).read_bytes()
    refused(zipped(tmp_path, {"model.zip": inner}), "no part of a model")
    path = tmp_path / "odd.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("config.json", b"{}")
    refused(path, "unusual way")
    data = bytearray(zipped(tmp_path, {"config.json": b"{}"}).read_bytes())
    at = data.find(b"PK\x01\x02")
    data[at + 8] |= 1  # the flag of a password
    path.write_bytes(bytes(data))
    refused(path, "password")


def test_bombs_are_refused_by_what_they_state_and_are_and_a_huge_table_is_not_read(tmp_path, folder, monkeypatch):
    bomb = zipped(tmp_path, {**files_of(folder), "model.safetensors": b"\0" * 20_000_000})
    assert bomb.stat().st_size < 100_000
    refused(bomb, "would have 20.0 MB; at most 1.0 MB")
    for name, most in (("README.md", "1.0 MB"), ("config.json", "0.1 MB")):
        refused(zipped(tmp_path, {**files_of(folder), name: b" " * 1_100_000}), f"at most {most}", max_bytes=10**9)
    refused(zipped(tmp_path, files_of(folder)), "would inflate to|would have", max_bytes=3000)
    # one that lies about its size: both records say 10 bytes
    path = zipped(tmp_path, {"config.json": b"\0" * 5_000_000})
    data = bytearray(path.read_bytes())
    size, lie = struct.pack("<I", 5_000_000), struct.pack("<I", 10)
    assert data.count(size) == 2
    path.write_bytes(bytes(data).replace(size, lie))
    refused(path, "damaged|larger than")
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(1500):
            archive.writestr(f"{i:040d}", b"")
    monkeypatch.setattr(zipfile, "ZipFile", None)  # it must not come that far
    assert MAX_CONTENTS < 1500 * 86
    refused(path, "far more files than a model has")


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"not a zip at all" * 100, b"PK\x05\x06" + b"\0" * 18, b"PK\x05\x06" + b"\xff" * 18]
)
def test_what_is_no_zip_is_refused(tmp_path, data):
    path = tmp_path / "upload.zip"
    path.write_bytes(data)
    refused(path, "zip")


def test_of_a_strangers_record_only_what_has_the_right_form_is_kept(tmp_path, folder):
    record = json.loads((folder / "history.json").read_text())
    record["name"] = "<script>alert(1)</script>\x1b[2J" + "x" * 500
    record["about"] = {
        "corpus": ["not", "text"], "prompt": "a" * 50_000, "language": 7, "ladder": {"uniform": "1", "steps": []},
        "training": {"steps": -5}, "surprise": {"deep": [1]}, "text_sha256": "ab\ncd",
    }  # fmt: skip
    record["samples"] = [
        {"step": "<b>", "prompt": "a", "text": "b"}, {"step": 2, "prompt": {}, "text": "b"}, {"step": 3},
        {"step": 4, "prompt": "ok", "text": "fine\x00\nline"},
    ]  # fmt: skip
    record["gradients"] = [
        {"step": 1, "norms": {"a": "x"}},
        {"step": 2, "norms": {"a": 1.5}},
        {"step": True, "norms": {}},
    ]
    record["load"] = [{"step": 1, "load": "x"}, {"step": 2, "load": [[0.5, "y"]]}, {"step": 3, "load": [[0.5, 0.5]]}]
    record["finished"] = {"message": "<img onerror=1>", "reason": 7, "val_loss": "x", "step": 2}
    (folder / "history.json").write_text(json.dumps(record))
    again = load_archive(zipped(tmp_path, files_of(folder)), max_bytes=ROOM)
    assert again.name.isprintable() and len(again.name) <= 80
    assert set(again.about) == {"prompt", "text_sha256"} and len(again.about["prompt"]) == 20_000
    assert again.history.samples == [{"step": 4, "prompt": "ok", "text": "fine\nline"}]
    assert again.history.gradients == [{"step": 2, "norms": {"a": 1.5}}]
    assert again.history.load == [{"step": 3, "load": [[0.5, 0.5]]}]
    assert again.history.finished == {"message": "<img onerror=1>", "step": 2}
    assert again.history.evaluations["val_loss"] == [1.6]
    history = History(judged=[{"step": 5, "right": 1, "of": 2, "left": "as it once was"}])
    assert sanitised_history(history).judged == [{"step": 5, "right": 1, "of": 2}]
