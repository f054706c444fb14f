"""What the two processes of test_distributed.py do: `python -m tests.training.several FOLDER PORT` records it.

The same `runs()` trained by one process are what they have to agree with.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch

from playground.data import Corpus, corpus_from_sentences, corpus_from_text
from playground.model import ModelConfig, Transformer
from playground.training import Evaluated, LoadMeasured, Stepped, TrainConfig, train, workers
from playground.training.distributed import ALONE, Alone

STREAM = corpus_from_text("a stitch in time saves nine, and nine in time make ten. " * 60)
DOCUMENTS = corpus_from_sentences(("the cat sat", "a dog", "the cat saw a dog and the dog ran", "it ran") * 6)
TINY = ModelConfig(STREAM.vocab_size, context_length=16, n_layers=2, d_model=16, n_heads=2)
TRAINING = TrainConfig(
    steps=6, batch_size=5, eval_every=3, eval_windows=7, warmup_steps=2, precision="fp32", optimizer="adamw"
)
EXPERTS = {"n_experts": 4, "experts_per_token": 2}


def runs() -> dict[str, tuple[Corpus, ModelConfig, TrainConfig]]:
    """Name → text, model and settings. A batch of 5 never splits evenly."""
    strong = {"balance_weight": 3.0, "router_z_weight": 0.5}  # so that a wrong balance loss shows in the losses
    return {
        "adamw": (STREAM, TINY, TRAINING),
        "muon": (STREAM, TINY, TRAINING.replace(optimizer="muon")),
        "padded": (DOCUMENTS, TINY.replace(vocab_size=DOCUMENTS.vocab_size), TRAINING),
        "accumulated": (STREAM, TINY, TRAINING.replace(accumulation=3)),
        "padded, accumulated": (DOCUMENTS, TINY.replace(vocab_size=DOCUMENTS.vocab_size),
                                TRAINING.replace(accumulation=3)),
        "experts": (STREAM, TINY.replace(**EXPERTS, balance="switch", **strong), TRAINING),
        "padded experts": (DOCUMENTS, TINY.replace(vocab_size=DOCUMENTS.vocab_size, **EXPERTS, balance="switch",
                                                   **strong), TRAINING.replace(accumulation=2)),
        "balanced by bias": (STREAM, TINY.replace(**EXPERTS, balance="bias"), TRAINING.replace(accumulation=2)),
        "dropout": (STREAM, TINY.replace(dropout=0.3), TRAINING),
        "more processes than windows": (STREAM, TINY, TRAINING.replace(eval_windows=1)),
    }  # fmt: skip


def record(together: Alone = ALONE) -> dict[str, dict]:
    """Run → everything it said that does not depend on the clock, and a sum over its weights at the end."""
    records = {}
    for name, (corpus, model_config, config) in runs().items():
        model = Transformer(model_config, seed=1)
        facts: dict[str, list] = {"losses": [], "norms": [], "evaluations": [], "load": []}
        for event in train(model, corpus, config, workers=together):
            if isinstance(event, Stepped):
                facts["losses"].append(event.loss)
                facts["norms"].append(event.gradient_norm)
            elif isinstance(event, Evaluated):
                facts["evaluations"].append((event.train_loss, event.val_loss))
            elif isinstance(event, LoadMeasured):
                facts["load"].append(event.load)
        facts["weights"] = [float(t.double().square().sum()) for t in model.state_dict().values()]
        records[name] = facts
    return records


def refused(together: Alone) -> list[str]:
    """What the processes say when they do not fit together."""
    said = []
    other_text = dataclasses.replace(STREAM, sha256=f"{together.rank}")
    for corpus, config in ((other_text, TRAINING), (STREAM, TRAINING.replace(batch_size=1))):
        try:
            list(train(Transformer(TINY), corpus, config, workers=together))
        except ValueError as problem:
            said.append(str(problem))
    return said


def hung(folder: Path, together: Alone) -> list:
    """How the run of the first process ends when the second has joined and then does nothing."""
    end = []
    if together.first:
        finished = list(train(Transformer(TINY), STREAM, TRAINING, workers=together))[-1]
        end = [finished.reason, finished.processes, finished.step]
        (folder / "over").touch()
    wait_for(folder / "over")
    return end


def wait_for(file: Path) -> None:
    """Until the other process has made it."""
    while not file.exists():
        time.sleep(0.02)


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, other_port = Path(sys.argv[1]), sys.argv[2]
    with workers("cpu") as together:
        outcome = {"records": record(together), "refused": refused(together)}
    (folder / f"{together.rank} is here").touch()
    wait_for(folder / f"{1 - together.rank} is here")
    os.environ["MASTER_PORT"] = other_port
    with workers("cpu", timeout=timedelta(seconds=2)) as together:
        outcome["hung"] = hung(folder, together)
    (folder / f"{together.rank}.json").write_text(json.dumps(outcome))
