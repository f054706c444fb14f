"""What the experts do to the tokens that visit them, in few and large matrix products.

N = tokens, E = experts, K = experts per token, R = rows, d = d_model, f = width of one expert.

Visits are sorted by expert, so that each expert is one product over its own run of rows: a token costs K experts,
however many there are. The whole way of a token is one function with its backward written out: left to autograd, the
many small steps between the products make a pass on a CPU 4 % longer.

There is a row for each of the N·K visits. A CPU's bfloat16 products write themselves code for every new number of
rows, which takes longer than the product: there, each expert's run is filled up to a multiple of `RUN`, with rows of
weight 0.
"""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F

from ..activations import activate, gelu_formula
from ..config import ModelConfig
from .quicker import HandWritten

RUN = 32


class Visits:
    """Who visits whom: the visits of N tokens, as rows sorted by expert.

    tokens  (R,)    whose visit each row is; a row that fills up is token 0's
    rows    (N·K,)  where the first token's K visits stand, then the second's, …
    starts  (N,)    where each token's part of `rows` begins
    ends    (E,)    where each expert's run of rows ends
    """

    def __init__(self, experts: torch.Tensor, n_experts: int, run: int = 1):
        """`experts` (N, K): which ones each token visits; an expert's rows are a multiple of `run`."""
        K, device = experts.shape[-1], experts.device
        whose, order = experts.reshape(-1).sort()  # whichever comes first among the visits of one expert
        self.tokens, at = order // K, torch.arange(len(whose), device=device)
        self.starts = at[::K]
        self.ends = torch.searchsorted(whose, torch.arange(n_experts, device=device), right=True, out_int32=True)
        if run > 1:
            counts = self.ends.diff(prepend=self.ends.new_zeros(1))
            filled = ((counts + run - 1) // run * run).cumsum(0, dtype=torch.int32)
            before = F.pad(filled - self.ends, (1, -1))  # rows that fill up, before each expert's
            at = at + before.index_select(0, whose)
            self.tokens = order.new_zeros(int(filled[-1])).index_copy_(0, at, self.tokens)
            self.ends = filled
        self.rows = torch.empty_like(order).scatter_(0, order, at)

    @functools.cached_property
    def counts(self) -> list[int]:
        """(E,) how many rows each expert has; on a GPU, asking makes it wait."""
        return self.ends.diff(prepend=self.ends.new_zeros(1)).tolist()

    def spread(self, x: torch.Tensor) -> torch.Tensor:
        """x (N, d) → (R, d): each token once per visit, sorted by expert."""
        return x.index_select(0, self.tokens)

    def collect(self, rows: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor:
        """(R, d) → (N, d): the sum of each token's rows, each times its weight of `weights` (N, K).

        A bag of an embedding is just that, rows of a table summed with weights: one pass and no copy.
        """
        weights = None if weights is None else weights.reshape(-1)
        return torch.embedding_bag(rows, self.rows, self.starts, False, 0, False, weights)[0]

    def sorted(self, weights: torch.Tensor) -> torch.Tensor:
        """`weights` (N, K) → (R, 1), in the order of the rows; 0 for those that fill up."""
        return weights.new_zeros(len(self.tokens)).index_copy_(0, self.rows, weights.reshape(-1)).unsqueeze(1)

    def unsorted(self, numbers: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """Numbers (R,) of the rows → in the shape (N, K) of `like`."""
        return numbers.index_select(0, self.rows).view_as(like)


class Experts(HandWritten):
    """`moe.visit`: x (N, d), weights and experts (N, K), the config, and the experts' matrices and biases."""

    @staticmethod
    def pays(*inputs):
        return True  # one expert after the other is slow everywhere, and without a backward, too

    @staticmethod
    def forward(ctx, x, weights, experts, config, up, gate, down, up_bias, gate_bias, down_bias):
        visits = Visits(experts, config.n_experts, _run(x))
        rows = visits.spread(x)  # (R, d)
        lifted = _product(rows, up, up_bias, visits)  # (R, f)
        gates = None if gate is None else _product(rows, gate, gate_bias, visits)
        hidden = activate(config, lifted, gates)
        answers = _product(hidden, down, down_bias, visits)  # (R, d)
        ctx.visits, ctx.config = visits, config
        matrices = up, gate, down, up_bias, gate_bias, down_bias
        ctx.save_for_backward(rows, lifted, gates, hidden, answers, x, weights, experts, *matrices)
        return visits.collect(answers, weights.detach().to(answers.dtype))

    @staticmethod
    def backward(ctx, grad):
        rows, lifted, gates, hidden, answers, x, weights, experts, *matrices = ctx.saved_tensors
        if torch.is_grad_enabled():
            return Experts.differentiate(grad, x, weights, experts, ctx.config, *matrices)
        up, gate, down, up_bias, *_ = matrices
        visits, to_gate = ctx.visits, None
        to_answers = visits.spread(grad)
        to_weights = visits.unsorted(torch.linalg.vecdot(answers, to_answers), weights)
        to_answers.mul_(visits.sorted(weights))
        # a product that reads what was just written comes before one that needs something else
        to_down = _outer(hidden, to_answers, visits)
        to_hidden = _product(to_answers, down.mT, None, visits)
        to_lifted, to_gates = through_activation(ctx.config, to_hidden, lifted, gates)
        to_up = _outer(rows, to_lifted, visits)
        to_rows = _product(to_lifted, up.mT, None, visits)
        if gate is not None:
            to_gate = _outer(rows, to_gates, visits)
            to_rows += _product(to_gates, gate.mT, None, visits)
        biases = (None, None, None) if up_bias is None else (to_lifted, to_gates, to_answers)
        to_biases = [None if each is None else _sums(each, visits) for each in biases]
        return visits.collect(to_rows), to_weights, None, None, to_up, to_gate, to_down, *to_biases


def through_activation(
    config: ModelConfig, grad: torch.Tensor, x: torch.Tensor, gate: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """What `grad`, the gradient of `activate`'s result, is for x and for the gate. Writes over `grad`."""
    if gate is not None:
        to_gate = torch.ops.aten.silu_backward(grad * x, gate)
        return grad.mul_(F.silu(gate)), to_gate
    if config.activation == "relu":
        return grad.mul_(x > 0), None
    if config.activation == "relu2":
        return grad.mul_(F.relu(x)).mul_(2), None
    return torch.ops.aten.gelu_backward.grad_input(grad, x, approximate=gelu_formula(config), grad_input=grad), None


def _product(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, visits: Visits) -> torch.Tensor:
    """rows (R, n) times each one's expert's matrix of `weight` (E, n, m), plus its bias of (E, m): (R, m)."""
    if _fits(rows, weight.shape[1], weight.shape[2]):
        out = F.grouped_mm(rows, weight, offs=visits.ends)
    else:
        out = torch.cat([x @ w for x, w in zip(rows.split(visits.counts), weight.unbind())])
    if bias is not None:
        for y, b in zip(out.split(visits.counts), bias.unbind()):
            y += b
    return out


def _outer(rows: torch.Tensor, grad: torch.Tensor, visits: Visits) -> torch.Tensor:
    """The gradient (E, n, m) of `_product`'s weight, from its rows (R, n) and its result's gradient (R, m)."""
    if _fits(rows, rows.shape[1], grad.shape[1]):
        return F.grouped_mm(rows.mT, grad, offs=visits.ends)
    return torch.stack([x.mT @ g for x, g in zip(rows.split(visits.counts), grad.split(visits.counts))])


def _sums(rows: torch.Tensor, visits: Visits) -> torch.Tensor:
    """(R, m) → (E, m): each expert's rows summed."""
    return torch.stack([each.sum(dim=0) for each in rows.split(visits.counts)])


def _run(rows: torch.Tensor) -> int:
    """What the number of an expert's rows is to be a multiple of."""
    return RUN if rows.is_cpu and rows.dtype is torch.bfloat16 else 1


def _fits(rows: torch.Tensor, *sizes: int) -> bool:
    """Whether torch's grouped product takes it: it wants rows of whole 16 bytes and, on a GPU, an Ampere or newer."""
    aligned = all(size * rows.element_size() % 16 == 0 for size in sizes)
    known = rows.dtype in (torch.float32, torch.bfloat16, torch.float16)
    return aligned and known and (not rows.is_cuda or torch.cuda.get_device_capability(rows.device) >= (8, 0))
