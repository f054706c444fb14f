"""Settings of Transformers' config.json: which are understood, and which values stand in for omitted ones.

A setting that changes what a model computes and has no counterpart here is refused by name, and so is an unknown one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Fine = Callable[[Any], bool]

# settings about the file, the training, generation, and outputs besides the scores
_HARMLESS = {
    "_attn_implementation_autoset", "_name_or_path", "_num_labels", "architectures", "attention_dropout",
    "attention_probs_dropout_prob", "attn_pdrop", "bad_words_ids", "begin_suppress_tokens", "bos_token_id",
    "chunk_size_feed_forward", "decoder_start_token_id", "diversity_penalty", "do_sample", "dtype",
    "early_stopping", "embd_pdrop", "encoder_no_repeat_ngram_size", "eos_token_id",
    "exponential_decay_length_penalty", "finetuning_task", "forced_bos_token_id", "forced_eos_token_id",
    "gradient_checkpointing", "hidden_dropout_prob", "id2label", "initializer_range", "is_llama_config", "label2id",
    "length_penalty", "max_length", "max_window_layers", "min_length", "n_ctx", "no_repeat_ngram_size",
    "num_beam_groups", "num_beams", "num_return_sequences", "output_attentions", "output_hidden_states",
    "output_past", "output_router_logits", "output_scores", "pad_token_id", "predict_special_tokens", "prefix",
    "pretraining_tp", "problem_type", "remove_invalid_values", "reorder_and_upcast_attn", "repetition_penalty",
    "resid_pdrop", "return_dict", "return_dict_in_generate", "router_aux_loss_coef", "router_jitter_noise",
    "sep_token_id", "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
    "summary_use_proj", "suppress_tokens", "task_specific_params", "temperature", "tf_legacy_loss",
    "tie_encoder_decoder", "tokenizer_class", "top_k", "top_p", "torch_dtype", "torchscript",
    "transformers.js_config", "transformers_version", "typical_p", "unsloth_fixed", "unsloth_version",
    "use_bfloat16", "use_cache",
}  # fmt: skip


def understood(values: dict[str, Any], defaults: dict[str, Any], only: dict[str, Fine]) -> dict[str, Any]:
    """A family's settings, with defaults for omitted ones. Raises a ValueError that names what is not understood.

    `defaults` are the settings that are translated; `only` are those that must have certain values if present.
    """
    for name, value in values.items():
        if name in defaults or name in _HARMLESS or name == "model_type":
            continue
        if not (only | _ANYWHERE).get(name, unset)(value):
            raise ValueError(f"{name} {str(value)[:60]!r} is not understood")
    return defaults | {name: value for name, value in values.items() if name in defaults}


def unset(value: Any) -> bool:
    """Whether a setting says nothing."""
    return value is None


def off(value: Any) -> bool:
    """Whether a setting says that something is absent."""
    return not value


def on(value: Any) -> bool:
    """Whether a setting says that something is present."""
    return value is True


_ANYWHERE: dict[str, Fine] = {
    "add_cross_attention": off,
    "cross_attention_hidden_size": off,
    "is_decoder": lambda value: isinstance(value, bool),  # the models here are decoders, whatever the setting says
    "is_encoder_decoder": off,
    "pruned_heads": off,
    "rope_interleaved": off,
}
