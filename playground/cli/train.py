"""Train a new model on a text file or a synthetic language, or an existing one on another text, and save it."""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from ..model import PRESETS
from ..processes import threads_for
from ..storage import Checkpoint
from ..storage.json_files import finite
from ..storage.snapshots import drop_after, drop_best, find_snapshots, keep_best, keep_snapshot
from ..training import History, TrainEvent, train
from ..training.autosave import FILE
from ..training.proof import device_for
from ..training.skills import judged, judged_in_the_end
from ..training.states import BY_HEART, UNMASKED, state_of
from ..words import states
from ..words.corpus import overlap_warning
from ..words.shell import best_lines
from ..words.tuning import tuning_lines
from . import remote, sweep
from .checkpoints import save
from .plan import LANGUAGE_NAMES, PRESET, PlannedRun, check, fresh, resumed
from .progress import Progress, Remark, json_line, print_no_more

STOPPED = 130
"""The exit code of a run that was interrupted."""
MORE = {
    "done": " --steps N",
    "risen": " --set patience=0",
    "diverged": " --set learning_rate=R",
    "time": " --set max_seconds=none",
}
"""What a run that ended for this reason needs to continue."""
TOKENIZERS = ("char", "word", "bpe", "gpt2", "cl100k_base", "o200k_base")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `train`."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--text", metavar="FILE", help="a UTF-8 text file to learn")
    source.add_argument("--language", metavar="NAME", help=f"a synthetic language: {', '.join(LANGUAGE_NAMES)}")
    parser.add_argument("--from", dest="parent", metavar="DIR", help="train this model on --text (fine-tuning)")
    parser.add_argument("--old-text", metavar="FILE", help="with --from: measure what it forgets by this text")
    parser.add_argument("--tokenizer", choices=TOKENIZERS, default=None, help="what a token is (default: char)")
    parser.add_argument("--vocab-size", type=int, default=None, help="most tokens of a word or bpe tokenizer")
    parser.add_argument("--preset", help=f"where to start from: {', '.join(PRESETS)} (default: {PRESET})")
    parser.add_argument("--set", nargs="+", action="extend", default=[], metavar="NAME=VALUE", help="change settings")
    parser.add_argument("--steps", type=int, default=None, help="optimizer steps")
    parser.add_argument("--seed", type=int, help="of the weights, the batches and a language's text (default: 0)")
    parser.add_argument("--prompt", help="what the samples during training continue")
    parser.add_argument("--out", metavar="DIR", required=True, help="the checkpoint folder to write")
    parser.add_argument("--resume", action="store_true", help="continue the run in DIR; --steps trains longer")
    sweep.add_arguments(parser)
    remote.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Train, showing progress, and save. Interrupted, it saves what was learned and returns 130."""
    if options.seeds is not None and options.sweep is None:
        raise ValueError("--seeds is for a sweep: add --sweep, or leave it out")
    if options.on == "hf-jobs" and options.sweep is None:
        return remote.run(options, check=lambda: check(options))
    remote.check_unasked(options)
    out, interrupted = Path(options.out), False

    def stop(*_) -> None:
        nonlocal interrupted
        interrupted = True

    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, stop)
    if options.sweep is not None:
        return sweep.run(options, should_stop=lambda: interrupted)
    plan = resumed(options) if options.resume else fresh(options)
    numbers = plan.model.config.numbers_in_step(plan.config.batch_size)
    with threads_for(numbers):
        _examine(plan, "before")
        events = train(
            plan.model, plan.corpus, plan.config, folder=out, resume=plan.resume, should_stop=lambda: interrupted
        )
        history = _watch(events, plan, out, as_json=options.json)
        reason = history.finished["reason"]
        if plan.exam and reason != "stopped":
            _examine(plan, "after")
            made = Checkpoint(plan.model, plan.corpus.tokenizer, history, out.name, plan.about)
            save(out, made)
            if options.json:
                print(json.dumps(finite({"event": "tuned", **plan.about["tuning"]})))
            else:
                print("\n".join(tuning_lines(plan.about["tuning"])))
    if not options.json:
        kept = find_snapshots(out, plan.model.config)
        for line in best_lines(Checkpoint(plan.model, plan.corpus.tokenizer, history, snapshots=kept)):
            print(line)
        again = f"; --resume --out {out}{MORE.get(reason, '')} continues" if (out / FILE).exists() else ""
        print(f"Saved to {out}{again}. Talk to it: python -m playground generate {out} --prompt …")
    return STOPPED if reason == "stopped" else 0


def _examine(plan: PlannedRun, when: str) -> None:
    """Note a fine-tuned model's scores "before" or "after" training; "before" only once, however often it continues."""
    found = plan.about.setdefault("tuning", {}) if plan.exam else {"before": None}
    if when == "after" or when not in found:
        model = plan.model.to(device_for(plan.config, plan.model.config)[0])
        found[when] = asdict(plan.exam.taken(model, plan.corpus.tokenizer))
        plan.model.to("cpu")


def _watch(events: Iterator[TrainEvent], plan: PlannedRun, out: Path, *, as_json: bool) -> History:
    """Show the events, save what is learned while this run owns the folder, and return the whole history."""
    model, corpus, about, history = plan.model, plan.corpus, plan.about, plan.history

    def keep() -> None:
        save(out, Checkpoint(model, corpus.tokenizer, history, out.name, about))

    if not plan.resume:
        keep()
    baselines = corpus.baselines(model.config.context_length, plan.config.eval_windows)
    about["ladder"] = baselines.to_dict()
    show = json_line if as_json else Progress(plan.config.steps, corpus, baselines).show

    def tell(event: TrainEvent) -> None:
        try:
            show(event)
        except BrokenPipeError:  # the reader has gone; the run continues in silence
            print_no_more()

    for sentence in (overlap_warning(corpus.overlap()), "" if model.config.causal else states.NO_MASK):
        if sentence:
            tell(Remark(history.last_step, 0.0, sentence))
    state = None
    for event in judged(events, model, corpus):
        history.add(event)
        if event.event == "finished" and event.step and event.reason not in ("stopped", "diverged"):
            last = judged_in_the_end(event, model, corpus)
            history.add(last)
            if last.of:
                tell(last)
        if event.event in ("evaluated", "finished"):
            before, state = state, state_of(history, causal=model.config.causal, baselines=baselines)
            worse = states.TONES[state.kind] in ("warning", "error") and (before is None or state.kind != before.kind)
            known = (UNMASKED,) if event.event == "finished" else (UNMASKED, BY_HEART)  # said before the first step
            if state.kind not in known and (worse or event.event == "finished"):
                tell(Remark(event.step, event.seconds, str(states.result(state))))
        tell(event)
        if event.event == "evaluated" and history.best and history.best[0] == event.step:
            drop_best(out)
        elif event.event == "best":
            keep_best(out, event.best_step, event.state, tied=model.config.tie_embeddings)
        if event.event == "started":  # delete moments after this step, which the run will replace
            drop_after(out, event.step)
        elif event.event == "snapshotted":
            keep_snapshot(out, event.step, event.state, tied=model.config.tie_embeddings)
        elif event.event in ("saved", "finished"):  # the present curves and weights, so that a kill loses little
            keep()
    return history
