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
from playground.storage import save  # noqa: E402
from playground.training import RECIPES, Evaluated, Finished, History, Sampled, TrainConfig, train  # noqa: E402


@dataclass(frozen=True)
class Shipped:
    """One checkpoint: what it learns, its shape, how it is trained."""

    title: str
    corpus: Callable[[], Corpus]
    model: ModelConfig
    training: TrainConfig
    prompt: str


SHIPPED: dict[str, Shipped] = {
    "stories": Shipped(
        "Tiny stories",
        lambda: corpus_from_language("stories", n_characters=3_000_000, n_validation=80_000),
        PRESETS["small"].config,
        RECIPES["small"].replace(
            steps=2400, batch_size=24, eval_every=100, eval_windows=400, sample_every=200, sample_tokens=200
        ),
        "Mia lived by the sea.",
    ),
    "sentences": Shipped(
        "Twenty sentences",
        corpus_from_sentences,
        PRESETS["s5"].config,
        RECIPES["s5"].replace(sample_every=30, sample_tokens=7, sample_temperature=0.5),
        "the cat",
    ),
    "prose": Shipped(
        "The lighthouse",
        lambda: corpus_from_text(
            read_file(HERE.parent / "playground" / "data" / "texts" / "lighthouse.txt"), name="The lighthouse"
        ),
        PRESETS["small"].config.replace(dropout=0.1),
        RECIPES["small"].replace(steps=900, eval_every=100, sample_every=100, sample_tokens=200),
        "Mara ",
    ),
}


def make(name: str) -> None:
    """Train one checkpoint, print its progress, and write its folder beside this file."""
    shipped = SHIPPED[name]
    corpus = shipped.corpus()
    model = Transformer(shipped.model.replace(vocab_size=corpus.vocab_size), seed=1)
    config = shipped.training.replace(sample_prompt=shipped.prompt, seed=1)
    ladder = corpus.ladder(model.config.context_length, config.eval_windows)
    history = History()
    for event in train(model, corpus, config):
        history.add(event)
        if isinstance(event, Evaluated):
            print(f"{name} step {event.step}: {event.val_loss:.4f}. {ladder.in_words(event.val_loss)}", flush=True)
        elif isinstance(event, Sampled):
            print(f"    {(event.prompt + event.text)!r}", flush=True)
        elif isinstance(event, Finished):
            print(event.message, f"{event.seconds:.0f} s")
    about = {
        "corpus": corpus.name,
        "language": corpus.language.name if corpus.language else None,
        "text_sha256": corpus.sha256,
        "ladder": ladder.to_dict(),
        "training": config.to_dict(),
        "prompt": shipped.prompt,
        "recorded": True,
    }
    save(HERE / name, model, corpus.tokenizer, history, name=shipped.title, about=about, half=True)


if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in SHIPPED]
    if unknown:
        sys.exit(f"there is no checkpoint called {unknown[0]!r}; choose from {', '.join(SHIPPED)}")
    for each in sys.argv[1:] or SHIPPED:
        make(each)
