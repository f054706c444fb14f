"""An independent implementation agrees: with copied weights, Hugging Face's GPT-2 and Llama give the same logits."""

import pytest
import torch

from playground.model import ModelConfig, Transformer

transformers = pytest.importorskip("transformers")


def shaken(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """Every weight, biases and norms too, moved off its initial value, so that no copy can be forgotten unnoticed."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=rng))
    return model.eval()


@pytest.mark.parametrize("seed", range(4))
def test_gpt2(seed):
    rng = torch.Generator().manual_seed(seed)
    heads = int(torch.randint(1, 5, (), generator=rng))
    config = ModelConfig(
        vocab_size=37,
        context_length=19,
        n_layers=1 + seed % 3,
        d_model=8 * heads,
        n_heads=heads,
        d_ff=20 + seed,
        gelu_tanh=True,
        tie_embeddings=True,
    )
    theirs = shaken(
        transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                vocab_size=37,
                n_positions=19,
                n_layer=config.n_layers,
                n_embd=config.d_model,
                n_head=heads,
                n_inner=config.ff_width,
            )
        ),
        seed,
    )
    state = theirs.state_dict()
    ours = Transformer(config)
    names = {
        "attention_norm": "ln_1",
        "attention.qkv": "attn.c_attn",
        "attention.out": "attn.c_proj",
        "feedforward_norm": "ln_2",
        "feedforward.up": "mlp.c_fc",
        "feedforward.down": "mlp.c_proj",
    }
    copied = {
        "embedding.weight": state["transformer.wte.weight"],
        "head.weight": state["transformer.wte.weight"],
        "position_embedding.weight": state["transformer.wpe.weight"],
        "final_norm.weight": state["transformer.ln_f.weight"],
        "final_norm.bias": state["transformer.ln_f.bias"],
    }
    for layer in range(config.n_layers):
        for our_name, their_name in names.items():
            for kind in ("weight", "bias"):
                tensor = state[f"transformer.h.{layer}.{their_name}.{kind}"]
                is_matrix = kind == "weight" and "norm" not in our_name
                copied[f"blocks.{layer}.{our_name}.{kind}"] = tensor.T if is_matrix else tensor  # theirs is (in, out)
    ours.load_state_dict(copied)
    ids = torch.randint(0, 37, (3, 19), generator=rng)
    with torch.no_grad():
        assert (ours(ids).logits - theirs(ids).logits).abs().max() <= 1e-4


@pytest.mark.parametrize(("seed", "kv_heads"), [(0, 4), (1, 2), (2, 1), (3, 2)])
def test_llama(seed, kv_heads):
    config = ModelConfig(
        vocab_size=41,
        context_length=23,
        n_layers=1 + seed % 3,
        d_model=32,
        n_heads=4,
        n_kv_heads=kv_heads,
        d_ff=44,
        positions="rotary",
        norm="rmsnorm",
        norm_eps=1e-6,
        activation="swiglu",
        qkv_bias=False,
        attention_output_bias=False,
        feedforward_bias=False,
    )
    theirs = shaken(
        transformers.LlamaForCausalLM(
            transformers.LlamaConfig(
                vocab_size=41,
                max_position_embeddings=23,
                num_hidden_layers=config.n_layers,
                hidden_size=32,
                intermediate_size=44,
                num_attention_heads=4,
                num_key_value_heads=kv_heads,
                rms_norm_eps=1e-6,
                tie_word_embeddings=False,
            )
        ),
        seed,
    )
    state = theirs.state_dict()
    copied = {
        "embedding.weight": state["model.embed_tokens.weight"],
        "head.weight": state["lm_head.weight"],
        "final_norm.weight": state["model.norm.weight"],
    }
    for layer in range(config.n_layers):
        theirs_at, ours_at = f"model.layers.{layer}", f"blocks.{layer}"
        copied |= {
            f"{ours_at}.attention_norm.weight": state[f"{theirs_at}.input_layernorm.weight"],
            f"{ours_at}.feedforward_norm.weight": state[f"{theirs_at}.post_attention_layernorm.weight"],
            f"{ours_at}.attention.qkv.weight": torch.cat(
                [state[f"{theirs_at}.self_attn.{p}_proj.weight"] for p in "qkv"]
            ),
            f"{ours_at}.attention.out.weight": state[f"{theirs_at}.self_attn.o_proj.weight"],
            f"{ours_at}.feedforward.gate.weight": state[f"{theirs_at}.mlp.gate_proj.weight"],
            f"{ours_at}.feedforward.up.weight": state[f"{theirs_at}.mlp.up_proj.weight"],
            f"{ours_at}.feedforward.down.weight": state[f"{theirs_at}.mlp.down_proj.weight"],
        }
    ours = Transformer(config)
    ours.load_state_dict(copied)
    ids = torch.randint(0, 41, (2, 23), generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        assert (ours(ids).logits - theirs(ids).logits).abs().max() <= 1e-4
