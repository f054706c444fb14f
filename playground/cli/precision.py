"""Say what a model costs and loses in fp32, bf16 and int8."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from ..data import corpus_from_text, read_file
from ..service.precision import cost_on
from ..service.unseen import beside_the_run, unseen
from ..storage.json_files import finite
from ..words.precision import precision_summary
from ..words.shell import precision_lines
from . import checkpoints


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `precision`."""
    checkpoints.add_arguments(parser)
    parser.add_argument("--text", metavar="FILE", help="judge by the last tenth of this text")
    parser.add_argument("--tokens", type=int, default=4096, metavar="N", help="judge by about so many (default: 4096)")


def run(options: argparse.Namespace) -> int:
    """Measure, and print a table, a receipt and a sentence."""
    if options.tokens < 1:
        raise ValueError("--tokens must be at least 1")
    checkpoint = checkpoints.opened(options)
    if options.text:
        corpus = corpus_from_text(read_file(options.text), checkpoint.tokenizer)
        words = f"the last tenth of {options.text}"
    elif (found := unseen(None, checkpoint)) is not None:
        windows = max(2, options.tokens // checkpoint.config.context_length)
        corpus, words = found.corpus, found.words + beside_the_run(found, checkpoint, windows)
    else:
        raise ValueError("the text this model was judged by is not here: give one with --text FILE")
    cost = cost_on(corpus, checkpoint, options.tokens)
    if options.json:
        print(json.dumps(finite({**asdict(cost), "judged_by": words, "sentence": precision_summary(cost)})))
    else:
        print("\n".join([f"{checkpoint.name}, judged by {cost.tokens:,} tokens: {words}", *precision_lines(cost)]))
    return 0
