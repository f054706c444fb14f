"""Packed: a copy of a weight matrix in the form that decoding reads fastest: fp32, bf16 or int8. The model stays as is.

R = rows, n = inputs, m = outputs. Decoding reads every weight once per token and multiplies it with one row, so speed
depends on how fast the weights arrive: on their order in memory, and on the bytes each one takes.

    fp32  the same numbers in oneDNN's blocks, if oneDNN is available
    bf16  each number rounded to the upper half of its bits, 8 of them significant
    int8  a whole number from −127 to 127 for each weight and a scale for each output; a row of inputs gets 256 levels
          of its own (the vector-wise products of Dettmers et al. 2022, "LLM.int8()", section 2)

Matrices of fewer than `LARGE` numbers are rounded the same way and multiplied in fp32, the quickest way for them: so
no precision slows a small model down. A product takes and gives fp32 whatever its weights are, and no row's result
depends on the rows beside it. The private operations of torch used here are each tried once: if one is missing or
wrong, the plain operation takes its place.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F

PRECISIONS = ("fp32", "bf16", "int8")

LARGE = 250_000
"""Numbers in a matrix from which its order in memory matters: about as many as a core's own cache holds."""
MANY_ROWS = 64
"""From this many rows on, arithmetic is the limit rather than memory, and the weights are read as they are."""


def check_precision(precision: str, device: torch.device) -> None:
    """Raise ValueError if there is no such precision, or not on this device."""
    if precision not in PRECISIONS:
        raise ValueError(f"there is no precision {precision!r} to decode with: choose {', '.join(PRECISIONS)}")
    if precision == "int8" and device.type != "cpu":
        raise ValueError("int8 weights are multiplied on the CPU only: choose fp32 or bf16 on a GPU")


def rounded(rows: torch.Tensor, precision: str) -> torch.Tensor:
    """The weights (…, n) with which products in this precision are really computed, as fp32."""
    if precision == "bf16":
        return rows.bfloat16().float()
    if precision == "int8":
        levels, scales = quantise(rows)
        return levels.float() * scales
    return rows


def quantise(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Levels (…, n) from −127 to 127 and scales (…, 1), so that level · scale comes nearest to each weight.

    >>> levels, scales = quantise(torch.tensor([[0.5, -1.27, 0.004]]))
    >>> levels.tolist(), round(scales.item(), 4)
    ([[50, -127, 0]], 0.01)
    """
    if not weight.isfinite().all():
        raise ValueError("int8 has no level for weights that are no numbers: this model can be read in fp32 only")
    scales = weight.abs().amax(dim=-1, keepdim=True) / 127
    scales = scales.where(scales > 0, 1.0)
    return (weight / scales).round_().to(torch.int8), scales


def product(weight: torch.Tensor, bias: torch.Tensor | None, precision: str) -> Product:
    """x (…, n) → x·weightᵀ + bias (…, m), for weight (m, n), in the order and precision asked for."""
    weight = weight.detach()
    if precision != "fp32" and weight.numel() < LARGE:
        return Rounded(weight, bias, precision)
    if precision == "bf16":
        return Half(weight, bias)
    if precision == "int8":
        return Levels(weight, bias)
    if weight.numel() < LARGE or weight.device.type != "cpu" or weight.dtype != torch.float32:
        return Product(weight, bias)
    return Packed(weight, bias) if packs(torch.float32) else Product(weight, bias)


class Product:
    """The weights as they are, shared with the model."""

    nbytes = 0
    """Bytes that it holds besides the model's own weights."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self.weight, self.bias, self.transposed = weight, bias, weight.t()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.transposed if self.bias is None else F.linear(x, self.weight, self.bias)

    def add_to(self, sums: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Add the product of x (R, n) to `sums` (R, m) in place, and return it."""
        return sums.addmm_(x, self.transposed) if self.bias is None else sums.add_(self(x))


class Rounded(Product):
    """Weights rounded to a precision but multiplied in fp32: a small matrix stays in the processor's caches anyway."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, precision: str):
        super().__init__(rounded(weight, precision), bias)
        self.nbytes = self.weight.nbytes


class Copied(Product):
    """A product with a copy of the weights in another form."""

    def add_to(self, sums: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return sums.add_(self(x))


class Packed(Copied):
    """A copy in the blocks that oneDNN's product for one row reads; many rows are multiplied as usual."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        super().__init__(weight, bias)
        self.blocks = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), 1)
        self.nbytes = weight.nbytes

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if x.numel() > MANY_ROWS * x.shape[-1]:
            return super().__call__(x)
        return torch.ops.mkldnn._linear_pointwise(x, self.blocks, self.bias, "none", [], "")


class Half(Copied):
    """bf16 weights times bf16 inputs, summed in fp32; the result is rounded to bf16 as well."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        half = weight.to(torch.bfloat16).contiguous()
        self.bias, self.nbytes = bias, half.nbytes
        self.packed = half.device.type == "cpu" and packs(torch.bfloat16)
        self.half = torch.ops.mkldnn._reorder_linear_weight(half, 1) if self.packed else half

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        x = x.bfloat16()
        if self.packed:
            y = torch.ops.mkldnn._linear_pointwise(x, self.half, None, "none", [], "")
        else:
            y = F.linear(x, self.half)
        return y.float() if self.bias is None else y + self.bias


class Levels(Copied):
    """int8 weights with a scale per output, times inputs with a scale and a zero per row; summed in whole numbers."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self.bias, self.outputs = bias, weight.shape[0]
        levels, scales = quantise(weight)
        self.nbytes = levels.nbytes + scales.nbytes
        self.sums = levels.sum(dim=-1, dtype=torch.float32) * scales[:, 0]  # (m,) what a zero that is not 0 adds
        self.top, self.blocks = _fbgemm_levels() or 255, None
        if _fbgemm_levels():
            self.blocks = _fbgemm_blocks(levels, scales[:, 0], bias)
        else:
            self.levels, self.scales = levels, scales[:, 0]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        one = x.numel() == x.shape[-1]
        if one and self.blocks is not None:
            return torch.ops.quantized.linear_dynamic(x, self.blocks, self.top < 255)
        rows, scale, zero = _row_levels(x.reshape(-1, x.shape[-1]), self.top)
        if self.blocks is not None:
            # the kernel has one scale for all rows: with this row among them it is 1, and every level stays itself
            edge = rows.new_zeros(1, rows.shape[1])
            edge[0, 0] = self.top
            sums = torch.ops.quantized.linear_dynamic(torch.cat((rows, edge)), self.blocks, self.top < 255)[:-1]
            sums = sums if self.bias is None else sums - self.bias  # it was packed with the weights
        else:
            sums = (rows @ self.levels.to(rows.dtype).t()) * self.scales
        y = (sums - zero * self.sums) * scale
        y = y if self.bias is None else y + self.bias
        return y.view(*x.shape[:-1], self.outputs)


def _row_levels(rows: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inputs (R, n) as whole numbers from 0 to `top` (R, n), with each row's scale and zero's level, both (R, 1).

    The range always includes 0, and 0 is exactly a level, as when fbgemm quantises a single row.
    """
    least, most = rows.amin(dim=-1, keepdim=True).clamp_(max=0), rows.amax(dim=-1, keepdim=True).clamp_(min=0)
    scale = (most - least) / top
    scale = scale.where(scale > 0, 1.0)
    zero = (-least / scale).round_().clamp_(0, top)
    return torch.addcdiv(zero, rows, scale).round_().clamp_(0, top), scale, zero


@functools.cache
def packs(dtype: torch.dtype) -> bool:
    """Whether oneDNN multiplies packed weights of this dtype here."""

    def multiplies_right() -> bool:
        blocks = torch.ops.mkldnn._reorder_linear_weight(torch.ones(32, 32, dtype=dtype), 1)
        y = torch.ops.mkldnn._linear_pointwise(torch.ones(1, 32, dtype=dtype), blocks, None, "none", [], "")
        return bool((y == 32).all())

    has_kernel = dtype == torch.float32 or _works(lambda: torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return has_kernel and _works(multiplies_right)


@functools.cache
def _fbgemm_levels() -> int:
    """The highest input level at which fbgemm sums correctly on this machine: 255 or 127; 0 without fbgemm.

    Processors without VNNI sum pairs of products in 16 bits, where 255 · 127 · 2 overflows: so it is tried out.
    """

    def sums_right(top: int) -> bool:
        levels = torch.tensor([[127] * 64, [-127] * 64, [127, -127] * 32], dtype=torch.int8)
        blocks = _fbgemm_blocks(levels, torch.ones(3), None)
        x = torch.full((2, 64), float(top))
        x[1, :32] = 0.0
        return torch.equal(torch.ops.quantized.linear_dynamic(x, blocks, top < 255), x @ levels.float().t())

    if torch.backends.quantized.engine not in ("x86", "fbgemm"):
        return 0
    return next((top for top in (255, 127) if _works(lambda top=top: sums_right(top))), 0)


def _works(attempt: Callable[[], bool]) -> bool:
    """Whether this torch, on this processor, can do it."""
    try:
        return bool(attempt())
    except (RuntimeError, NotImplementedError, AttributeError):
        return False


def _fbgemm_blocks(levels: torch.Tensor, scales: torch.Tensor, bias: torch.Tensor | None) -> torch.ScriptObject:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch means to drop these tensors one day
        zeros = torch.zeros(len(scales), dtype=torch.long)
        weight = torch._make_per_channel_quantized_tensor(levels, scales.double(), zeros, 0)
        return torch.ops.quantized.linear_prepack(weight, bias)
