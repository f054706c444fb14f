"""How a run looks in a shell: a line that updates itself on a terminal, a line per evaluation elsewhere, or JSON."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import ClassVar

from ..data import Baselines, Corpus
from ..service.verdicts import verdict
from ..storage.json_files import finite
from ..training import TrainEvent
from ..words.baselines import title
from ..words.shell import event_line
from ..words.training import as_dict


@dataclass(frozen=True)
class Remark(TrainEvent):
    """The shell's own sentence among a run's events."""

    event: ClassVar[str] = "noticed"
    message: str


def json_line(event: TrainEvent) -> None:
    """Print an event for programs."""
    print(json.dumps(finite(as_dict(event))), flush=True)


def print_no_more() -> None:
    """Discard all further output, and what is still buffered."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Progress:
    """Prints events for people."""

    def __init__(self, steps: int, corpus: Corpus, baselines: Baselines):
        self.steps, self.corpus, self.live = steps, corpus, sys.stderr.isatty()
        known = ", ".join(f"{title(name)} {loss:.4f}" for name, loss in baselines.losses())
        print(
            f"{corpus.name}: {len(corpus.train):,} training tokens, {corpus.vocab_size:,} different. Baselines: "
            f"{known}."
        )

    def show(self, event: TrainEvent) -> None:
        """Print what there is to say about the event."""
        if event.event == "started":
            print(f"{event.n_parameters:,} parameters on {event.device} in {event.precision}.")
        elif event.event == "stepped" and self.live:
            done = int(30 * event.step / self.steps)
            bar = "█" * done + "░" * (30 - done)
            line = (
                f"\r{bar} {event.step:,}/{self.steps:,}  loss {event.loss:.4f}  "
                f"{event.tokens_per_second:,.0f} tokens/s  {event.time_left:.0f} s left "
            )
            print(line, end="", file=sys.stderr, flush=True)
        elif event.event in ("evaluated", "judged", "sampled", "noticed", "changed", "finished"):
            if self.live:
                print("\r\033[K", end="", file=sys.stderr, flush=True)
            print(self._words(event), flush=True)

    def _words(self, event: TrainEvent) -> str:
        if isinstance(event, Remark):
            return event.message
        corpus, words = self.corpus, event_line(event, self.corpus)
        if event.event == "sampled":
            name, learned = (corpus.language.name, None) if corpus.language else ("", corpus.learned())
            found = verdict(event.text, event.prompt, language=name, tokenizer=corpus.tokenizer, learned=learned)
            words += f"\n  {found.words}" if found else ""
        return words
