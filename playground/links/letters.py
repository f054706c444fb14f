"""Letters: JSON as a version, the deflated text and a checksum in URL-safe base64; short, and safe to unpack."""

from __future__ import annotations

import base64
import binascii
import re
import zlib

VERSION = "1"
MAX_LETTERS = 2000
MAX_JSON = 6000

# The dictionary with which links of version 1 are packed. If it changed, they could no longer be read.
_WORDS = (
    b'"schedule":"constant""optimizer":"adamw""positions":"sinusoidal""norm_placement":"post""activation":"swiglu"'
    b'"norm":"layernorm""attention_layout":"separate_heads""sample_tokens":"sample_temperature":"accumulation":'
    b'"tie_embeddings":true,"qkv_bias":false,"head_bias":true,"feedforward_bias":false,"attention_output_bias":false'
    b'"n_experts":8,"experts_per_token":2,"moe_every":"shared_expert":"balance":"router_z_weight":"init_std":null,'
    b'"muon_learning_rate":0.02,"learning_rate":0.003,"weight_decay":0.1,"gradient_clip":"final_fraction":"precision":'
    b'"dropout":0.1,"batch_size":32,"warmup_steps":20,"eval_windows":128,"sample_every":"eval_every":50,"steps":300,'
    b'"context_length":64,"n_kv_heads":"n_layers":2,"n_heads":2,"d_model":64,"d_ff":"sample_prompt":"Once upon a time"'
    b'"text":"sentences""hub""dataset""dialects""brackets""addition""copy""stories""tokenizer":"char""word""bpe"'
    b'"machine":"cpu AVX512 AVX2 bfloat16 float32, 2 threads, torch 2.","losses":[[0,"training":{"seed":1},"model":{},'
    b'"text":["stories"],"hash":"","print":,"base":"nanogpt-cpu""gpt2-small""medium""tiny""small"{'
)


class LinkError(ValueError):
    """What is wrong with a link, as a sentence to show."""


def packed(data: bytes) -> str:
    """JSON as letters. Raises LinkError if there would be too many."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=_WORDS)
    found = packer.compress(data) + packer.flush() + zlib.crc32(data).to_bytes(4, "big")
    letters = VERSION + base64.urlsafe_b64encode(found).decode().rstrip("=")
    if len(letters) > MAX_LETTERS:
        raise LinkError("this run has too many settings of its own for a link")
    return letters


def unpacked(letters: str) -> bytes:
    """The JSON inside; its size is bounded before and during inflation. Raises LinkError."""
    if not isinstance(letters, str) or len(letters) > MAX_LETTERS:
        raise LinkError(f"it is longer than the {MAX_LETTERS:,} letters that a link may have")
    broken = LinkError("a part of it was lost or changed on the way: ask for it again, and copy all of it")
    if not re.fullmatch(VERSION + "[A-Za-z0-9_-]{8,}", letters):
        raise broken
    try:
        data = base64.urlsafe_b64decode(letters[1:] + "=" * (-len(letters[1:]) % 4))
        unpacker = zlib.decompressobj(-15, zdict=_WORDS)
        text = unpacker.decompress(data[:-4], MAX_JSON)
    except (binascii.Error, zlib.error, ValueError) as problem:
        raise broken from problem
    if not unpacker.eof or unpacker.unused_data or zlib.crc32(text).to_bytes(4, "big") != data[-4:]:
        raise broken
    return text
