"""Decoding speed: one stream against Transformers' generate with its cache, against memory, precisions, many streams.

Ours and theirs take turns, so that a machine whose speed drifts slows both; a row's figure is the median over the
rounds of each round's own ratio. Both draw from the same kind of distribution (temperature 1, nothing cut off). On a
GPU, both use bf16.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch

from playground.engine import ContinuousBatch, Request, SamplingConfig, generate
from playground.engine.request import default_slide
from playground.model import PRESETS, ModelConfig, Transformer
from playground.storage import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large-tokens", type=int, default=24, help="per round at GPT-2 small's shape")
    tables = ("small", "large", "lengths", "streams", "beyond")
    parser.add_argument("--only", choices=tables, help="one table instead of all")
    parser.add_argument("--device", default="cpu")


def run(options: argparse.Namespace) -> None:
    """Measure and print the tables."""
    torch.manual_seed(0)
    if options.only in (None, "small"):
        small(options.rounds, options.device)
    if options.only in (None, "large"):
        large(options.rounds, options.large_tokens, options.device)
    if options.only in (None, "lengths"):
        lengths(options.rounds, options.device)
    if options.only in (None, "streams"):
        streams(options.rounds, options.device)
    if options.only in (None, "beyond"):
        beyond(options.rounds, options.device)


def small(rounds: int, device: str, prompt: int = 16, total: int = 256) -> None:
    """0.8 million parameters, from 16 to 256 tokens."""
    configs = {name: PRESETS[name].replace(vocab_size=65, context_length=total + 1) for name in ("nanogpt-cpu", "fast")}
    precision = usual_precision(device)
    runs = {
        f"ours, {name} shape": ours(Transformer(config).to(device), prompt, total, precision=precision)
        for name, config in configs.items()
    }
    peer = transformers_gpt2(configs["nanogpt-cpu"], prompt, total, device)
    where = f"{torch.get_num_threads()} threads" if device == "cpu" else device
    print(f"\nOne stream, 0.8 M parameters, {prompt} → {total} tokens, {precision}, {where}\n")
    compare(runs, peer, rounds, total - prompt)


def large(rounds: int, new_tokens: int, device: str, prompt: int = 16) -> None:
    """GPT-2 small's shape, and how near a CPU comes to reading each weight once per token."""
    config, precision, total = PRESETS["gpt2-small"], usual_precision(device), prompt + new_tokens
    model, peer = Transformer(config).to(device), transformers_gpt2(config, prompt, total, device)
    print(f"\nOne stream, GPT-2 small's shape ({config.n_parameters:,} parameters), {precision}, {new_tokens} tokens\n")
    if device != "cpu":
        compare({f"ours, {precision}": ours(model, prompt, total, precision=precision)}, peer, rounds, new_tokens)
        return
    read_once = sum(p.numel() for n, p in model.named_parameters() if n != "position_embedding.weight")
    numbers = torch.empty(read_once).uniform_()  # as many bytes as the weights that a token's way touches
    limits = []

    def read_memory() -> None:
        began = time.perf_counter()
        numbers.sum()
        limits.append(time.perf_counter() - began)

    steady: list[float] = []

    def mine() -> float:
        times = []
        began = time.perf_counter()
        for step in generate(model, list(range(prompt)), new_tokens, SamplingConfig()):
            times.append(step.seconds)
            read_memory()
        reading = sum(limits[-new_tokens:])
        steady.append(statistics.median(times[1:-1]))
        return time.perf_counter() - began - reading

    read_memory()
    ways = {"ours, fp32": mine}
    ways |= {f"ours, {name}": ours(model, prompt, total, precision=name) for name in ("bf16", "int8")}
    compare(ways, peer, rounds, new_tokens)
    limit, token = statistics.median(limits[1:]), statistics.median(steady)
    print(
        f"\nA token takes {1000 * token:.1f} ms once warm; reading {4 * read_once / 1e6:.0f} MB of weights takes "
        f"{1000 * limit:.1f} ms ({4 * read_once / limit / 1e9:.1f} GB/s): {100 * limit / token:.0f} % of the limit."
    )


def lengths(rounds: int, device: str, early: int = 64, late: int = 1000) -> None:
    """Whether a token far down the text costs more than an early one."""
    config = PRESETS["nanogpt-cpu"].replace(vocab_size=65, context_length=1024)
    model, found = Transformer(config).to(device), {early: [], late: []}
    for _ in range(rounds):
        times = {s.length: s.seconds for s in generate(model, [1] * 16, late + 8 - 16, SamplingConfig())}
        for length, values in found.items():
            values.append(statistics.median(times[n] for n in range(length - 8, length + 8)))
    a, b = (1000 * statistics.median(found[n]) for n in (early, late))
    print(f"\n| text length | ms per token |\n|---|---|\n| {early} | {a:.3f} |\n| {late:,} | {b:.3f} ({b / a:.2f}×) |")


def compare(runs: dict, peer, rounds: int, new_tokens: int) -> None:
    """Take turns, then print tokens per second and ratios."""
    ratios, seconds, theirs = {n: [] for n in runs}, {n: [] for n in runs}, []
    for way in (peer, *runs.values()):
        way()  # warm up
    for _ in range(rounds):
        before = peer()
        for name, way in runs.items():
            seconds[name].append(way())
        after = peer()
        theirs += [before, after]
        for name in runs:
            ratios[name].append((before + after) / 2 / seconds[name][-1])
    first = next(iter(runs))
    print(f"| way | tokens/s | against Transformers | against {first} |\n|---|---|---|---|")
    print(f"| Transformers GPT-2, generate with its cache | {new_tokens / statistics.median(theirs):,.1f} | 1.00× | |")
    for name in runs:
        speed = new_tokens / statistics.median(seconds[name])
        own = statistics.median(a / b for a, b in zip(seconds[first], seconds[name]))
        print(f"| {name} | {speed:,.1f} | {statistics.median(ratios[name]):.2f}× | {own:.2f}× |")


def streams(rounds: int, device: str, tokens: int = 100) -> None:
    """How tokens per second grow with the number of those who write with one small model at once."""
    model = Transformer(PRESETS["nanogpt-cpu"].replace(vocab_size=65, context_length=257)).to(device)
    batch, counts, found = ContinuousBatch(model), (1, 4, 16, 46), {}
    for turn in range(rounds + 1):
        for n in counts:
            began = time.perf_counter()
            requests = [Request(model.config, range(16), tokens, SamplingConfig(seed=seed)) for seed in range(n)]
            running = [batch.join(request) for request in requests]
            for _ in zip(*running):
                pass
            if turn:
                found.setdefault(n, []).append(n * tokens / (time.perf_counter() - began))
    print(f"\n{tokens} tokens each, 0.8 M parameters\n\n| streams | tokens/s of all | against one |\n|---|---|---|")
    for n in counts:
        ratio = statistics.median(many / one for many, one in zip(found[n], found[1]))
        print(f"| {n} | {statistics.median(found[n]):,.0f} | {ratio:.1f}× |")


def beyond(rounds: int, device: str) -> None:
    """How fast the page's first model writes on once its context is full, against before: alone and in 46 streams."""
    model, counts = load(Path(__file__).resolve().parents[1] / "checkpoints" / "stories").model.to(device), (1, 46)
    T = model.config.context_length
    quarter = default_slide(T)
    ways = {  # how many tokens each prompt has, how many each stream then writes, and how far its window slides
        "within": (16, 2 * quarter, quarter),
        "a quarter": (T, 4 * quarter, quarter),
        "one token": (T, quarter, 1),
    }
    found: dict[tuple[str, int], list[float]] = {(way, n): [] for way in ways for n in counts}
    for turn in range(rounds + 1):
        for way, n in found:
            speed = steady_speed(model, n, *ways[way])
            if turn:
                found[way, n].append(speed)
    print(f"\nA context of {T} tokens, {model.config.n_parameters:,} parameters\n")
    print("| streams | tokens/s within the context | beyond, sliding by | tokens/s | against within |")
    print("|---|---|---|---|---|")
    for n in counts:
        for way in list(ways)[1:]:
            ratio = statistics.median(late / early for late, early in zip(found[way, n], found["within", n]))
            within, later = (statistics.median(found[which, n]) for which in ("within", way))
            print(f"| {n} | {within:,.0f} | {way} | {later:,.0f} | {ratio:.2f} |")


def steady_speed(model: Transformer, n: int, prompt: int, tokens: int, slide_by: int) -> float:
    """Tokens per second of n streams together, from when the last one has begun until it has written so many tokens."""
    batch = ContinuousBatch(model)
    requests = [
        Request(model.config, [1] * prompt, n + 2 * tokens, SamplingConfig(seed=seed), slide_by=slide_by)
        for seed in range(n)
    ]
    running = [batch.join(request) for request in requests]
    for steps in running:
        next(steps)
    began, before = time.perf_counter(), sum(len(request.texts[0]) for request in requests)
    for _ in range(tokens):
        for steps in running:
            next(steps)
    return (sum(len(request.texts[0]) for request in requests) - before) / (time.perf_counter() - began)


def ours(model: Transformer, prompt: int, total: int, **more: str):
    """A function that decodes once and returns its seconds."""

    def decode() -> float:
        began = time.perf_counter()
        for _ in generate(model, list(range(prompt)), total - prompt, SamplingConfig(), **more):
            pass
        return time.perf_counter() - began

    return decode


def usual_precision(device: str) -> str:
    """What both compute in."""
    return "fp32" if device == "cpu" else "bf16"


def transformers_gpt2(config: ModelConfig, prompt: int, total: int, device: str):
    """The same for Transformers' GPT-2 of that shape."""
    from transformers import GPT2Config, GPT2LMHeadModel, logging

    logging.set_verbosity_error()
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=config.vocab_size, n_positions=config.context_length, n_embd=config.d_model,
            n_layer=config.n_layers, n_head=config.n_heads, bos_token_id=None, eos_token_id=None,
        )
    ).eval()  # fmt: skip
    model.to(device, torch.float32 if device == "cpu" else torch.bfloat16)
    ids = torch.arange(prompt, device=device)[None]
    new = total - prompt

    def decode() -> float:
        began = time.perf_counter()
        with torch.no_grad():
            model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=True,
                top_k=0, pad_token_id=0,
            )  # fmt: skip
        return time.perf_counter() - began

    return decode
