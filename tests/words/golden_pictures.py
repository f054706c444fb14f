"""Golden cases of the pictures: what playground/figures says of the numbers it draws."""

import math
from collections.abc import Iterator

import numpy as np

from playground.figures import candidates, embeddings, gradients, kv_cache, lens, parameters, routing
from playground.figures.game import describe_bits
from playground.figures.heads import describe_worth
from playground.figures.loss import Run, describe_loss
from playground.figures.parts import describe_removal, describe_sublayers

BASELINES = [("uniform", 3.33), ("unigram", 2.84), ("bigram", 2.11), ("floor", 1.02)]


def of_heads_and_parts() -> Iterator[tuple[str, str]]:
    values, margins = np.array([[0.0069, -0.0510], [-0.0060, -0.0450]]), np.array([[0.0182, 0.06], [0.01, 0.0128]])
    yield "heads: none matters, one harms", describe_worth(values, margins, "nats")
    yield "heads: one matters, three harm", describe_worth(values + np.array([[0.3, 0], [0, 0]]), margins / 2, "nats")
    yield "heads: one alone", describe_worth(np.array([[0.3]]), np.array([[0.1]]), "nats")
    yield "heads: no interval", describe_worth(np.array([[0.3, 0.1]]), None, "nats")
    yield "heads: nothing moves", describe_worth(np.full((2, 2), 2e-5), None, "nats")
    values, margins = np.array([[0.01, 0.3685, 0.372, 0.3471]]), np.array([[0.02, 0.0861, 0.0923, 0.0569]])
    yield "heads: three share the first place", describe_worth(values, margins, "nats", values > 0.1)
    all_alike = np.full((2, 8), 0.3), np.full((2, 8), 0.1), "nats", np.full((2, 8), True)
    yield "heads: sixteen share it", describe_worth(*all_alike)
    yield "parts: three heads share the first place", describe_removal(values, margins, values > 0.1, 0.13)
    yield "parts: one head is first", describe_removal(values, margins, values > 0.37, 0.13)
    yield "parts: one window", describe_removal(values, margins + np.inf, values > 0, 0.13)
    idle = np.array([[-0.012, 0.0]]), np.full((1, 2), np.inf), np.zeros((1, 2), bool), 2.76
    yield "parts: no head matters, one window", describe_removal(*idle)
    yield "parts: no head matters", describe_removal(idle[0], np.full((1, 2), 0.1), idle[2], 2.76)
    heads, sublayers, margins = np.array([[1.2936, 0.1]]), np.array([[1.66, 2.13]]), np.array([[0.1, 0.2]])
    yield "parts: an MLP is first", describe_sublayers(heads, sublayers, margins)[1:]
    yield "parts: an MLP is first, one window", describe_sublayers(heads, sublayers, margins + np.inf)[1:]
    yield "parts: a head is first", f"({describe_sublayers(heads + 2, sublayers, margins)})"


def of_loss_curves() -> Iterator[tuple[str, str]]:
    evaluations = {"step": [20, 40], "train_loss": [1.2, 1.1], "val_loss": [1.2, 1.11], "seconds": [1.0, 2.0]}
    run = Run("run", {"step": [], "loss": [], "seconds": []}, evaluations)
    yield "loss: of a language", describe_loss(run, [*BASELINES[:3], ("floor", 1.03)], "Learning.")
    yield "loss: below the best possible", describe_loss(run, [("floor", 1.5)])
    yield "loss: ordinary text", describe_loss(run, BASELINES[:3])
    yield "loss: above all baselines", describe_loss(run, [("uniform", 1.0)])
    yield "loss: nothing yet", describe_loss(None)
    yield "loss: nothing yet, baselines", describe_loss(None, BASELINES)
    state = "The validation loss is 1.1100, 0.0800 nats above the best possible loss."
    yield "loss: the state names it already", describe_loss(run, [("floor", 1.03)], state)
    records = [{"step": step, "norms": {"embeddings": 1.0 / (1 + step), "layer 0": 2.0}} for step in (0, 10, 20)]
    yield "gradients", gradients.describe_gradients(records)
    yield "gradients: none", gradients.describe_gradients([])
    yield "gradients: diverged", gradients.describe_gradients([{"step": 1, "norms": {"head": math.nan}}])
    yield "parameters", parameters.describe_parameters({"token embedding": 1792, "feed-forward": 131072})
    pairs = np.array([[1, 0.9, -0.4], [0.9, 1, 0.1], [-0.4, 0.1, 1]])
    for part in (False, True):
        yield f"similar words, part: {part}", embeddings.describe_similarity(pairs, ["cat", "dog", "the"], part=part)


def of_predictions() -> Iterator[tuple[str, str]]:
    say = candidates.describe_next_tokens
    yield "next: another leads now", say(["a", "b"], [0.6, 0.4], [0.1, 0.9])
    yield "next: several led", say(["a", "b", "c", "d"], [0.6, 0.2, 0.1, 0.1], [0.1, 0.5, 0.3, 0.1])
    yield "next: nothing changed", say(["a", "b"], [0.6001, 0.3], [0.6, 0.4])
    yield "next: no before", say(["a"], [0.6], when="before training")
    yield "next: up", say(["a"], [0.6], [0.5])
    yield "next: down", say(["a"], [0.6], [0.7])
    names = ("at step 1", "in the end")
    yield (
        "two moments, two leaders",
        candidates.describe_leaders(["a", "g"], [0.997, 0.001], [0.076, 0.282], names=names),
    )
    yield "two moments, one leader", candidates.describe_leaders(["a", "g"], [0.997, 0.001], [0.5, 0.282])
    stages = ["embeddings", "layer 0", "layer 1"]
    for name, chances, places in (
        ("lowered", [0.173, 0.16], [1, 1]),
        ("raised", [0.173, 0.5], [1, 1]),
        ("left", [0.173, 0.173], [1, 1]),
        ("takes the lead, falling", [0.3, 0.2], [2, 1]),
        ("takes the lead, rising", [0.1, 0.2], [2, 1]),
        ("led once", [0.1, 0.4, 0.3], [9, 1, 2]),
        ("never leads", [0.1, 0.4, 0.3], [9, 2, 2]),
    ):
        given = np.array(chances)[:, None], np.array(places)[:, None], stages[: len(chances)]
        yield f"lens: {name}", lens.describe_lens(*given, "h", "i", 0)
    yield "lens: shorter", lens.describe_norms(np.array([[2.0], [1.0]]), stages[:2], 0)
    yield "lens: longer", lens.describe_norms(np.array([[1.0], [3.0]]), stages[:2], 0)
    for weight in (0.55, 0.99):
        experts, weights = np.array([[0, 1]]), np.array([[weight, 1 - weight]])
        yield f"routing: {weight}", routing.describe_routing(experts, weights, ["the"], 0, 4)
    yield "game: two bets", describe_bits({"you": np.array([1.0, 3.0]), "model": np.array([0.5, 0.25])})


def of_cache() -> Iterator[tuple[str, str]]:
    times = kv_cache.describe_token_times
    yield "times: full context", times(range(7, 11), [1.0] * 4, [2.0] * 4, context=8)
    yield "times: both", times([1, 2, 3], [1, 1, 1], [1, 2, 4])
    yield "times: with the cache only", times(range(1, 11), [1.0] * 5 + [1.2] * 5, [])
    yield "times: fewer without", times(range(1, 11), [1.0] * 5 + [3.0] * 5, [4.0] * 4)
    lengths, cached, plain = list(range(2, 12)), [1.0] * 7 + [9.0] * 3, [2.0] * 7 + [9.0] * 3
    yield "times: slower beyond the context", times(lengths, cached, plain, context=8)
    yield "times: the context just holds", times(lengths, cached, plain, context=11)
    yield "size: full", kv_cache.describe_cache_growth(lengths, [64 * min(n, 8) for n in lengths], held=8)
    yield "projections", kv_cache.describe_projections(1515, 381750)


def of_pictures() -> Iterator[tuple[str, str]]:
    for part in (of_heads_and_parts, of_loss_curves, of_predictions, of_cache):
        yield from part()
