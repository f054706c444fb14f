"""The baselines, and how good the samples are: HTML from a RunView."""

from __future__ import annotations

import html
import math

from ....data import LANGUAGES
from ....data.baselines import NOTHING_LEFT
from ....data.judging import Share
from ....service.verdicts import Verdict, verdict
from ....service.views import RunView
from ....training.skills import LONGEST
from ....words.baselines import Baseline, each_baseline, how_good, size_of_loss, slips_of, title

FAULT = 'class="fault"'
"""The tag for an underlined word."""
LINES = 8
"""How many lines of a baseline's text are shown; all of it is judged."""
MOSTLY = 0.9
"""From this share of right units on, a text no longer seems to contradict a nearly best loss."""
LOSS = (
    "The loss says how surprised the model is by the next {unit}, on average. Perplexity says the same as a number "
    "of choices: perplexity 2 is like choosing between two equally likely {unit}s. Perplexity is e^loss: a loss of "
    "0.69 means 2, {example}. The unit of the loss is the nat, 1.44 bits. Bits per character compare models with "
    "different tokens."
)


def panel(view: RunView) -> str:
    """The baselines, each with what it knows and writes, and an explanation of loss."""
    if view.baselines is None:
        return ""
    baselines = view.baselines
    rungs = "".join(_rung(view, rung) for rung in each_baseline(baselines))
    example = f"{baselines.uniform:.2f} means {math.exp(baselines.uniform):,.0f}, the whole vocabulary"
    explained = LOSS.format(unit=baselines.unit, example=example)
    return (
        f'<div class="rungs" role="group" aria-label="Baselines"><p class="quiet-line">'
        f"Tap one to see what it knows and how it writes.</p>{rungs}"
        f'<details name="rungs"><summary>What is a loss?</summary><p>{html.escape(explained)}</p></details></div>'
    )


def _rung(view: RunView, rung: Baseline) -> str:
    name, sentence = html.escape(rung.name, quote=True), html.escape(rung.sentence, quote=True)
    found = judged(view, rung.text, "\n")
    few = "\n".join(rung.text.split("\n")[:LINES])
    sample = f'<p class="sample">{marked(few, found)}</p>{verdict_line(found)}' if rung.text else ""
    return (
        f'<details name="rungs" data-rung="{name}"><summary title="{sentence}"><b>{title(rung.name)}</b> '
        f"{rung.loss:.2f}</summary><p>{sentence}</p>{sample}</details>"
    )


def standing_line(view: RunView) -> str:
    """How far the model is from the best possible, and what it has learned; empty if unknown."""
    value = view.of_model.val_loss
    unmasked = view.config is not None and not view.config.causal
    if view.baselines is None or value is None or unmasked or not math.isfinite(value):
        return ""
    good = how_good(view.baselines, value)
    words = html.escape(f"{good.number} {good.details}".strip())
    return f'<p class="standing">{words} <span class="quiet">{size_of_loss(view.baselines, value)}</span></p>'


def shares(view: RunView) -> dict[int, Share]:
    """By step, the share right of what was written for judging; if judged twice, the more thorough one."""
    found: dict[int, Share] = {}
    for record in view.history.judged if view.language in LANGUAGES else ():
        if record["of"] and record["of"] >= found.get(record["step"], Share(0, 0)).of:
            found[record["step"]] = Share(record["right"], record["of"])
    return found


def is_judging(view: RunView) -> bool:
    """Whether the finished model is still writing what it will be judged by."""
    grammar = view.language in LANGUAGES and view.tokenizer is not None and view.tokenizer.kind in LONGEST
    return grammar and view.learned and view.busy


def nearly_best(view: RunView) -> bool:
    """Whether the loss is hardly above the best possible."""
    value, floor = view.of_model.val_loss, view.baselines.floor if view.baselines else None
    return value is not None and floor is not None and abs(value - floor) < NOTHING_LEFT


def why_faulty(view: RunView) -> str:
    """Why a model close to the best possible loss still makes many mistakes; empty for any other model."""
    found = [*shares(view).values()]
    if not found or not nearly_best(view) or found[-1].right >= MOSTLY * found[-1].of:
        return ""
    return slips_of(view.baselines.unit, LANGUAGES[view.language].units[0])


def judged(view: RunView, text: str, begun: str) -> Verdict | None:
    """The verdict on a text that this run's model wrote."""
    return verdict(text, begun, language=view.language, tokenizer=view.tokenizer, learned=view.learned_text)


def marked(text: str, found: Verdict | None) -> str:
    """The text as HTML, its wrong words underlined, each with its reason."""
    parts, done = [], 0
    for start, end, why in found.marks if found else ():
        if start < done or end <= start or start >= len(text):
            continue
        parts.append(html.escape(text[done:start]))
        wrong = html.escape(text[start:end]) if text[start:end].strip() else "⏎"
        parts.append(f'<mark {FAULT} title="{html.escape(why, quote=True)}">{wrong}</mark>')
        parts.append(text[start:end] if wrong == "⏎" else "")
        done = end
    return "".join(parts) + html.escape(text[done:])


def verdict_line(found: Verdict | None) -> str:
    """The verdict as a line under its text; empty without one."""
    return f'<p class="verdict">{html.escape(found.words)}</p>' if found else ""
