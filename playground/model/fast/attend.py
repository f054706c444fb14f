"""attend: torch's fused attention, kept off the two paths on which it is slow or has nothing to do."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None, is_causal: bool = False
) -> torch.Tensor:
    """Softmax(q·kᵀ / √D)·v (B, H, T, D) of q (B, H, T, D) and k, v (B, Hkv, S, D), the pattern never being held."""
    if torch.bfloat16 in (q.dtype, v.dtype) and q.is_cpu and q.shape[2] > 1:
        # the kernel's backward is several times slower in bfloat16 than in fp32 on a CPU
        with torch.autocast("cpu", enabled=False):
            return attend(q.float(), k.float(), v.float(), mask, is_causal)
    grouped = k.shape[1] != q.shape[1]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=is_causal, enable_gqa=grouped)
