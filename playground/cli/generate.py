"""Continue a prompt with the model of a checkpoint folder."""

from __future__ import annotations

import argparse
import json
import sys

from ..data.tokenizers import in_known_case
from ..engine import PRECISIONS, SamplingConfig, stream
from ..service.verdicts import in_words, verdicts_on
from . import checkpoints

TEMPERATURE = 0.8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `generate`."""
    checkpoints.add_arguments(parser)
    parser.add_argument("--prompt", required=True, help="the text to continue")
    parser.add_argument("--max-new-tokens", type=int, default=200, metavar="N")
    parser.add_argument("--temperature", type=float, help=f"(default: {TEMPERATURE})")
    parser.add_argument("--top-k", type=int)
    parser.add_argument("--top-p", type=float)
    parser.add_argument("--min-p", type=float)
    parser.add_argument("--repetition-penalty", type=float, default=1.0)
    parser.add_argument("--greedy", action="store_true", help="always the likeliest token")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end when this has been written")
    parser.add_argument("--no-cache", action="store_true", help="read the whole text again for every token")
    parser.add_argument("--slide-by", type=int, metavar="N", help="that leave a full context (default: a quarter)")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32", help="of the weights (default: fp32)")


def run(options: argparse.Namespace) -> int:
    """Stream the prompt and its continuation to standard output."""
    sampling = _sampling(options)
    checkpoint = checkpoints.opened(options)
    tokenizer, context = checkpoint.tokenizer, checkpoint.config.context_length
    prompt = in_known_case(options.prompt, tokenizer)
    unknown = tokenizer.unknown_parts(prompt)
    if unknown:
        print(f"The model has never seen {', '.join(map(repr, unknown[:5]))}; read as unknown.", file=sys.stderr)
    ids = tokenizer.encode(prompt)
    if len(ids) > context:
        print(f"The prompt has {len(ids):,} tokens: only the last {context:,}, a full context, count.", file=sys.stderr)
    # no other requests share it; but a small model then uses one thread, which other work slows far less
    streamed = stream(
        checkpoint.model, tokenizer, ids, options.max_new_tokens, sampling, shared=True, precision=options.precision,
        stop=options.stop, use_cache=not options.no_cache, slide_by=options.slide_by,
    )  # fmt: skip
    written = ""
    if not options.json:
        print(tokenizer.decode(ids), end="", flush=True)
    for step, (new,) in streamed:
        if options.json:
            record = {"index": step.index, "token": new.id, "text": tokenizer.token_text(new.id)}
            record |= {"probability": new.probability, "cache_length": step.cache_length, "seconds": step.seconds}
            print(json.dumps(record, ensure_ascii=False), flush=True)
        else:
            written += new.text
            print(new.text, end="", flush=True)
    if not options.json:
        print()
        if said := in_words(verdicts_on(checkpoint, [written], tokenizer.decode(ids))):
            print(said, file=sys.stderr)
    return 0


def _sampling(options: argparse.Namespace) -> SamplingConfig:
    given = {name: getattr(options, name) for name in ("temperature", "top_k", "top_p", "min_p")}
    given = {name: value for name, value in given.items() if value is not None}
    if options.greedy and given:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ValueError(f"--greedy takes the likeliest token whatever {names} may be: leave one of the two out")
    others = {"repetition_penalty": options.repetition_penalty, "greedy": options.greedy, "seed": options.seed}
    return SamplingConfig(**{"temperature": TEMPERATURE, **given}, **others)
