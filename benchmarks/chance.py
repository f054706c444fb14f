"""Chance: how often routers that know nothing of who speaks beat the shifted speakers; at most 5 of 100 is right.

They differ in how long they keep to an expert. `inspection/nulls.py` judges them, on fresh texts of Dialects.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence

import numpy as np

from playground.data import LANGUAGES
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.inspection.expert_information import expert_information
from playground.inspection.nulls import judge, shifted_sources
from playground.inspection.probe import Probe, probe

E, T = 8, 64
TOKENIZERS = {"char": CharTokenizer, "word": WordTokenizer}


def runs_of(numbers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """An expert drawn for each number (N,): equal ones have the same."""
    return rng.integers(0, E, numbers.max() + 1)[numbers]


def _staying(text: Probe, rng: np.random.Generator, stay: float) -> np.ndarray:
    return runs_of((rng.random(text.sources.size) > stay).cumsum(), rng)


def _windows(text: Probe, rng: np.random.Generator, together: int = 1) -> np.ndarray:
    return runs_of(np.arange(text.sources.size) // (T * together), rng)


def _token_plus_window(text: Probe, rng: np.random.Generator) -> np.ndarray:
    return (runs_of(text.ids.flatten().numpy(), rng) + _windows(text, rng)) % E


def _some_tokens_by_window(text: Probe, rng: np.random.Generator) -> np.ndarray:
    tokens = text.ids.flatten().numpy()
    fixed = (rng.random(tokens.max() + 1) < 0.5)[tokens]
    return np.where(fixed, runs_of(tokens, rng), _windows(text, rng))


ROUTERS: dict[str, Callable[[Probe, np.random.Generator], np.ndarray]] = {
    "anew for every token": lambda text, rng: rng.integers(0, E, text.sources.size),
    "anew for every sentence": lambda text, rng: runs_of(text.sentences.ravel(), rng),
    "stays for 10 tokens": lambda text, rng: _staying(text, rng, 0.9),
    "stays for 50 tokens": lambda text, rng: _staying(text, rng, 0.98),
    "one per window": _windows,
    "one per 3 windows": lambda text, rng: _windows(text, rng, 3),
    "token plus window": _token_plus_window,
    "some tokens by window": _some_tokens_by_window,
}
"""Each gives the experts (N,) of a text."""
LOOK_AT_TOKENS = ("token plus window", "some tokens by window")
"""These truly know some of the total, and nothing of the rest."""


def rates(
    unit: str,
    texts: int,
    draws: int,
    routers: Sequence[str] = tuple(ROUTERS),
    *,
    layers: int = 4,
    tokens: int = 6144,
    first_text: int = 0,
) -> dict[str, dict[str, float]]:
    """By router, then by measure: how often one drawn router, or any of several layers, beats the shifted speakers.

    `draws` routers of every kind asked for are held against each text. Beside the rates stand means in bits: of what
    the routers tell and of what they tell about the shifted speakers.
    """
    language = LANGUAGES["dialects"]
    tokenizer = TOKENIZERS[unit].from_text("".join(language.graph.texts))
    results: dict[str, dict[str, list[float]]] = {name: {} for name in routers}
    for number in range(first_text, first_text + texts):
        text = probe(language, tokenizer.encode, T, tokens // T, seed=7_000_000 + number)
        rng, shifted = np.random.default_rng(number), shifted_sources(text)
        for name in routers:
            choices = np.stack([ROUTERS[name](text, rng) for _ in range(draws)])
            nulls = [expert_information(each[None], E, text, shifted) for each in choices]
            for measure, bits in expert_information(choices, E, text).items():
                shuffled = [null[measure] for null in nulls]
                alone, together = (
                    [judge(x, {"shuffled": null}, tests).is_clear for x, null in zip(bits.tolist(), shuffled)]
                    for tests in (1, layers)
                )
                added = {
                    measure: alone,
                    any_of(layers, measure): [any(together[i : i + layers]) for i in range(0, draws, layers)],
                    f"{measure}, bits": bits.tolist(),
                    f"{measure}, shifted": [null.mean() for null in shuffled],
                }
                for title, values in added.items():
                    results[name].setdefault(title, []).extend(values)
    return {name: {title: float(np.mean(each)) for title, each in by.items()} for name, by in results.items()}


def any_of(layers: int, measure: str) -> str:
    """What the clearest of several layers is called."""
    return f"{measure}, any of {layers}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--unit", choices=TOKENIZERS, default="word", help="what a token is")
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--first-text", type=int, default=0, help="other texts than those of earlier runs")
    parser.add_argument(
        "--routers", nargs="+", choices=ROUTERS, default=list(ROUTERS), metavar="KIND", help="; ".join(ROUTERS)
    )
    parser.add_argument("--draws", type=int, default=16, help="routers of every kind for each text")


def run(options: argparse.Namespace) -> None:
    """Measure and print the table."""
    table = rates(options.unit, options.texts, options.draws, options.routers, first_text=options.first_text)
    titles = list(next(iter(table.values())))
    print(f"| {options.texts} texts × {options.draws} routers ({options.unit}) | {' | '.join(titles)} |")
    print("|---" * (len(titles) + 1) + "|")
    for name, by in table.items():
        cells = (f"{by[t]:.3f}" if t.endswith(("bits", "shifted")) else f"{100 * by[t]:.1f} %" for t in titles)
        print(f"| {name} | {' | '.join(cells)} |")
    for title, tries in (("one", options.texts * options.draws), ("any of 4", options.texts * options.draws / 4)):
        print(f"\nBy luck, figures of {title} are off by up to ± {196 * math.sqrt(0.05 * 0.95 / tries):.1f} %.")
