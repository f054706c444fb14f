"""Train the checkpoints that ship with the project: python checkpoints/make.py [name …]

The same seeds give the same checkpoints on the same kind of machine. Each is a recipe below; nothing else is special.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from playground.data import Corpus, corpus_from_language, corpus_from_sentences, corpus_from_text, read_file  # noqa: E402
from playground.model import PRESETS, ModelConfig, Transformer  # noqa: E402
from playground.processes import tune_process  # noqa: E402
from playground.storage import Checkpoint, write_checkpoint  # noqa: E402
from playground.storage.snapshots import save_snapshots  # noqa: E402
from playground.training import RECIPES, Evaluated, Finished, History, Sampled, Snapshotted, TrainConfig, train  # noqa: E402
from playground.training.skills import judged_in_the_end  # noqa: E402
from playground.words.baselines import how_good  # noqa: E402
from playground.words.card import model_card  # noqa: E402
from playground.words.training import message  # noqa: E402


@dataclass(frozen=True)
class Shipped:
    """One checkpoint: what it learns, its shape, how it is trained."""

    title: str
    corpus: Callable[[], Corpus]
    model: ModelConfig
    training: TrainConfig
    prompt: str
    watched: bool = False
    """Whether its snapshots ship too, to look back at."""


def _dialects() -> Corpus:
    return corpus_from_language("dialects", n_characters=6_000_000, n_validation=200_000, unit="word")


# Squared ReLU was the presets' activation when these were made.
_SMALL = PRESETS["small"].replace(activation="relu2")

# A pair with equally many active parameters: two experts of 128 and a router of 8 rows cost what 260 hidden units do.
_DIALECTS = _SMALL.replace(context_length=64, d_model=64)
_DIALECTS_TRAINING = RECIPES["small"].replace(
    steps=1500, eval_every=50, eval_windows=400, sample_every=250, sample_tokens=40, snapshots=16
)

SHIPPED: dict[str, Shipped] = {
    "dialects-dense": Shipped(
        "Dialects, dense", _dialects, _DIALECTS.replace(d_ff=260), _DIALECTS_TRAINING, "the wind"
    ),
    "dialects-moe": Shipped(
        "Dialects, 8 experts",
        _dialects,
        _DIALECTS.replace(n_experts=8, experts_per_token=2, d_expert=128, d_ff=260),
        _DIALECTS_TRAINING,
        "the wind",
    ),
    "stories": Shipped(
        "Tiny stories",
        lambda: corpus_from_language("stories", n_characters=3_000_000, n_validation=80_000),
        _SMALL,
        RECIPES["small"].replace(
            steps=2400, batch_size=24, eval_every=100, eval_windows=400, sample_every=200, sample_tokens=200
        ),
        "Mia lived by the sea.",
    ),
    "sentences": Shipped(
        "Twenty sentences",
        corpus_from_sentences,
        PRESETS["s5"],
        RECIPES["s5"].replace(sample_every=30, sample_tokens=7, sample_temperature=0.5),
        "the cat",
    ),
    "prose": Shipped(
        "The lighthouse",
        lambda: corpus_from_text(
            read_file(HERE.parent / "playground" / "data" / "texts" / "lighthouse.txt"), name="The lighthouse"
        ),
        _SMALL.replace(dropout=0.1),
        RECIPES["small"].replace(steps=900, eval_every=100, sample_every=100, sample_tokens=200),
        "Mara ",
    ),
    "induction": Shipped(
        "Copying",
        lambda: corpus_from_language("copy", n_characters=1_500_000, n_validation=20_000),
        _SMALL.replace(n_layers=2, d_model=32, n_heads=2, d_ff=32, context_length=48),
        TrainConfig(
            steps=1200,
            batch_size=32,
            optimizer="adamw",
            learning_rate=1e-3,
            eval_every=30,
            eval_windows=100,
            sample_every=150,
            sample_tokens=40,
            snapshots=40,
        ),
        "bdfh bdfh\ncage c",
        watched=True,
    ),
}


def make(name: str) -> None:
    """Train one checkpoint, print its progress, and write its folder beside this file."""
    shipped = SHIPPED[name]
    corpus = shipped.corpus()
    model = Transformer(shipped.model.replace(vocab_size=corpus.vocab_size), seed=1)
    config = shipped.training.replace(sample_prompt=shipped.prompt, seed=1)
    baselines = corpus.baselines(model.config.context_length, config.eval_windows)
    history, snapshots = History(), []
    for event in train(model, corpus, config):
        history.add(event)
        if isinstance(event, Snapshotted):
            snapshots.append((event.step, event.state))
        if isinstance(event, Evaluated):
            print(f"{name} step {event.step}: {event.val_loss:.4f}. {how_good(baselines, event.val_loss)}", flush=True)
        elif isinstance(event, Sampled):
            print(f"    {(event.prompt + event.text)!r}", flush=True)
        elif isinstance(event, Finished):
            history.add(judged_in_the_end(event, model, corpus))
            print(message(event), f"{event.seconds:.0f} s")
    about = {
        "corpus": corpus.name,
        "language": corpus.language.name if corpus.language else None,
        "text_sha256": corpus.sha256,
        "ladder": baselines.to_dict(),
        "training": config.to_dict(),
        "prompt": shipped.prompt,
        "recorded": True,
    }
    checkpoint = Checkpoint(model, corpus.tokenizer, history, shipped.title, about)
    folder = write_checkpoint(HERE / name, checkpoint, card=model_card(checkpoint), half=True)
    if shipped.watched:
        save_snapshots(folder, snapshots, tied=model.config.tie_embeddings)


if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in SHIPPED]
    if unknown:
        sys.exit(f"there is no checkpoint called {unknown[0]!r}; choose from {', '.join(SHIPPED)}")
    tune_process()
    for each in sys.argv[1:] or SHIPPED:
        make(each)
