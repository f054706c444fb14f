"""Receipts: one cell of one head's pattern, term by term, and how far that is from the model's own forward pass.

T = tokens, d = d_model, D = d_head. Cells are recomputed in float64 by `byhand.attend`, which shares no code with the
model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from .byhand import attend
from .head_matrices import head_matrix
from .look import Look


@dataclass(frozen=True, eq=False)
class Receipt:
    """How token `query` came to look at token `key`, in one head. All numbers are float64."""

    layer: int
    head: int
    query: int
    key: int
    q: np.ndarray
    """(D,) the query as it meets the key: after QK-norm and rotation if the model has them."""
    k: np.ndarray
    """(D,) the key, likewise."""
    q_unturned: np.ndarray | None
    """(D,) query and key before rotation; None without rotary positions."""
    k_unturned: np.ndarray | None
    products: np.ndarray
    """(D,) q · k, term by term."""
    dot: float
    """Their sum."""
    score: float
    """dot / √D."""
    visible: bool
    """Whether the mask lets the query see this key."""
    row_maximum: float
    """Largest visible score in the row, subtracted before exp so that nothing overflows."""
    exponential: float
    """exp(score − row_maximum); 0 where hidden."""
    exponential_sum: float
    """Sum of the row's exponentials."""
    weight: float
    """exponential / exponential_sum: the cell itself."""
    v: np.ndarray
    """(D,) the key token's value."""
    part: np.ndarray
    """(D,) weight · v: this cell's part of the weighted average."""
    z: np.ndarray
    """(D,) the row's weighted average: all cells added."""
    part_out: np.ndarray
    """(d,) that part through W_O: what this cell adds to the query token's residual stream."""
    differences: dict[str, float]
    """Largest |by hand − model's own forward pass| for q, k, v, scores, pattern, z and the layer's attention output."""

    @property
    def largest_difference(self) -> float:
        """The largest of all differences: the receipt's last line."""
        return max(self.differences.values())


def receipt(look: Look, layer: int, head: int, query: int, key: int) -> Receipt:
    """The receipt for one cell. Raises ValueError if there is no such cell."""
    config = look.config
    for name, value, count in (
        ("layer", layer, config.n_layers),
        ("head", head, config.n_heads),
        ("query token", query, look.length),
        ("key token", key, look.length),
    ):
        if not 0 <= value < count:
            raise ValueError(f"there is no {name} {value}: they are counted from 0 to {count - 1}")
    arrays = head_arrays(look, layer, head)
    steps = attend(arrays)
    turned = "q_rotated" in steps
    q = steps["q_rotated" if turned else "q"][query]
    k = steps["k_rotated" if turned else "k"][key]
    weight, v = float(steps["pattern"][query, key]), steps["v"][key]
    return Receipt(
        layer=layer,
        head=head,
        query=query,
        key=key,
        q=q,
        k=k,
        q_unturned=steps["q"][query] if turned else None,
        k_unturned=steps["k"][key] if turned else None,
        products=q * k,
        dot=float((q * k).sum()),
        score=float((q * k).sum() / np.sqrt(config.d_head)),
        visible=not config.causal or key <= query,
        row_maximum=float(steps["masked_scores"][query].max()),
        exponential=float(steps["exponentials"][query, key]),
        exponential_sum=float(steps["exponentials"][query].sum()),
        weight=weight,
        v=v,
        part=weight * v,
        z=steps["z"][query],
        part_out=weight * v @ arrays["W_o"],
        differences=_differences(look, layer, head, steps),
    )


def head_arrays(look: Look, layer: int, head: int) -> dict[str, np.ndarray]:
    """All that `byhand.attend` needs to recompute this head: float64 copies of its input and its weights."""
    config, attention = look.config, look.model.blocks[layer].attention
    parameters = dict(look.model.named_parameters())
    arrays = {"x": _copy(look.trace["attn_in", layer][0])}
    for name in "qkvo":
        matrix = head_matrix(config, name, layer, head)
        arrays[f"W_{name}"] = _copy(matrix.of(parameters[matrix.name])).T  # (d, D), W_o (D, d)
        if name != "o":
            bias = parameters.get(matrix.name.removesuffix("weight") + "bias")
            arrays[f"b_{name}"] = np.zeros(config.d_head) if bias is None else _copy(bias[matrix.start : matrix.stop])
    arrays["causal"] = np.array(int(config.causal))
    if config.qk_norm:
        arrays |= {"q_gain": _copy(attention.q_norm.weight), "k_gain": _copy(attention.k_norm.weight)}
        arrays["norm_eps"] = np.array(config.norm_eps)
    if config.positions == "rotary":
        arrays["rotary_base"] = np.array(config.rotary_base)
    return arrays


def _differences(look: Look, layer: int, head: int, steps: dict[str, np.ndarray]) -> dict[str, float]:
    trace, kv = look.trace, look.kv_head(head)
    own = {
        "q": trace["q", layer][0, :, head],
        "k": trace["k", layer][0, :, kv],
        "v": trace["v", layer][0, :, kv],
        "scores": look.scores(layer)[head],
        "pattern": look.pattern(layer)[head],
        "z": trace["z", layer][0, :, head],
    }
    if "q_rotated" in steps:
        own |= {"q_rotated": trace["q_rotated", layer][0, :, head], "k_rotated": trace["k_rotated", layer][0, :, kv]}
    differences = {name: float(np.abs(steps[name] - _copy(tensor)).max()) for name, tensor in own.items()}
    # the layer's output: this head by hand, the others from the model
    z = _copy(trace["z", layer][0])  # (T, H, D)
    z[:, head] = steps["z"]
    out = look.model.blocks[layer].attention.out
    made = z.reshape(len(z), -1) @ _copy(out.weight).T + (0 if out.bias is None else _copy(out.bias))
    differences["attn_out"] = float(np.abs(made - _copy(trace["attn_out", layer][0])).max())
    return differences


def _copy(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy().copy()
