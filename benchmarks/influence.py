"""Influence of training passages: rank correlation of predicted and actual effects over retrained tiny models.

Each model learns *stories* without a random part of them. A method predicts what that does to the log-probability of
words that the whole model wrote: the sum of its influences of the passages removed (the linear datamodeling score of
Park et al. 2023, "TRAK"). Actual effects are those of training again with the same seed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from playground.data import LANGUAGES, Corpus, corpus_from_language, corpus_from_text
from playground.data.baselines import IGNORE
from playground.engine import SamplingConfig, generate
from playground.influence.geometry import optimizer_step
from playground.influence.gradients import Gradient, log_probability, loss_gradient, selection_gradient
from playground.influence.passages import Passages, passages_of
from playground.influence.proof import prove, rank_correlation, retrain, sources, without
from playground.influence.ranking import Measured, Moment, measure, moments_of, rank
from playground.model import PRESETS, ModelConfig, Transformer
from playground.training import RECIPES, Snapshotted, TrainConfig, train

ODD, BEGUN = "Zed eats purple mud", "Zed eats"
"""What no other passage says, and its beginning."""
WATCHED = {"snapshots": 12, "eval_every": 0, "eval_windows": 8, "seed": 0}
PROJECTED = 4096
"""Numbers that a gradient is projected to."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--models", type=int, default=50, help="how many are trained again")
    parser.add_argument("--selections", type=int, default=16, help="words whose log-probability is predicted")
    parser.add_argument("--characters", type=int, default=20_000, help="of the training text")
    parser.add_argument("--removed", type=float, default=0.2, help="share of the passages that each model lacks")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument(
        "--planted", nargs="*", type=int, default=(1, 2, 10), help="times that an odd sentence is there"
    )
    parser.add_argument("--seeds", type=int, default=0, help="models trained a second time with another seed")


def run(options: argparse.Namespace) -> None:
    """Measure and print the tables."""
    torch.set_num_threads(1)
    print("| an odd sentence | its places in the ranking | probability | without it | control |\n|---|---|---|---|---|")
    for times in options.planted:
        print(_planted(times, options), flush=True)
    if not options.models:
        return
    corpus = corpus_from_language("stories", n_characters=options.characters, n_validation=4000)
    config = PRESETS["tiny"].replace(vocab_size=corpus.vocab_size, context_length=64, d_model=32)
    training = RECIPES["tiny"].replace(steps=options.steps, batch_size=8, **WATCHED)
    model, moments = _trained(corpus, config, training)
    passages = passages_of(corpus)
    selections = list(_selections(model, corpus, options.selections))
    before = np.array([log_probability(model, *each) for each in selections])
    print(f"{config.n_parameters:,} parameters, {len(passages)} passages, {len(selections)} selections", flush=True)
    began, predicted = time.process_time(), {}
    for name, effects in _methods(moments, corpus, training, passages).items():
        predicted[name] = np.array([effects(*each) for each in selections])  # (selections, tokens)
        print(f"{name}: {time.process_time() - began:.0f} s so far", flush=True)
    rng, actual, added = np.random.default_rng(0), [], []
    for n in range(options.models):
        gone = rng.choice(len(passages), round(options.removed * len(passages)), replace=False)
        ranges = [(int(passages.starts[i]), int(passages.ends[i])) for i in gone]
        places = sources(corpus, ranges, n)
        added.append(np.bincount(places, minlength=len(corpus.train)) - 1.0)  # how often each token is there, less one
        for seed in range(2 if n < options.seeds else 1):
            *_, again = retrain(config, training.replace(seed=seed), without(corpus, ranges, n), training.steps)
            actual.append((seed, [log_probability(again, *each) for each in selections]))
        print(f"{n + 1} of {options.models} models, {time.process_time() - began:.0f} s of the processor", flush=True)
    effects = np.array([each for seed, each in actual if seed == 0]) - before  # (models, selections)
    print("\n| method | rank correlation | standard error over selections |\n|---|---|---|")
    for name, per_token in predicted.items():
        print(_row(name, np.array(added) @ per_token.T, effects))
    if options.seeds > 2:
        other = np.array([each for seed, each in actual if seed == 1])
        print(_row(f"the same {options.seeds} models with another seed", other, effects[: options.seeds]))


def _row(name: str, predicted: np.ndarray, actual: np.ndarray) -> str:
    found = np.array([rank_correlation(p, a) for p, a in zip(predicted.T, actual.T)])
    return f"| {name} | {np.nanmean(found):.2f} | {np.nanstd(found) / np.sqrt(len(found)):.2f} |"


def _trained(corpus: Corpus, config: ModelConfig, training: TrainConfig) -> tuple[Transformer, list[Moment]]:
    """The model, and the moments of its run."""
    model, kept = Transformer(config, seed=training.seed), {}
    for event in train(model, corpus, training):
        if isinstance(event, Snapshotted):
            kept[event.step] = event.state

    def opened(step: int) -> Transformer:
        at = Transformer(config)
        at.load_state_dict(kept[step])
        return at

    return model, moments_of(model, training.steps, training, list(kept), opened)


def _planted(times: int, options: argparse.Namespace) -> str:
    """A row: an odd sentence among stories, found by the ranking, and the proof without the copies found."""
    lines = LANGUAGES["stories"].sample(options.characters // 2, seed=0).splitlines(keepends=True)
    for n in range(times):
        lines.insert(5 + (8 * len(lines) // 10) * n // times, f"{ODD}.\n")
    corpus = corpus_from_text("".join(lines), "char")
    config = PRESETS["tiny"].replace(vocab_size=corpus.vocab_size, context_length=64, d_model=32)
    training = RECIPES["tiny"].replace(steps=2 * options.steps, batch_size=16, **WATCHED)
    _, moments = _trained(corpus, config, training)
    ids, first = corpus.tokenizer.encode(ODD), len(corpus.tokenizer.encode(BEGUN))
    *_, ranked = rank(moments, corpus, training, ids, first)
    texts = [corpus.tokenizer.decode(corpus.train[slice(*each.places[0])].tolist()) for each in ranked.raising]
    found = [n for n, text in enumerate(texts) if ODD in text]
    gone = sorted(place for n in found for place in ranked.raising[n].places)
    cells = [f"{times} times", ", ".join(str(n + 1) for n in found) or "none", f"{_share(ranked.log_probability)}"]
    if gone:
        *_, trial = prove(config, training, corpus, gone, ids, first, steps=training.steps, seed=0)
        cells += [_share(trial.without), _share(trial.control)]
    return f"| {' | '.join(cells)} |"


def _share(log_probability: float) -> str:
    return f"{100 * np.exp(log_probability):.2g} %"


def _selections(model: Transformer, corpus: Corpus, count: int):
    """Words that the model wrote, after its own text: (ids up to the word's end, its first token)."""
    tokenizer, space = corpus.tokenizer, corpus.tokenizer.encode(" ")[0]
    prompt = tokenizer.encode(corpus.language.prompt)
    written = generate(model, prompt, 40 * count, SamplingConfig(temperature=0.8, seed=1))
    ids = [*prompt, *(int(step.tokens[0]) for step in written)]
    ends = [i for i in range(len(prompt) + 1, len(ids)) if ids[i] == space]
    for n in np.linspace(1, len(ends) - 1, count).astype(int):
        first, end = ends[n - 1] + 1, ends[n]
        start = max(end - 2 * model.config.context_length, 0)
        yield ids[start:end], first - start


def _methods(
    moments: list[Moment], corpus: Corpus, training: TrainConfig, passages: Passages
) -> dict[str, Callable[[list[int], int], np.ndarray]]:
    """By name: a selection → the influence of each token of the training text (tokens,)."""

    def traced(step_of: Callable[..., Gradient], at: list[Moment]) -> Callable[[list[int], int], np.ndarray]:
        def effects(ids: list[int], first: int) -> np.ndarray:
            *_, found = measure(at, corpus, training, ids, first, step_of=step_of)
            assert isinstance(found, Measured)
            return found.effects

        return effects

    rng = np.random.default_rng(1)
    return {
        f"the optimizer's geometry, {len(moments)} moments": traced(optimizer_step, moments),
        "the optimizer's geometry, last weights": traced(optimizer_step, moments[-1:]),
        f"sizes of gradients (AdamW), {len(moments)} moments": traced(_sized, moments),
        f"plain TracIn, {len(moments)} moments": traced(_plain, moments),
        "plain, last weights": traced(_plain, moments[-1:]),
        "TrackStar's variant, last weights": _trackstar(moments[-1].model(), corpus, training, passages),
        "random": lambda ids, first: _spread(rng.normal(size=len(passages)), passages, len(corpus.train)),
    }


def _plain(model: Transformer, corpus: Corpus, training: TrainConfig, gradient: Gradient) -> Gradient:
    """A step of plain descent."""
    return {name: g * training.learning_rate for name, g in gradient.items()}


def _sized(model: Transformer, corpus: Corpus, training: TrainConfig, gradient: Gradient) -> Gradient:
    """A step of AdamW, whatever the optimizer was."""
    return optimizer_step(model, corpus, training.replace(optimizer="adamw"), gradient)


def _trackstar(model: Transformer, corpus: Corpus, training: TrainConfig, passages: Passages):
    """Gradients by the size of each number, projected at random, whitened and of length 1 (Chang et al. 2024, 3)."""
    ones = {name: torch.ones_like(p) for name, p in model.named_parameters()}
    scales = _sized(model, corpus, training, ones)  # this step is linear, number by number
    n, rng = sum(p.numel() for p in model.parameters()), torch.Generator().manual_seed(0)
    bucket = torch.randint(PROJECTED, (n,), generator=rng)
    sign = torch.randint(2, (n,), generator=rng) * 2.0 - 1
    T, rows = model.config.context_length, []

    def projected(gradient) -> torch.Tensor:
        flat = torch.cat([(g * scales[name]).flatten() for name, g in gradient.items()]).cpu()
        return torch.zeros(PROJECTED).index_add_(0, bucket, flat * sign)

    for start, end in zip(passages.starts, passages.ends):
        tokens = corpus.train[max(start - 1, 0) : end]
        chunks = torch.nn.functional.pad(tokens, (0, -(len(tokens) - 1) % T), value=-1).unfold(0, T + 1, T)
        x, y = chunks[:, :-1].clamp(min=0), chunks[:, 1:].masked_fill(chunks[:, 1:] < 0, IGNORE)
        rows.append(-projected(loss_gradient(model, x, y)))
    all_ = torch.stack(rows)
    values, vectors = torch.linalg.eigh((all_.T @ all_ / len(all_)).double())
    white = (vectors / (values.clamp(min=0) + 0.01 * values.max()).sqrt() @ vectors.T).float()
    unit = torch.nn.functional.normalize(all_ @ white, dim=1)

    def effects(ids: list[int], first: int) -> np.ndarray:
        query = torch.nn.functional.normalize(projected(selection_gradient(model, ids, first)) @ white, dim=0)
        return _spread((unit @ query).numpy(), passages, len(corpus.train))

    return effects


def _spread(per_passage: np.ndarray, passages: Passages, tokens: int) -> np.ndarray:
    """The same per token."""
    found = np.zeros(tokens)
    for start, end, value in zip(passages.starts, passages.ends, per_passage):
        found[start:end] = value / (end - start)
    return found
