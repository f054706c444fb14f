"""What we export, Transformers opens and computes alike; what Transformers saves, we open and compute alike."""

import json
from functools import partial

import pytest
import torch
from safetensors.torch import save_file

from playground.cli import main
from playground.data.byte_pairs import train_bpe
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.model import PRESETS, ModelConfig, Transformer
from playground.storage import Checkpoint, CheckpointError, bounds, load, save, transformers_export
from playground.storage.bounds import check_bounds
from playground.storage.tokenizers_io import tokenizer_files
from playground.storage.transformers_export import export
from playground.storage.transformers_families import FAMILIES, family_for
from playground.storage.transformers_import import import_folder
from playground.training import History
from playground.words.card import exported_card


@pytest.fixture(scope="module")
def transformers():
    """Imported where one of these tests runs, not by every worker: it takes two seconds."""
    return pytest.importorskip("transformers")


TEXT = "the lamp burns and the sea turns, while the night learns what it's told.\n" * 8
BPE = train_bpe(TEXT, 290)
BASE = ModelConfig(vocab_size=BPE.vocab_size, context_length=48, n_layers=2, d_model=32, n_heads=4, init_std=0.2)
ROTARY = BASE.replace(
    positions="rotary", norm="rmsnorm", activation="swiglu", qkv_bias=False, attention_output_bias=False,
    feedforward_bias=False, d_ff=40,
)  # fmt: skip

HOMES = {
    "gpt2": ("gpt2", BASE.replace(gelu_tanh=True, tie_embeddings=True)),
    "gpt2, untied relu, no biases": (
        "gpt2",
        BASE.replace(
            activation="relu", qkv_bias=False, attention_output_bias=False, feedforward_bias=False, norm_bias=False
        ),
    ),
    "gpt2, sinusoids, scaled": ("gpt2", BASE.replace(positions="sinusoidal", scale_embeddings=True)),
    "gpt2, no positions, squared relu": ("gpt2", BASE.replace(positions="none", activation="relu2")),
    "gpt2, separate heads": ("gpt2", BASE.replace(attention_layout="separate_heads")),
    "llama": ("llama", ROTARY),
    "llama, grouped, biased, tied": (
        "llama",
        ROTARY.replace(
            n_kv_heads=2, qkv_bias=True, attention_output_bias=True, feedforward_bias=True, tie_embeddings=True
        ),
    ),
    "mixtral": ("mixtral", ROTARY.replace(n_experts=4, n_kv_heads=2)),
    "mixtral, narrow experts": ("mixtral", ROTARY.replace(n_experts=3, experts_per_token=1, d_expert=24)),
    "qwen3": ("qwen3", ROTARY.replace(qk_norm=True)),
    "qwen3, grouped, biased, tied": (
        "qwen3",
        ROTARY.replace(qk_norm=True, n_kv_heads=2, qkv_bias=True, attention_output_bias=True, tie_embeddings=True),
    ),
    "qwen3, wide heads": ("qwen3", ROTARY.replace(qk_norm=True, n_kv_heads=2, head_width=20)),
    "qwen3, our own tiny size": ("qwen3", PRESETS["tiny"].replace(vocab_size=BPE.vocab_size)),
    "qwen3_moe": ("qwen3_moe", ROTARY.replace(qk_norm=True, n_experts=4, n_kv_heads=2)),
    "qwen3_moe, narrow experts in every second block": (
        "qwen3_moe",
        ROTARY.replace(qk_norm=True, n_layers=4, n_experts=5, experts_per_token=3, d_expert=24, moe_every=2),
    ),
}


def checkpoint_of(config: ModelConfig, tokenizer=BPE) -> Checkpoint:
    model, rng = Transformer(config, seed=1), torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():  # nothing stays at its initial zero or one
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=rng))
    return Checkpoint(model, tokenizer, History())


def exported(checkpoint: Checkpoint, tmp_path):
    export(checkpoint, tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize(("family", "config"), HOMES.values(), ids=HOMES.keys())
def test_transformers_agrees_with_what_we_export_and_we_read_it_back(transformers, tmp_path, family, config):
    checkpoint = checkpoint_of(config)
    assert family_for(config).name == family
    folder = tmp_path / "out"
    parity = export(checkpoint, folder, prompt="the lamp", card=exported_card)
    assert parity.transformers == transformers.__version__
    assert parity.largest_difference <= 1e-4 and parity.same_text
    assert f"more than {parity.largest_difference:.1e}" in (folder / "README.md").read_text()
    again = import_folder(folder)
    ids = torch.randint(0, config.vocab_size, (2, 48), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.allclose(again.model(ids).logits, checkpoint.model(ids).logits, atol=1e-4)
    assert again.tokenizer.encode(TEXT) == BPE.encode(TEXT)


TOKENIZERS = {"char": CharTokenizer.from_text(TEXT), "word": WordTokenizer.from_text(TEXT), "bpe": BPE}


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS.keys())
def test_auto_tokenizer_reads_what_ours_reads(transformers, tmp_path, tokenizer):
    config = BASE.replace(vocab_size=tokenizer.vocab_size)
    folder = exported(checkpoint_of(config, tokenizer), tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    for text in (TEXT, "the unknown: Ωmega  spaces\n\nand 12 new words", "", "a <unk> x² ① e\u0301"):
        assert theirs(text)["input_ids"] == tokenizer.encode(text)
    assert theirs.decode(tokenizer.encode(TEXT)) == tokenizer.decode(tokenizer.encode(TEXT))
    assert import_folder(folder).tokenizer.encode(TEXT) == tokenizer.encode(TEXT)


SIZES = {
    "vocab_size": BPE.vocab_size, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 40, "intermediate_size": 44,
}  # fmt: skip


GPT2 = {"vocab_size": BPE.vocab_size, "n_positions": 40, "n_embd": 32, "n_layer": 2, "n_head": 4}
QWEN3_MOE = {
    **SIZES, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 20,
    "norm_topk_prob": True, "decoder_sparse_step": 2,
}  # fmt: skip
THEIRS = {
    "gpt2": ("GPT2Config", GPT2),
    "gpt2, one layer, one head": ("GPT2Config", GPT2 | {"n_layer": 1, "n_head": 1, "n_embd": 8}),
    "gpt2, three layers, narrow inside": (
        "GPT2Config", GPT2 | {"n_layer": 3, "n_head": 3, "n_embd": 24, "n_inner": 21},
    ),
    "llama": ("LlamaConfig", SIZES),
    "llama, one key head": ("LlamaConfig", SIZES | {"num_key_value_heads": 1, "num_hidden_layers": 3}),
    "mixtral": ("MixtralConfig", SIZES | {"num_local_experts": 3}),
    "qwen3": ("Qwen3Config", SIZES | {"head_dim": 8, "attention_bias": True}),
    # as in Qwen3-0.6B, whose heads together are twice as wide as the model
    "qwen3, wide heads": ("Qwen3Config", SIZES | {"head_dim": 16, "attention_bias": True}),
    "qwen3_moe": ("Qwen3MoeConfig", QWEN3_MOE),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "settings"), THEIRS.values(), ids=THEIRS)
def test_a_random_model_saved_by_transformers_opens_here(transformers, tmp_path, kind, settings):
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, kind)(**settings))
    with torch.no_grad():
        for parameter in model.parameters():  # no gain stays at one, no bias at zero
            parameter.add_(0.05 * torch.randn(parameter.shape))
    model.eval().save_pretrained(tmp_path / "m")
    for name, values in tokenizer_files(BPE).items():
        (tmp_path / "m" / name).write_text(json.dumps(values))
    checkpoint = import_folder(tmp_path / "m")
    ids = torch.randint(0, BPE.vocab_size, (2, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert (checkpoint.model(ids).logits - model(ids).logits).abs().max() <= 1e-4
    assert checkpoint.tokenizer.decode(checkpoint.tokenizer.encode(TEXT)) == TEXT


def test_limits_hold_before_memory_is_taken_and_a_long_context_is_cut_to_fit(transformers, tmp_path, monkeypatch):
    folder = exported(checkpoint_of(BASE), tmp_path)
    with pytest.raises(CheckpointError, match=r"1,000.*opened"):
        import_folder(folder, check=partial(check_bounds, max_parameters=1_000))
    with pytest.raises(CheckpointError, match="not empty"):
        export(checkpoint_of(BASE), folder)
    with pytest.raises(CheckpointError, match=r"nearest.*shared_expert=False"):
        family_for(ROTARY.replace(n_experts=3, shared_expert=True))
    config = transformers.Qwen3Config(**THEIRS["qwen3"][1])
    transformers.Qwen3ForCausalLM(config).save_pretrained(tmp_path / "m")
    for name, values in tokenizer_files(BPE).items():
        (tmp_path / "m" / name).write_text(json.dumps(values))
    room = import_folder(tmp_path / "m").config.cache_bytes(39)
    monkeypatch.setattr(bounds, "MAX_CACHE_BYTES", room)
    assert import_folder(tmp_path / "m").config.context_length == 32


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"norm_topk_prob": False}, "sum to"),
        ({"mlp_only_layers": [0]}, "mlp_only_layers"),
        ({"use_sliding_window": True, "sliding_window": 8}, "sliding-window"),
    ],
)
def test_what_would_compute_something_else_is_not_opened(transformers, tmp_path, changes, words):
    config = transformers.Qwen3MoeConfig(**QWEN3_MOE | changes)
    transformers.Qwen3MoeForCausalLM(config).save_pretrained(tmp_path / "m")
    with pytest.raises(CheckpointError, match=f"built here: .*{words}"):
        import_folder(tmp_path / "m")


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_setting_is_known_and_one_left_out_means_what_transformers_takes_it_for(transformers, family):
    kind, needed = family.name, {"norm_topk_prob": True} if family.name == "qwen3_moe" else {}
    values = transformers.AutoConfig.for_model(kind, **needed).to_dict()

    def read(given):
        config = family.config_in(given)
        return config.replace(n_kv_heads=config.kv_heads)

    for name in values.keys() - {"model_type", *needed}:
        assert read({k: v for k, v in values.items() if k != name}) == read(values), name
    assert read({"model_type": kind, **needed}) == read(values)


def test_without_transformers_the_card_says_so_and_what_computes_otherwise_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(transformers_export.importlib.util, "find_spec", lambda name: None)
    parity = export(checkpoint_of(BASE), tmp_path / "out", card=exported_card)
    assert parity.transformers is None and parity.largest_difference <= 1e-4 and parity.same_text
    assert "own importer" in (tmp_path / "out" / "README.md").read_text()

    def scrambled(tensors, *given, **named):
        name = "transformer.h.0.mlp.c_proj.weight"
        save_file({**tensors, name: tensors[name].flip(0).contiguous()}, *given, **named)

    monkeypatch.setattr(transformers_export, "save_file", scrambled)
    with pytest.raises(CheckpointError, match=r"does.*compute"):
        export(checkpoint_of(BASE), tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.usefixtures("transformers")
def test_from_the_shell_and_back(tmp_path, capsys):
    saved = checkpoint_of(BASE)
    save(tmp_path / "ours", saved.model, BPE)
    assert main(["export", str(tmp_path / "ours"), "--out", str(tmp_path / "theirs"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert "Loading" not in err
    told = json.loads(out)
    assert told["family"] == "gpt2" and told["largest_difference"] <= 1e-4 and told["same_text"]
    assert main(["import", str(tmp_path / "theirs"), "--out", str(tmp_path / "again")]) == 0
    ids = torch.randint(0, BASE.vocab_size, (2, 48))
    with torch.no_grad():
        difference = load(tmp_path / "again").model(ids).logits - saved.model(ids).logits
    assert difference.abs().max() <= 1e-4
    assert main(["import", str(tmp_path / "theirs"), "--out", str(tmp_path / "again")]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["import", str(tmp_path / "nowhere"), "--out", str(tmp_path / "new")]) == 2
    assert f"{tmp_path / 'nowhere'} does not exist" in capsys.readouterr().err
