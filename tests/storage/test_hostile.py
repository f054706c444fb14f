"""Hostile and odd files: each is refused in a sentence, quickly and in little memory, or can generate."""

import base64
import json
import os
import shutil
import struct
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playground.cli import main
from playground.data.byte_pairs import train_bpe
from playground.data.tokenizers import CharTokenizer
from playground.engine import SamplingConfig, generate
from playground.model import ModelConfig, Transformer
from playground.storage import Checkpoint, CheckpointError, save
from playground.storage.opening import load_archive, open_model
from playground.storage.snapshots import save_snapshots
from playground.storage.transformers_export import export
from playground.training import History

CONFIG = ModelConfig(vocab_size=6, context_length=8, n_layers=2, d_model=8, n_heads=2, positions="rotary")
BPE = train_bpe("the lamp burns and the sea turns. " * 4, 280)
THEIRS = ModelConfig(vocab_size=BPE.vocab_size, context_length=8, n_layers=1, d_model=8, n_heads=2, gelu_tanh=True)
SECONDS, MEGABYTES = 2.0, 100  # of a slow processor and of memory, that refusing may take


def change_json(file: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """What changes the values of a JSON file: in place, or by what it returns."""

    def damage(folder: Path) -> None:
        values = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps(change(values) or values))

    return damage


def config(**changes: Any) -> Callable[[Path], None]:
    return change_json("config.json", lambda values: values | changes)


def tokenizer(**changes: Any) -> Callable[[Path], None]:
    return change_json("tokenizer.json", lambda values: values | changes)


def bpe(**changes: Any) -> Callable[[Path], None]:
    return change_json("tokenizer.json", lambda values: values | {"model": values["model"] | changes})


def cut_by(part: Any) -> Callable[[Path], None]:
    """Another pre-tokenizer before the one that makes bytes of characters."""
    return change_json("tokenizer.json", lambda v: v["pre_tokenizer"].update(pretokenizers=[part, level(v)]))


def level(values: dict[str, Any]) -> Any:
    return values["pre_tokenizer"]["pretokenizers"][-1]


def pattern(regex: str) -> Callable[[Path], None]:
    return cut_by({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False})


def text(file: str, content: str | bytes | Callable[[], str]) -> Callable[[Path], None]:
    """What writes this file; a long content is made only then."""

    def damage(folder: Path) -> None:
        made = content() if callable(content) else content
        (folder / file).write_bytes(made.encode() if isinstance(made, str) else made)

    return damage


def replaced(file: str, old: str, new: str) -> Callable[[Path], None]:
    return lambda folder: text(file, (folder / file).read_text().replace(old, new))(folder)


def header(change: Callable[[dict], Any], *, raw: bytes | Callable[[], bytes] | None = None) -> Callable[[Path], None]:
    """What changes the header of the weights, and leaves the rest."""

    def damage(folder: Path) -> None:
        path = folder / "model.safetensors"
        data = path.read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        values = json.loads(data[8 : 8 + length])
        made = (raw() if callable(raw) else raw) or json.dumps(change(values) or values).encode()
        path.write_bytes(struct.pack("<Q", len(made)) + made + data[8 + length :])

    return damage


def entry(**changes: Any) -> Callable[[Path], None]:
    name = "embedding.weight"
    return header(lambda values: values | {name: values[name] | changes})


def renamed(old: str, new: str) -> Callable[[Path], None]:
    return header(lambda values: {(new if name == old else name): entry for name, entry in values.items()})


def repeat(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    head = json.dumps(json.loads(data[8 : 8 + length])["head.weight"]).encode()
    header(dict, raw=data[8 : 8 + length].rstrip()[:-1] + b', "head.weight": ' + head + b"}")(folder)


def not_a_number(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4] + struct.pack("<f", float("nan")))


BYTES = [bytes([b]) for b in range(256)]


def pairs(tokens: list[bytes], **more: Any) -> Callable[[Path], None]:
    """A BPE of these tokens in place of the tokenizer."""
    values = {"kind": "bpe", "tokens": [base64.b64encode(token).decode() for token in tokens], **more}
    return text("tokenizer.json", lambda: json.dumps(values))


UNCLEAR = "model.safetensors is damaged"
OURS = {
    "no config": (lambda f: (f / "config.json").unlink(), "has no config.json"),
    "a pickle in place of the weights": (
        lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), "is a pickle, which can run code",
    ),
    "another format": (config(format=99), "this playground's format"),
    "a setting that nobody knows": (config(rm="-rf"), "no setting called 'rm'"),
    "a width that no heads divide": (config(d_model=17), "not divisible"),
    "weights of another width": (config(d_ff=24), "do not belong together"),
    "fewer layers than it says": (config(n_layers=3), "lacks blocks.2"),
    "more letters than rows": (tokenizer(characters="abcdefghijkl"), "13 tokens"),
    "a kind of tokenizer that is none": (text("tokenizer.json", '{"kind": {}}'), "tokenizer"),
    "weights that are cut short": (lambda f: os.truncate(f / "model.safetensors", 3000), "damaged"),
    "no weights": (text("model.safetensors", b""), "too short"),
    "weights that are a pickle within": (text("model.safetensors", b"\x80\x04K\x01." * 20), "damaged|header claims"),
    "a tensor of another name": (renamed("head.weight", "extra"), "lacks head.weight|holds extra"),
    "weights that are whole numbers": (entry(dtype="I32"), "stored as I32"),
    "a weight that is no number": (not_a_number, "not numbers"),
    "context of thirty million": (config(context_length=30_000_000), "context_length is 30,000,000; at most 131,072"),
    "a table of positions that is too wide": (
        config(context_length=131_072, d_model=1024, n_heads=2, d_ff=1), "its table of positions would have",
    ),
    "a cache that is too large": (
        config(context_length=131_072, d_model=64, n_heads=32, n_layers=250, d_ff=1), "would take 16.8 GB",
    ),
    "heads by the thousand": (
        config(attention_layout="separate_heads", d_model=2048, n_heads=1024, n_layers=20, d_ff=1),
        "20,480 experts and heads of their own",
    ),
    "experts by the million": (config(n_experts=10**6, d_expert=1), "n_experts is 1,000,000|parameters; at most"),
    "norm_eps of a hundred digits": (replaced("config.json", "1e-05", "1" * 100), "no sensible number"),
    "a setting named twice": (replaced("config.json", "{", '{"n_layers": 1,'), "it names 'n_layers' twice"),
    "a config without end": (text("config.json", " " * 200_000), "more than 0.1 MB"),
    "a config nine thousand lists deep": (text("config.json", "[" * 9000 + "]" * 9000), "damaged|too deeply"),
    "a negative shape": (entry(shape=[-6, -8]), UNCLEAR),
    "an entry that is a text": (header(lambda v: v | {"embedding.weight": "F32"}), UNCLEAR),
    "places that are beyond the file": (entry(data_offsets=[10**15, 10**15 + 192]), "is damaged"),
    "a tensor named twice": (repeat, "names 'head.weight' twice"),
    "a header of a hundred thousand tensors": (
        header(dict, raw=lambda: json.dumps({str(i): [] for i in range(100_000)}).encode()), "does not say what",
    ),
    "a header without end": (header(dict, raw=lambda: b"[" * 3_000_000), "far more values"),
    "a tokenizer whose bytes are incomplete": (pairs([*BYTES[:7], b"xy", *BYTES[8:]]), "needs the 256 bytes"),
    "a tokenizer with a pattern of its own": (pairs(BYTES, pattern="(a+)+$"), "no pattern called"),
    "a library's tokenizer with a pattern of its own": (
        text("tokenizer.json", json.dumps({"kind": "bpe", "library": {
            "model": {"vocab": {}, "merges": []}, "decoder": {"type": "ByteLevel"},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"},
                {"type": "ByteLevel", "add_prefix_space": False},
            ]},
        }})),
        "none of those known here",
    ),
    "tokens whose merges take for ever": (
        pairs([*BYTES, *(str(i).encode() * 150 for i in range(100_000, 101_000))]), "shorter tokens",
    ),
    "a tokenizer of a million values": (
        text("tokenizer.json", lambda: json.dumps({"kind": "word", "words": ["a"] * 10**6})), "far more values",
    ),
    "a history without end": (
        text("history.json", lambda: '{"load": [' + "[],[],[]," * 200_000 + "1]}"), "far more values",
    ),
    "a history of many megabytes": (
        change_json("history.json", lambda values: values | {"name": "x" * 20_000_000}), "more than 16 MB|at most 16",
    ),
    "snapshots that are none": (text("snapshots.safetensors", b"\xff" * 40), "header claims"),
}  # fmt: skip

EVIL = r"(\p{L}+)+\1$"

FOREIGN = {
    "a kind of model that is not known": (config(model_type="bert"), "'bert' cannot"),
    "no kind of model": (config(model_type=["gpt2"]), "cannot be opened"),
    "attention that is not scaled": (config(scale_attn_weights=False), "scale_attn_weights 'False' is not understood"),
    "code of its own": (config(auto_map={"AutoModel": "x.py"}), "auto_map"),
    "a setting that nobody knows": (config(logit_scale=2.0), "logit_scale '2.0' is not understood"),
    "a context without bounds": (config(n_positions=10**9), "parameters; at most|context_length is"),
    "an adapter": (text("adapter_config.json", "{}"), "adapter of another model|no part of a model"),
    "a tensor that nobody knows": (renamed("transformer.ln_f.bias", "extra"), "do not belong together"),
    "a normaliser": (tokenizer(normalizer={"type": "NFC"}), "the normalizer NFC is not understood"),
    "another decoder": (tokenizer(decoder={"type": "Metaspace"}), "the decoder Metaspace is not understood"),
    "a pattern that takes for ever": (pattern(EVIL), "none of those known here"),
    "a blank before each text": (
        change_json("tokenizer.json", lambda v: level(v).update(add_prefix_space=True)), "with add_prefix_space",
    ),
    "cut a hundred thousand times": (
        tokenizer(pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Digits"}] * 100_000}), "100,000 parts",
    ),
    "dropout": (bpe(dropout=0.1), "a BPE with dropout '0.1'"),
    "words": (bpe(type="WordLevel"), "a table of words is opened only where it was exported here|cannot be read"),
    "merges that make nothing": (bpe(merges=[["t", "zzz"]]), "cannot be read"),
    "ids with gaps": (change_json("tokenizer.json", lambda v: v["model"]["vocab"].update(zz=10**9)), "gaps"),
    "bytes that are missing": (
        change_json("tokenizer.json", lambda v: v["model"].update(vocab={"a": 0, "b": 1}, merges=[])), "the 256 bytes",
    ),
    "an added token within texts": (
        tokenizer(added_tokens=[{"id": 1, "content": "lamp", "special": False}]), "'lamp' would be found in texts",
    ),
    "more tokens than rows": (
        tokenizer(added_tokens=[{"id": BPE.vocab_size, "content": "<a>", "special": True}]), "do not belong together",
    ),
    "a tokenizer that is a list": (text("tokenizer.json", "[]"), "cannot be read"),
    "a tokenizer of tokens without end": (
        text("tokenizer.json", json.dumps({"model": {"type": "BPE", "vocab": {"a" * 10**6: 0}, "merges": []}})),
        "cannot be read",
    ),
}  # fmt: skip
# settings that change what the model computes, each refused by its name
LLAMA = {
    "rotary positions that are scaled": (config(rope_scaling={"rope_type": "yarn", "factor": 4}), "rope_scaling"),
    "a part of each head turned": (config(partial_rotary_factor=0.5), "partial_rotary_factor '0.5' is not understood"),
    "another activation": (config(hidden_act="gelu"), "hidden_act 'gelu' is not understood"),
    "heads without a width": (config(head_dim=0), "head_width must be a whole number of at least 1"),
    "layers that look back a little": (config(layer_types=["sliding_attention"]), "layer_types"),
    "base in words": (config(rope_theta="high", rope_parameters=None), "cannot be built here"),
}  # fmt: skip
HOSTILE = {"ours": OURS, "gpt2": FOREIGN, "llama": LLAMA}


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    """A folder with a model of ours, and two as Transformers keeps them."""
    folder = tmp_path_factory.mktemp("good")
    save(folder / "ours", Transformer(CONFIG, seed=1), CharTokenizer("abcde"), name="ours")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)  # Transformers takes long to import
        export(Checkpoint(Transformer(THEIRS, seed=1), BPE, History()), folder / "gpt2")
        off = dict.fromkeys(("qkv_bias", "attention_output_bias", "feedforward_bias"), False)
        llama = THEIRS.replace(positions="rotary", norm="rmsnorm", activation="swiglu", gelu_tanh=False, **off)
        export(Checkpoint(Transformer(llama, seed=1), BPE, History()), folder / "llama")
    return folder


def used_memory() -> float:
    """The most megabytes that this process has held so far, where that can be asked."""
    if sys.platform != "linux":
        return 0.0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def refused(folder: Path, sentence: str, tmp_path: Path, capsys, monkeypatch) -> None:
    """The folder, its zip and the shell's `info` about it must all end in one sentence, and nothing is built."""
    monkeypatch.setattr("playground.storage.checkpoint.Transformer", lambda config: pytest.fail("a model was built"))
    held, began = used_memory(), time.process_time()
    with pytest.raises(CheckpointError, match=sentence) as caught:
        open_model(folder)
    assert time.process_time() - began < SECONDS
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600
    assert main(["info", str(folder)]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith("python -m playground info: ") and "Traceback" not in err
    with zipfile.ZipFile(tmp_path / "m.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in folder.iterdir():
            if path.name != "snapshots.safetensors":
                archive.write(path, path.name)
    if not (folder / "snapshots.safetensors").exists():
        began = time.process_time()
        with pytest.raises(CheckpointError, match=f"{sentence}|far more|at most|no part of a model"):
            load_archive(tmp_path / "m.zip", max_bytes=30_000_000)
        assert time.process_time() - began < SECONDS
    assert used_memory() - held < MEGABYTES


@pytest.mark.parametrize(("which", "name"), [(which, name) for which, cases in HOSTILE.items() for name in cases])
def test_a_hostile_folder_is_refused_in_a_sentence(which, name, good, tmp_path, capsys, monkeypatch):
    damage, sentence = HOSTILE[which][name]
    folder = shutil.copytree(good / which, tmp_path / "m")
    damage(folder)
    refused(folder, sentence, tmp_path, capsys, monkeypatch)


def test_snapshots_of_another_model_are_refused_when_they_are_asked_for(good, tmp_path):
    folder = shutil.copytree(good / "ours", tmp_path / "m")
    save_snapshots(folder, [(5, Transformer(CONFIG.replace(d_ff=3)).state_dict())])
    with pytest.raises(CheckpointError, match=r"belong.*another"):
        open_model(folder).snapshots.model(5)


def can_generate(folder: Path) -> None:
    """Three tokens and their text, in bounded time."""
    one = open_model(folder)
    ids = one.tokenizer.encode("ab")[:2] or [0]
    began = time.process_time()
    made = [step.tokens[0] for step in generate(one.model, ids, 3, SamplingConfig(seed=1), tokenizer=one.tokenizer)]
    assert isinstance(one.tokenizer.decode(ids + made), str) and len(made) == 3
    assert time.process_time() - began < 5


ODD = {
    "a vocabulary with rows to spare": ("ours", change_json("tokenizer.json", lambda v: v | {"characters": "a"})),
    "records of another form": (
        "ours",
        change_json("history.json", lambda v: v | {
            "about": {"ladder": {"uniform": "x"}, "prompt": 5}, "samples": [{"step": 1}], "load": [{"step": 1}],
            "gradients": [{"step": 1, "norms": 5}], "finished": 3, "name": ["m"],
        }),
    ),
    "a ladder without height": (
        "ours",
        change_json("history.json", lambda v: v | {
            "about": {"ladder": {"uniform": 1.0, "unigram": 1.0, "bigram": 1.0, "floor": 1.0}},
            "evaluations": {"step": [1], "train_loss": [1.0], "val_loss": [None], "seconds": [0.0]},
        }),
    ),
    "no history": ("ours", lambda f: (f / "history.json").unlink()),
    "settings that only training knows": ("gpt2", config(resid_pdrop=0.3, use_cache=False, dtype="bfloat16")),
    "merges as texts": (
        "gpt2",
        change_json("tokenizer.json", lambda v: v["model"].update(merges=[" ".join(m) for m in v["model"]["merges"]])),
    ),
    "what a published tokenizer says besides": (
        "gpt2",
        bpe(dropout=None, unk_token="<|endoftext|>", continuing_subword_prefix="", fuse_unk=False, byte_fallback=False),
    ),
    "what its BPE does not read": ("gpt2", bpe(magic=True)),
    "digits together": ("gpt2", cut_by({"type": "Digits", "individual_digits": False})),
    "merges in another order": ("gpt2", change_json("tokenizer.json", lambda v: v["model"]["merges"].reverse())),
    "merges that are missing": ("gpt2", change_json("tokenizer.json", lambda v: v["model"]["merges"].__delitem__(0))),
    "digits one by one": ("gpt2", change_json("tokenizer.json", lambda v: v["pre_tokenizer"].update(pretokenizers=[
        {"type": "Digits", "individual_digits": True}, level(v) | {"use_regex": True}]))),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_but_understood_comes_in(name, good, tmp_path, capsys):
    which, change = ODD[name]
    folder = shutil.copytree(good / which, tmp_path / "m")
    change(folder)
    can_generate(folder)
    assert main(["info", str(folder)]) == 0
    assert main(["generate", str(folder), "--prompt", "ab", "--max-new-tokens", "3"]) == 0


junk = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-5, 5), st.integers(), st.floats(), st.text(max_size=5),
        st.sampled_from([2**31, 2**63 - 1, 10**17, 1e-300, 1e300, "F32", "gpt2", "BPE"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip


def mutated(values: Any, data: st.DataObject) -> Any:
    """The same values with one thing in them replaced, taken out or doubled."""
    if isinstance(values, dict) and values and data.draw(st.integers(0, 9)):
        key = data.draw(st.sampled_from(sorted(values)))
        act = data.draw(st.sampled_from(["within", "within", "within", "out", "rename"]))
        if act == "within":
            return values | {key: mutated(values[key], data)}
        rest = {k: v for k, v in values.items() if k != key}
        return rest if act == "out" else rest | {data.draw(st.text(max_size=8)): values[key]}
    if isinstance(values, list) and values and data.draw(st.integers(0, 9)):
        at = data.draw(st.integers(0, len(values) - 1))
        return [*values[:at], mutated(values[at], data), *values[at + 1 :]]
    return data.draw(junk)


FILES = ["config.json", "tokenizer.json", "history.json", "the header"]


@pytest.mark.parametrize("name", ["\n", "\x1b[31m", "long " * 100_000], ids=["line break", "colour", "long"])
@pytest.mark.parametrize("which", ["ours", "gpt2", "llama"])
def test_whatever_a_setting_is_called_one_short_line_says_so(good, tmp_path, which, name):
    folder = shutil.copytree(good / which, tmp_path / "m")
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), name: 3}))
    with pytest.raises(CheckpointError) as problem:
        can_generate(folder)
    assert str(problem.value).isprintable() and len(str(problem.value)) < 1100


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_is_changed_it_is_a_model_or_a_sentence(good, tmp_path_factory, data):
    which = data.draw(st.sampled_from(["ours", "gpt2", "llama"]))
    folder = shutil.copytree(good / which, tmp_path_factory.mktemp("fuzz") / "m")
    for file in data.draw(st.lists(st.sampled_from(FILES), max_size=2)):
        if file == "the header":
            header(lambda values: mutated(values, data))(folder)
        elif (folder / file).exists():
            values = json.loads((folder / file).read_text())
            (folder / file).write_text(json.dumps(mutated(values, data)))
    if data.draw(st.booleans()):
        change_bytes(data.draw(st.sampled_from(sorted(folder.iterdir()))), data)
    try:
        can_generate(folder)
    except CheckpointError as problem:
        assert "\n" not in str(problem)
    finally:
        shutil.rmtree(folder.parent)


def change_bytes(path: Path, data: st.DataObject) -> None:
    """Some bytes anywhere but within the weights themselves, which may be any numbers."""
    content = bytearray(path.read_bytes())
    weights = path.suffix == ".safetensors"
    end = min(struct.unpack("<Q", content[:8])[0] + 8 if weights else len(content), len(content))
    at = data.draw(st.integers(0, end - 1))
    content[at : at + 1] = data.draw(st.binary(max_size=3))
    path.write_bytes(bytes(content))
