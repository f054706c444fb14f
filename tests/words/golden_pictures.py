"""Golden cases of the sentences beside pictures: of runs, predictions, pairs, classes, experts and Inspect."""

import math
from collections.abc import Iterator
from types import SimpleNamespace as Facts

import numpy as np

from playground.data import Baselines
from playground.inspection.balance import Evenness
from playground.inspection.favourites import Sorting
from playground.inspection.sizes import Part
from playground.words import experts, inspect, pictures
from playground.words.parts import plain_name

Case = tuple[str, str]

BASELINES = Baselines(3.33, 2.84, 2.11, 1.02)


def of_pictures() -> Iterator[Case]:
    evaluations = {"step": [20, 40], "val_loss": [1.2, 1.11]}
    yield "loss: of a language", pictures.loss_words(evaluations, BASELINES)
    others = {"ordinary text": 2.11, "not clearly below": 1.115, "above all baselines": None}
    for facts, bigram in others.items():
        known = Baselines(3.33, 2.84, bigram) if bigram else Baselines(1.0, 0.9, 0.8)
        yield f"loss: {facts}", pictures.loss_words(evaluations, known)
    yield "loss: nothing yet", pictures.loss_words(None)
    yield "loss: nothing yet, baselines", pictures.loss_words(None, BASELINES)
    norms = np.array([[1.0, 0.05], [2.0, 2.0]])
    yield "gradients", pictures.gradients_words(["embeddings", "layer 0"], [0, 20], norms)
    yield "gradients: diverged", pictures.gradients_words(["head"], [1], np.full((1, 1), np.nan))
    pairs = np.array([[1, 0.9, -0.4], [0.9, 1, 0.1], [-0.4, 0.1, 1]])
    for part in (False, True):
        yield f"similar words, part: {part}", pictures.similar_words(pairs, ["cat", "dog", "the"], part=part)
    yield "next: another leads now", pictures.expected(["a", "b"], [0.6, 0.4], [0.1, 0.9])
    yield "next: the same leads", pictures.expected(["a"], [0.6], [0.5], ("unedited", "edited"))
    yield "next: no before", pictures.expected(["a"], [0.6], when=("", "before training"))
    yield "next: before training", pictures.KNOWS_NOTHING
    yield "temperatures", pictures.temperatures_words(["a", "b"], {0.5: [0.9, 0.1], 2.0: [0.6, 0.4]})
    stages = ["embeddings", "layer 0", "layer 1"]
    for name, ranks in (("leads", [1, 1, 1]), ("takes the lead", [9, 2, 1]), ("never leads", [9, 2, 2])):
        yield f"lens: {name}", pictures.lens_words(np.array([0.1, 0.4, 0.3]), np.array(ranks), stages, "h", "i")
    yield "game: two bets", pictures.bits_words({"you": np.array([1.0, 3.0]), "floor": np.array([0.5, 0.25])})
    lengths, times = list(range(2, 12)), ([1.0] * 7 + [9.0] * 3, [2.0] * 7 + [9.0] * 3)
    yield "times: beyond the context", pictures.times_words(lengths, *times, context=8)
    yield "difference", pictures.difference_words([0, 40], np.array([0.0, -0.2]), np.array([math.nan, 0.1]))
    yield "difference: nothing yet", pictures.difference_words([], np.array([]), np.array([]))
    curves = [Facts(kind=kind, is_first=True, y=[2.0, loss]) for kind, loss in (("dense", 1.5), ("moe", 1.4))]
    yield "two curves", pictures.pair_words(curves)
    yield "no curves yet", pictures.pair_words([])
    for mean in (0.05, -0.3):
        yield f"interval: {mean}", pictures.interval_words([-0.1, 0.2], mean, 0.1)
    costs, margins = np.array([[0.1, -0.01], [0.5, 0.0]]), np.array([[0.02, 0.05], [0.1, 0.01]])
    names = [[f"expert {column} of layer {row}" for column in range(2)] for row in (1, 3)]
    one, two = costs == 0.5, costs > 0.05
    for name, first, change in (("two share it", two, 0), ("one harms", one, -0.1)):
        changed = costs + change * np.array([[0, 1], [0, 0]])
        yield f"parts: {name}", pictures.worth_words(changed, margins, first, 0.7, "96 tokens of a text", names)
    for name, least in (("none matters", 0), ("one only harms", -1)):
        yield f"parts: {name}", pictures.worth_words(least * (costs == 0.5), margins, costs > 0, 0.7, "a text", names)
    yield "parts: one window", pictures.worth_words(costs, margins + np.inf, costs > 0, 0.7, "a text", names)
    found = Facts(layer=1, head=0, final=0.8, before=20, after=40, score_first=0.4)
    yield "a habit appears", pictures.appearance_words("the first token", found, (0.4, 0.8))
    for name, ends in (("was there", (0.42, 0.4)), ("is not there", (0.1, 0.2)), ("unknown", (math.nan,) * 2)):
        yield f"a habit {name}", pictures.appearance_words("the first token", None, ends)


def of_experts() -> Iterator[Case]:
    chosen, weights = np.array([[0, 1], [0, 5]]), np.array([[0.9, 0.1], [0.6, 0.4]])
    yield "a journey", experts.journey_words("a", 3, [0, 1], chosen, weights)
    even = Evenness(2.9, 3.0, 0.2, ())
    for what, balanced, unbalanced in (
        ("some die", even, Evenness(2.0, 3.0, 0.5, (0, 2))),
        ("more die", Evenness(2.8, 3.0, 0.2, (0,)), Evenness(2.0, 3.0, 0.5, (0, 2))),
        ("one is busy", even, Evenness(2.0, 3.0, 0.5, ())),
        ("nothing", even, even),
    ):
        yield f"what balance did: {what}", str(experts.load_result({True: balanced, False: unbalanced}))
    for balanced in (True, False):
        yield f"a load, balanced: {balanced}", str(experts.load_result({balanced: even}))
    yield "kept", experts.repeated_words([7, 8, 7, 7], [3, 1, 3, 1], 2)
    yield "nothing kept", experts.repeated_words([7, 8], [1, 1], 1)
    for random, kind in ((0.61, (3, ["a"])), (0.61, (3, list("abcde"))), (0.61, None), (0.73, None)):
        yield f"sorting {random}, {kind}", str(experts.specialised_result(Sorting(0.72, random), kind, "a text"))
    for after in (1.6, 1.5):
        yield f"broken, loss {after}", str(experts.broken_result(1.5, after, "your text"))


def of_inspect() -> Iterator[Case]:
    yield from ((f"how to read the step: {name}", words) for name, words in inspect.READING.items())
    for name, after, margin in (("cost", 1.6, 0.01), ("gain", 1.4, math.inf), ("may be chance", 1.6, 0.2),
                                ("change nothing", 1.5, 0.1)):  # fmt: skip
        yield f"edits that {name}", inspect.edit_cost_words(1.5, after, margin, "a text")
    for picture, largest in (("gradient", 0.02), ("step", 0.001), ("step", 0.0)):
        yield f"the largest number of a picture, {picture}, {largest}", inspect.largest_words(picture, "Wq", largest)
    for after in (0.3, 1.0, 1.2):
        yield f"a loss of 1 before a step, {after} after it", inspect.step_headline(1.0, after)
    yield "a framed weight", inspect.framed_words("step", (2, 70), -0.00452, (32, 128), (range(32), range(64, 128)))
    yield "AdamW", inspect.ADAM
    parts = ("final_norm", "head", "0 attention", "blocks.2.attention.qkv.weight", "blocks.0.feedforward_norm.weight")
    yield from ((f"the name of {part}", plain_name(part)) for part in parts)
    for name, operations in (("embeddings", 0), ("attention", 10), ("MLPs", 63), ("experts", 45)):
        counted = [Part("norms", 30, 100 - operations), Part(name, 70, operations)]
        yield f"the cost of {name}", str(inspect.cost_words(counted, 2, 8))
    tied = [Part("embeddings", 70, 0), Part("output layer", 0, 50)]
    yield "the cost of tied embeddings", str(inspect.cost_words(tied, 2, 8))
    yield "sizes", inspect.sizes_words(798_336, 1_598_000, 4)
    yield "the proof of a receipt", inspect.receipt_proof(1e-7, "score", 32)
    yield "the cache", inspect.cache_words(120, True, 1e-6, 504, 127250, 128, 4096)
    yield "the cache, other texts", inspect.cache_words(120, False, 1.0, 504, 127250, 128, 4096)
