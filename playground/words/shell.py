"""The shell: what it says beyond a line of a table."""

from __future__ import annotations

import math
import time
from typing import Any

from ..data import Corpus
from ..data.judging import Share
from ..storage import Checkpoint
from ..storage.spaces import Deployment
from ..training import Evaluated, Sampled, SkillMeasured, TrainEvent
from ..training.states import DIVERGED, UNMASKED, State
from . import states
from .baselines import how_good, size_of_loss
from .card import shape_in_words, share_of_gpt2
from .judging import right_of
from .training import in_steps, message, settings_changed


def kept_model_line(model: dict[str, Any]) -> str:
    """One of `DataFolder.models` as a line of a table."""
    used = time.strftime("%Y-%m-%d %H:%M", time.localtime(model["used"]))
    return f"{used}  {model['bytes'] / 1e6:7.1f} MB  {model['name']}  {model['folder']}"


def deployment_lines(deployment: Deployment) -> list[str]:
    """What a deployment would do, file by file."""
    lines = [f"Would {'make' if deployment.creates else 'update'} the Space {deployment.space_id}:"]
    lines += [f"  {change.action:<7}{change.size:>10,}  {change.path}" for change in deployment.changes]
    return [*lines, *deployment_note(deployment), "Nothing was done."]


def deployment_note(deployment: Deployment) -> list[str]:
    """How much is sent, and what costs money."""
    sent = [change for change in deployment.changes if change.action != "delete"]
    same = "" if deployment.changes else "Nothing has changed. "
    note = (
        f"{same}{len(sent)} file{'s' * (len(sent) != 1)} to send, {sum(change.size for change in sent) / 1e6:.1f} MB."
    )
    if idle := deployment.sleep_seconds:
        note += f" {deployment.hardware} costs money by the minute, until it sleeps after {idle // 60} idle minutes."
    return [note]


def checkpoint_lines(checkpoint: Checkpoint, state: State) -> list[str]:
    """What a checkpoint holds, what it costs and how good it is."""
    config, history = checkpoint.config, checkpoint.history
    n = config.n_parameters
    lines = [f"{checkpoint.name}: {n:,} parameters, {share_of_gpt2(n)} of GPT-2 small"]
    for component, count in config.parameters_by_component().items():
        lines += [f"  {component:<20} {count:>12,}  {100 * count / n:5.1f} %"] if count else []
    lines.append(f"{shape_in_words(config)}; {checkpoint.tokenizer.vocab_size:,} {checkpoint.tokenizer.name}")
    lines.append(
        f"{config.flops_per_token():,} FLOPs per token, three times that in training; "
        f"{config.cache_bytes():,} bytes of cache at full context"
    )
    if history.val_loss is not None:
        at = in_steps(int(history.evaluations["step"][-1]))
        good = "" if state.kind in (UNMASKED, DIVERGED) else _standing(checkpoint)
        lines += [f"Validation loss {history.val_loss:.4f} after {at}. {good}", str(states.result(state))]
        share = [record for record in history.judged if record["of"]][-1:]
        if share and (language := checkpoint.language):
            lines.append(f"{right_of(language, Share(share[0]['right'], share[0]['of'])).capitalize()}.")
    lines += best_lines(checkpoint)
    return lines + [settings_changed(change["step"], change["settings"]) for change in history.changes]


def best_lines(checkpoint: Checkpoint) -> list[str]:
    """Where the weights of a run's best step are, if they were saved."""
    if not (best := checkpoint.best):
        return []
    return [f"Best: {best[1]:.4f} after step {best[0]:,}; --step best uses these weights."]


def _standing(checkpoint: Checkpoint) -> str:
    """The validation loss compared with the baselines, if they are known."""
    history, baselines = checkpoint.history, checkpoint.baselines
    if baselines is None:
        return ""
    loss = history.val_loss
    good = how_good(baselines, loss)
    return f"{good} {size_of_loss(baselines, loss)}" if math.isfinite(loss) else str(good)


def event_line(event: TrainEvent, corpus: Corpus) -> str:
    """What a run reports, in a line or a few."""
    if isinstance(event, Evaluated):
        return f"step {event.step:>6,}  train {event.train_loss:.4f}  validation {event.val_loss:.4f}"
    if isinstance(event, Sampled):
        return "  | " + (event.prompt + event.text).replace("\n", "\n  | ")
    if isinstance(event, SkillMeasured):
        return f"  {right_of(corpus.language, Share(event.right, event.of))}."
    return message(event)
