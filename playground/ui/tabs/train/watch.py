"""A run in pictures: from a RunView to the contents of the tab's charts, cards and tables. No wiring here."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ....data import visible
from ....figures import candidates, loss, maps
from ....model import Transformer
from ....service.views import RunView
from ....studies.finetune import Measured
from ....training.states import OVERFITTING
from ....words import pictures
from ....words.baselines import each_baseline
from ....words.card import share_of_gpt2
from ....words.training import in_steps
from ....words.tuning import ORIGINS
from ... import theme
from ...slips import slips
from . import speaking

CANDIDATES = 8
WORDS = 40
SAMPLES = 12
BEGUN = 20
"""A sample's last line is left out if it has fewer characters than this: it has hardly begun."""


# ---- the curve -------------------------------------------------------------------------------------------------------


def curve(view: RunView, beside: Sequence[RunView] = ()) -> tuple[dict[str, Any], str]:
    """A run's loss figure, with other runs, and its sentence."""
    rungs = view.baselines.losses() if view.baselines else []
    figure = loss.loss_curve(
        as_run(view),
        rungs,
        [as_run(other) for other in beside],
        planned_steps=max(each.planned_steps or 0 for each in (view, *beside)) or None,
        log_y=bool(rungs) and view.baselines.low_floor,
        sayings={rung.name: rung.sentence for rung in each_baseline(view.baselines)} if rungs else None,
    )
    figure["layout"]["uirevision"] += f" {view.id}"
    contexts = {each.config.context_length for each in (view, *beside) if each.config}
    apart = " These runs see contexts of different lengths, so their losses cannot be compared directly."
    return figure, pictures.loss_words(view.of_model.evaluations, view.baselines) + apart * (len(contexts) > 1)


def as_run(view: RunView) -> loss.Run:
    """The run's curves, as figures take them."""
    history, last = view.history, next(reversed(view.history.evaluations["step"]), 0)
    return loss.Run(
        view.name,
        history.steps,
        history.evaluations,
        kind="moe" if view.config and view.config.n_experts else "dense",
        best=history.best if history.best and not view.active and history.best[0] < last else None,
        recorded=view.from_before,
    )


# ---- cards and sentences ---------------------------------------------------------------------------------------------


def cards(view: RunView) -> list[tuple[str, str, str]]:
    """Cards (title, value, note) with what the headline and the curve leave out."""
    history, cards = view.history, []
    if view.active and view.latest is not None:
        recent = history.steps["loss"][-10:]
        cards.append(("Loss now", loss_text(sum(recent) / len(recent)), "mean of the last batches"))
    at = view.of_model.evaluations
    cards.append(("Training loss", loss_text(at["train_loss"][-1]), f"at step {at['step'][-1]:,.0f}"))
    if view.latest is not None:
        note = f"tokens per second over the last steps ({view.device})"
        cards.append(("Speed", f"{view.latest.tokens_per_second:,.0f}", note))
    seconds = seconds_of(view)
    if seconds and not view.active:
        steps = in_steps(history.last_step)
        cards.append(("Time", theme.duration(seconds), f"{steps}, evaluations and samples included"))
    if view.config is not None:
        n = view.config.n_parameters
        cards.append(("Parameters", f"{n:,}", f"{share_of_gpt2(n)} of GPT-2 small"))
    return cards


def seconds_of(view: RunView) -> float:
    """How long the run has trained; 0 if its record does not say."""
    seconds = view.history.steps["seconds"]
    return seconds[-1] if seconds else 0.0


def loss_text(value: float) -> str:
    """A loss to four decimals, or the words for a loss that is not a number."""
    return f"{value:.4f}" if math.isfinite(value) else "not a number"


def resume_label(view: RunView) -> str:
    """The label of the button that continues a run; empty if there is no button, as where more steps make it worse."""
    if not view.can_resume:
        return ""
    if (view.history.finished or {}).get("reason") not in ("done", "risen"):
        return "Resume"
    return "" if view.standing.kind == OVERFITTING else "Train longer"


# ---- samples ---------------------------------------------------------------------------------------------------------


def sample(view: RunView) -> str:
    """The last sample, and its step if that is not the model's; none of an untrained model."""
    written = view.of_model.samples
    if not written or not written[-1]["step"]:
        every = view.active and view.settings.get("sample_every")
        return theme.quiet(f"First sample at step {min(every, view.planned_steps or every):,}.") if every else ""
    last, step = written[-1], view.history.last_step if view.used is None else view.used
    earlier = not view.active and last["step"] != step
    prompt, text = str(last["prompt"]), str(last["text"])
    whole, _, begun = text.rpartition("\n")
    text = whole if whole.strip() and len(begun) < BEGUN else text
    found = speaking.judged(view, text, prompt)
    marked = speaking.marked(text, found)
    shown = f'<p class="sample last" dir="auto"><span class="prompt">{html.escape(prompt)}</span>{marked}</p>'
    when = theme.quiet(f"At step {int(last['step']):,} it wrote:") if earlier else ""
    return when + shown + (theme.quiet(found.legend) if speaking.FAULT in marked else "")


def samples(view: RunView) -> str:
    """The samples along the way, the newest first."""
    found = view.history.samples[-SAMPLES:][::-1]
    if not found:
        return theme.notice("The first sample comes in a moment." if view.active else "This run kept no samples.")
    rows = []
    for sample in found:
        prompt, text = str(sample["prompt"]), str(sample["text"])
        found = speaking.judged(view, text, prompt)
        rows.append(
            f'<li class="sample-row"><span class="sample-step">step {int(sample["step"]):,}</span>'
            f'<p class="sample" dir="auto"><span class="prompt">{html.escape(prompt)}</span>'
            f"{speaking.marked(text, found)}</p>"
            f"{speaking.verdict_line(found)}</li>"
        )
    warm = "" if view.sample_temperature is None else f"Written at temperature {view.sample_temperature:g}."
    marks = found.legend if speaking.FAULT in "".join(rows) else ""
    said = f"{warm} {marks}".strip()
    return f'{theme.quiet(said) if said else ""}<ol class="samples" tabindex="0">{"".join(rows)}</ol>'


def tuned(view: RunView) -> str:
    """Each prompt continued before and after further training, folded; empty for a model that was not trained so."""
    if not view.tuning:
        return ""
    before, after = (Measured.from_dict(view.tuning[when]) for when in ("before", "after"))
    prompts, origins = (given or [0] * len(before.samples) for given in (before.prompts, after.origins))
    rows = [
        (ORIGINS.get(origin, ""), _continued(one, prompt), _continued(other, prompt))
        for one, other, prompt, origin in zip(before.samples, after.samples, prompts, origins)
    ]
    head = ("Prompt from", theme.Cell("Before", kind="words"), theme.Cell("After", kind="words"))
    shown = theme.table(head, rows)
    return f'<details id="tuned"><summary>The same prompts, before and after</summary>{shown}</details>'


def _continued(text: str, prompt: int) -> theme.Cell:
    """A text that begins with a prompt of this many characters."""
    given, written = html.escape(text[:prompt]), html.escape(text[prompt:])
    shown = f'<p class="sample" dir="auto"><span class="prompt">{given}</span>{written}</p>'
    return theme.Cell(html=shown, kind="words")


# ---- predictions -----------------------------------------------------------------------------------------------------


def predictions(view: RunView) -> tuple[dict[str, Any] | None, str]:
    """The likeliest next tokens after the prompt, before training and now; none of a model that knows nothing."""
    if view.now is None or view.tokenizer is None:
        return None, ""
    same = view.before is not None and torch.equal(view.before, view.now)
    losses = view.history.evaluations["val_loss"]
    if same and (not losses or losses[0] > math.log(len(view.now))):
        return None, pictures.KNOWS_NOTHING if losses else ""
    untrained = view.before is None or (view.active and same)
    likeliest = view.now.topk(min(CANDIDATES, len(view.now))).indices.tolist()
    labels = [token_label(view.tokenizer, token) for token in likeliest]
    now = [view.now[token].item() for token in likeliest]
    before = None if untrained else [view.before[token].item() for token in likeliest]
    step = view.history.samples[-1]["step"] if view.history.samples else 0
    of_step = step if view.active else view.used
    names = ("before training", "after training" if of_step is None else f"at step {of_step:,}")
    when = "before training" if view.active and not step else "now"
    return (
        candidates.next_tokens(labels, now, before, names=names),
        pictures.expected(labels, now, when=("", names[1] if before else when)),
    )


def token_label(tokenizer, token: int) -> str:
    """A token's visible text; ids without a token (in a model with a larger vocabulary) are shown as numbers."""
    return visible(tokenizer.token_text(token)) if token < tokenizer.vocab_size else f"#{token}"


# ---- gradients and words ---------------------------------------------------------------------------------------------


def gradient_chart(view: RunView) -> tuple[dict[str, Any] | None, str]:
    """Heat map of gradient norms, one row per part of the model, one column per step; and its summary."""
    if not view.history.gradients:
        return None, ""
    found = maps.gradient_table(view.history.gradients)
    return maps.gradient_map(*found), pictures.gradients_words(*found)


def similarity_chart(model: Transformer | None, tokenizer) -> tuple[dict[str, Any] | None, str]:
    """Cosine similarity of word embeddings, for models that read words."""
    if model is None or tokenizer is None or tokenizer.kind != "word":
        return None, ""
    every = [i for i in range(tokenizer.vocab_size) if tokenizer.token_text(i).isalpha()]
    words = every[:WORDS]
    if len(words) < 3:
        return None, ""
    vectors = model.embedding.weight.detach()[words].float().numpy()
    similarity = maps.cosine_similarity(vectors)
    order = maps.similarity_order(similarity)
    ordered = np.asarray(similarity)[np.ix_(order, order)]
    names = [tokenizer.token_text(words[i]) for i in order]
    return maps.similarity_map(ordered, names), pictures.similar_words(ordered, names, part=len(every) > WORDS)


def similarity_note(view: RunView) -> str:
    """The question about the map of word vectors; empty for a model of characters or pieces, which has no map."""
    if view.tokenizer is None or view.tokenizer.kind != "word":
        return ""
    return theme.quiet("Cosine similarity of word vectors: do words with similar uses end up similar?") + slips("alike")
