"""Facts of a run: its losses and baselines, and what its model writes after the lesson's prompt."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from ..engine import SamplingConfig, generate
from ..kept import Kept
from ..service.views import RunView
from ..storage import Checkpoint
from ..words.baselines import title
from .scene import NotYet, Scene, Value

SAID = 48
"""Most tokens in an answer."""

_said = Kept(entries=300, megabytes=4)


def measured(read: Callable[[RunView, Mapping[str, float]], Value]) -> Callable[[Scene, str], Value]:
    """A number about a run, from its view and its last evaluation. Raises NotYet before the first evaluation."""

    def find(scene: Scene, run: str) -> Value:
        view = scene.run(run)[0]
        last = {column: values[-1] for column, values in view.history.evaluations.items() if values}
        if not last:
            raise NotYet("Nothing is measured yet. Wait for the first evaluation.")
        return read(view, last)

    return find


def baseline(name: str) -> Callable[[Scene, str], float]:
    """The loss of a baseline on the run's text. Raises NotYet if it is not measured, or unknown."""

    def find(scene: Scene, run: str) -> float:
        found = scene.run(run)[0].baselines
        if found is None:
            raise NotYet("The baselines are not measured yet. Wait a moment.")
        if (loss := getattr(found, name)) is None:
            raise NotYet(f"The {title(name)} loss on this text is unknown.")
        return loss

    return find


_loss = measured(lambda view, last: last["val_loss"])


def _right(scene: Scene, run: str) -> float:
    """Percent of the run's last text that follows the grammar."""
    judged = [record for record in scene.run(run)[0].history.judged if record["of"]]
    if not judged:
        raise NotYet("Its samples are not checked yet. Wait a moment.")
    return 100 * judged[-1]["right"] / judged[-1]["of"]


# ---- what its model writes -------------------------------------------------------------------------------------------


def _writer(scene: Scene, run: str) -> tuple[Checkpoint, str]:
    """The run's model, and the prompt to continue."""
    of_run, checkpoint = scene.run(run)
    if checkpoint is None:
        raise NotYet("Wait until the model is trained.")
    return checkpoint, scene.lesson_prompt or of_run.prompt


def answer(scene: Scene, run: str) -> str:
    """What the run's model writes after the prompt, greedily, up to the end of its sentence."""
    checkpoint, prompt = _writer(scene, run)
    ids = checkpoint.tokenizer.encode(prompt)[-checkpoint.config.context_length :]
    if not ids:
        raise NotYet("The prompt is empty.")

    def write() -> str:
        steps = generate(checkpoint.model, ids, SAID, SamplingConfig(greedy=True))
        text = checkpoint.tokenizer.decode([step.tokens[0] for step in steps])
        return re.split(r"(?<=[.!?])\s|\n", text.strip() + "\n", maxsplit=1)[0].strip()

    return _said.get((prompt, "greedy"), write, owner=checkpoint.model)


def word(scene: Scene, run: str) -> str:
    """The first word of `answer`."""
    found = re.search(r"\w+", answer(scene, run))
    return found[0].lower() if found else "nothing"


def sure(scene: Scene, run: str) -> float:
    """Percent of tries, by the model's own probabilities, that would begin with this word."""
    begins, (checkpoint, prompt) = word(scene, run), _writer(scene, run)

    def measure() -> float:
        share, text = 1.0, ""
        for step in generate(checkpoint.model, checkpoint.tokenizer.encode(prompt), SAID, SamplingConfig(greedy=True)):
            share *= step.model_probability[0]
            text += checkpoint.tokenizer.token_text(step.tokens[0])
            if begins in text.lower():
                break
        return 100 * share

    return _said.get((prompt, "sure"), measure, owner=checkpoint.model)


RUN_FACTS: dict[str, Callable[[Scene, str], Value]] = {
    "loss": _loss,
    "training-loss": measured(lambda view, last: last["train_loss"]),
    "best-step": measured(lambda view, last: view.history.best[0]),
    "steps": measured(lambda view, last: view.history.last_step),
    "risen": measured(lambda view, last: last["val_loss"] - view.history.best[1]),
    "apart": measured(lambda view, last: last["val_loss"] - last["train_loss"]),
    **{name: baseline(name) for name in ("uniform", "unigram", "bigram", "ngram", "floor")},
    "gap": lambda scene, run: _loss(scene, run) - baseline("floor")(scene, run),
    "perplexity": measured(lambda view, last: math.exp(min(last["val_loss"], 100.0))),
    "tokens": lambda scene, run: round(math.exp(baseline("uniform")(scene, run))),
    "right": _right,
    "answer": answer,
    "word": word,
    "sure": sure,
    "name": lambda scene, run: scene.run(run)[0].name,
}
"""The facts, by the names that lesson files use."""
