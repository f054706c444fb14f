"""The mixture of experts against a dense layer, a loop over experts and Transformers' Mixtral block, in turns.

One layer: 8 experts, top-2, d = 128, expert width 512, GELU, 768 tokens, forward and backward, fp32. The measure is
time over k × the dense feed-forward's time: 1 would be perfect, as k experts do k times its arithmetic. Then whole
models: training throughput of a 4-layer mixture as a share of its dense twin's. Contestants take turns within each
round, so that a machine whose speed drifts slows all alike; a figure is the median over the rounds of each round's own
ratio.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import torch
from torch import nn

from playground.data import corpus_from_language
from playground.model import PRESETS, ModelConfig, Pass, Transformer
from playground.model.matched_pair import match_dense
from playground.model.moe import MixtureOfExperts
from playground.model.transformer import MLP
from playground.training import RECIPES, Stepped, train

D, E, K, TOKENS = 128, 8, 2, (12, 64)
LAYER = ModelConfig(d_model=D, n_heads=4, n_layers=1, n_experts=E, experts_per_token=K, feedforward_bias=False)
OURS, LOOP, MIXTRAL = "ours, grouped", "a loop over experts", "Transformers' Mixtral block"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=5, help="passes of each contestant per round")
    parser.add_argument("--steps", type=int, default=30, help="training steps per round, for the throughput of models")
    parser.add_argument("--device", default="cpu")


def run(options: argparse.Namespace) -> None:
    """Measure and print the tables."""
    device = torch.device(options.device)
    ratios, dense_ms = layer_ratios(device, options.rounds, options.repeats)
    print(f"One layer, {TOKENS[0] * TOKENS[1]} tokens, forward and backward; dense feed-forward {dense_ms:.2f} ms\n")
    print(f"| layer | time ÷ ({K} × dense) |")
    print("|---|---|")
    for name, ratio in ratios.items():
        print(f"| {name} | {ratio:.2f} |")
    print("\nTraining throughput of the 4-layer mixture, as a share of its dense twin's tokens per second\n")
    print("| twin | mixture ÷ twin |")
    print("|---|---|")
    for name, ratio in throughput_ratios(options.device, max(options.rounds // 6, 2), options.steps).items():
        print(f"| {name} | {ratio:.2f} |")


# ---- one layer -------------------------------------------------------------------------------------------------------


class ExpertLoop(nn.Module):
    """Every expert in turn picks its tokens out, transforms them, and adds them back: the usual way to write it."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.router = nn.Linear(config.d_model, config.n_experts, bias=False)
        self.experts = nn.ModuleList(MLP(config.replace(n_experts=0)) for _ in range(config.n_experts))
        self.k = config.experts_per_token

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.flatten(0, 1)  # (N, d)
        weights, chosen = self.router(flat).softmax(dim=-1).topk(self.k, dim=-1)  # (N, K)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(flat)
        for expert, layer in enumerate(self.experts):
            token, place = (chosen == expert).nonzero(as_tuple=True)
            out[token] += weights[token, place, None] * layer(flat[token], Pass(), 0)
        return out.view_as(x)


def layer_ratios(device: torch.device, rounds: int, repeats: int) -> tuple[dict[str, float], float]:
    """Time over k × dense of each contestant, and the dense layer's milliseconds."""
    dense = MLP(LAYER.replace(n_experts=0)).to(device)
    ours = MixtureOfExperts(LAYER).to(device)
    loop = ExpertLoop(LAYER).to(device)
    for parameter in (*dense.parameters(), *ours.parameters(), *loop.parameters()):
        nn.init.normal_(parameter, 0.0, 0.05)
    contestants: dict[str, tuple[nn.Module, Callable]] = {
        "dense": (dense, lambda x: dense(x, Pass(), 0)),
        OURS: (ours, lambda x: ours(x, Pass(), 0)[0]),
        LOOP: (loop, loop),
    }
    mixtral = mixtral_block()
    if mixtral is not None:
        mixtral = mixtral.to(device)
        contestants[MIXTRAL] = (mixtral, lambda x: _first(mixtral(x)))
    for module, forward in contestants.values():
        one_pass(module, forward, device)
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, (module, forward) in contestants.items():
            times[name].append(min(one_pass(module, forward, device) for _ in range(repeats)))
    ratios = {
        name: statistics.median(mine / (K * plain) for mine, plain in zip(times[name], times["dense"]))
        for name in contestants
        if name != "dense"
    }
    return ratios, 1000 * statistics.median(times["dense"])


def one_pass(module: nn.Module, forward: Callable, device: torch.device) -> float:
    """Seconds of one forward and backward, the gradient of the input included."""
    x = torch.randn(*TOKENS, D, device=device, requires_grad=True)
    grad = torch.randn(*TOKENS, D, device=device)
    module.zero_grad(set_to_none=True)
    _wait(device)
    began = time.perf_counter()
    forward(x).backward(grad)
    _wait(device)
    return time.perf_counter() - began


def mixtral_block() -> nn.Module | None:
    """Transformers' block of this shape (gated, so its hidden layer is two thirds as wide: equal arithmetic)."""
    try:
        from transformers import MixtralConfig
        from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
    except ImportError:
        return None
    config = MixtralConfig(hidden_size=D, intermediate_size=4 * D * 2 // 3, num_local_experts=E, num_experts_per_tok=K)
    block = MixtralSparseMoeBlock(config)
    for parameter in block.parameters():
        nn.init.normal_(parameter, 0.0, 0.05)
    return block


def _first(output: torch.Tensor | tuple) -> torch.Tensor:
    return output[0] if isinstance(output, tuple) else output


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


# ---- whole models ----------------------------------------------------------------------------------------------------


def throughput_ratios(device: str, rounds: int, steps: int) -> dict[str, float]:
    """Tokens per second of the mixture over its twin's, for twins of equal active parameters and of equal width."""
    corpus = corpus_from_language("stories", n_characters=200_000, n_validation=20_000)
    base = PRESETS["small"].replace(vocab_size=corpus.vocab_size, context_length=64)
    mixture = base.replace(n_experts=E, experts_per_token=K)
    twins = {
        "equal active parameters": match_dense(mixture).dense,
        "the same layer, without experts": base,
    }
    contestants = {"mixture": mixture, **twins}
    runs = {}
    for name, config in contestants.items():
        training = RECIPES["small"].replace(steps=10**6, batch_size=12, eval_every=0, eval_windows=1, device=device)
        runs[name] = train(Transformer(config), corpus, training)
        step_time(runs[name], 5)
    ratios: dict[str, list[float]] = {name: [] for name in twins}
    for _ in range(rounds):
        taken = {name: step_time(events, steps) for name, events in runs.items()}
        for name in twins:
            ratios[name].append(taken[name] / taken["mixture"])
    return {name: statistics.median(found) for name, found in ratios.items()}


def step_time(events: Iterator, steps: int) -> float:
    """The middle of the seconds of the next steps."""
    times, before = [], time.perf_counter()
    for event in events:
        if isinstance(event, Stepped):
            now = time.perf_counter()
            times.append(now - before)
            before = now
            if len(times) == steps:
                return statistics.median(times)
    raise AssertionError("the run ended")
