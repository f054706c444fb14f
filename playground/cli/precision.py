"""Say what a model costs and loses in fp32, bf16 and int8."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from ..data import corpus_from_text, read_file
from ..figures.precision import describe_level_counts
from ..inspection.precision import PrecisionCost
from ..service.precision import cost_on
from ..service.unseen import beside_the_run, unseen
from ..storage.json_files import finite
from ..words.numbers import bytes_text
from ..words.precision import precision_summary
from ..words.verdict import loss_in_words
from . import checkpoints


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `precision`."""
    parser.add_argument("folder", metavar="DIR", help="a checkpoint folder, one of Transformers, or a zip")
    checkpoints.add_arguments(parser)
    parser.add_argument("--text", metavar="FILE", help="judge by the last tenth of this text")
    parser.add_argument("--tokens", type=int, default=4096, metavar="N", help="judge by about so many (default: 4096)")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def run(options: argparse.Namespace) -> int:
    """Measure, and print a table, a receipt and a sentence."""
    if options.tokens < 1:
        raise ValueError("--tokens must be at least 1")
    checkpoint = checkpoints.opened(options)
    if options.text:
        corpus, words = (
            corpus_from_text(read_file(options.text), checkpoint.tokenizer),
            f"the last tenth of {options.text}",
        )
    elif (found := unseen(None, checkpoint)) is not None:
        windows = max(2, options.tokens // checkpoint.config.context_length)
        corpus, words = found.corpus, found.words + beside_the_run(found, checkpoint, windows)
    else:
        raise ValueError("the text this model was judged by is not here: give one with --text FILE")
    cost = cost_on(corpus, checkpoint, options.tokens)
    if options.json:
        print(json.dumps(finite({**asdict(cost), "judged_by": words, "sentence": precision_summary(cost)})))
    else:
        _print(checkpoint.name, words, cost)
    return 0


def _print(name: str, words: str, cost: PrecisionCost) -> None:
    print(f"{name}, judged by {cost.tokens:,} tokens: {words}")
    print(f"{'':<6}{'weights':>12}{'tokens/s':>10}   {'loss':<20}{'scores off by':>13}  greedy text parts at")
    for way in cost.ways:
        never = "–" if way.name == "fp32" else f"not in {cost.written}"
        parts = never if way.parts_at is None else f"token {way.parts_at + 1}"
        loss = loss_in_words(way.loss, way.margin)
        print(
            f"{way.name:<6}{bytes_text(way.nbytes):>12}{way.tokens_per_second:>10,.0f}   {loss:<20}"
            f"{way.logit_difference:>13.4g}  {parts}"
        )
    matrix, worst = cost.matrix, cost.matrix.worst
    print(describe_level_counts(matrix.name, matrix.shape, matrix.counts, matrix.middle_half))
    print(
        f"Row {worst.row}, column {worst.column} of it: {worst.value:.7g}. The row's largest is {worst.largest:.7g}, "
        f"so its scale is {worst.largest:.7g} / 127 = {worst.scale:.7g}; {worst.value:.7g} / {worst.scale:.7g} = "
        f"{worst.value / worst.scale:.3f}, level {worst.level}; back comes {worst.back:.7g} "
        f"(off by {abs(worst.back - worst.value):.2g}; as bf16 {worst.back_bf16:.7g})."
    )
    print(precision_summary(cost))
