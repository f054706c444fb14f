"""What the ladder says, and what the samples are worth: HTML from a RunView."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ....data import LANGUAGES, Baselines, Tokenizer
from ....data.baselines import NOTHING_LEFT
from ....data.judging import Share, judge
from ....figures import skill
from ....service.verdicts import Verdict, verdict
from ....service.views import RunView
from ....training.skills import TEMPERATURE
from ....words.baselines import Baseline, each_baseline, how_good, size_of_loss
from ....words.excess_loss import excess_clauses

FAULT = 'class="fault"'
"""What marks a word that is underlined."""
LINES = 8
"""Of a guesser's text, so many lines are shown; all of it is judged."""
LONG = 30
"""Tokens of a unit from which on a loss that looks small may leave most units wrong."""
AS_WRITTEN = f"at temperature {TEMPERATURE:g} after a line break"
"""How the units are written that are judged along the run, unlike the samples."""
NATS = (
    "A loss says how surprised the model is by the next {unit}, on average. Its unit is the nat: a loss of L means as "
    "unsure as one who has to choose among e^L equally likely {unit}s. A loss of 0 is a choice of one, 0.69 of two, "
    "{example}. A bit is 0.69 nats. Counted in bits per character, models with different tokens can be compared, "
    "except where some words of the text are unknown to one that reads words."
)


def panel(view: RunView | None) -> str:
    """The rungs, each to be opened for what its guesser knows and writes, and what a nat is."""
    if view is None or view.baselines is None:
        return ""
    baselines = view.baselines
    rungs = "".join(_rung(view, rung) for rung in each_baseline(baselines))
    example = f"{baselines.uniform:.2f} of the vocabulary's {math.exp(baselines.uniform):,.0f}"
    explained = NATS.format(unit=baselines.unit, example=example)
    return (
        f'<div class="rungs" role="group" aria-label="Baselines"><p class="quiet-line">'
        f"The dashed lines are baselines. Tap one to see what it knows and how it writes.</p>{rungs}"
        f'<details name="rungs"><summary>What is a nat?</summary><p>{html.escape(explained)}</p></details></div>'
    )


def _rung(view: RunView, rung: Baseline) -> str:
    name, sentence = html.escape(rung.name, quote=True), html.escape(rung.sentence, quote=True)
    found = judged(view, rung.text, "\n")
    few = "\n".join(rung.text.split("\n")[:LINES])
    sample = f'<p class="sample">{marked(few, found)}</p>{verdict_line(found)}' if rung.text else ""
    return (
        f'<details name="rungs" data-rung="{name}"><summary title="{sentence}"><b>{name}</b> {rung.loss:.2f}</summary>'
        f"<p>{sentence}</p>{sample}</details>"
    )


def standing_line(view: RunView) -> str:
    """Which rungs were passed and what is left, as a line; empty where that is not known."""
    history = view.of_model
    value = history.val_loss
    if view.baselines is None or value is None or (view.config is not None and not view.config.causal):
        return ""
    told = next((record for record in reversed(history.judged) if record["left"]), None)
    clauses, at = (excess_clauses(told["left"]), told["step"]) if told else ("", 0)
    if told and at != history.evaluations["step"][-1]:
        clauses = f"at step {at:,}, {clauses}"
    said = how_good(view.baselines, value, clauses)
    if view.active or view.used is not None:  # the run has come further
        said = f"At step {history.evaluations['step'][-1]:,}: {said[0].lower()}{said[1:]}"
    words = emphasised(said)
    if math.isfinite(value):
        if view.baselines.floor is not None:
            words += html.escape(_too_short(view))
        words += f' <span class="quiet">{size_of_loss(view.baselines, value)}</span>'
    return f'<p class="standing">{words}</p>'


def gap_words(gap: float, baselines: Baselines) -> str:
    """How good a gap to the floor is, in a few words."""
    learned = baselines.learned(baselines.floor + gap)
    if not math.isfinite(gap):
        return "the loss is not a number"
    if gap < -NOTHING_LEFT:
        return "too few validation tokens to judge by, or a leak"
    if gap < NOTHING_LEFT:
        return "nearly as good as knowing every rule"
    return f"{100 * learned:.1f} % of the way from bigram to floor" if learned else "not yet below the bigram"


def shares(view: RunView) -> dict[int, Share]:
    """By step, how much of what was written there to be judged is right; of a step judged twice, the more thorough."""
    found: dict[int, Share] = {}
    for record in view.history.judged if view.language in LANGUAGES else ():
        if record["of"] and record["of"] >= found.get(record["step"], Share(0, 0)).of:
            found[record["step"]] = Share(record["right"], record["of"])
    return found


def skill_card(view: RunView) -> tuple[str, str, str] | None:
    """The last share right, as a card; None without one."""
    if not (found := shares(view)):
        return None
    (step, share), language = [*found.items()][-1], LANGUAGES[view.language]
    low, high = share.interval
    name = f"{language.units[1].capitalize()} right" if language.right == "right" else language.units[1].capitalize()
    note = f"{language.right}, {AS_WRITTEN}, at step {step:,}; 95 % interval {100 * low:.0f} to {100 * high:.0f} %"
    return name, f"{share.right} of {share.of}", note.removeprefix("right, ")


def skill_chart(view: RunView | None) -> tuple[dict[str, Any] | None, str]:
    """The share right along the run, and its sentence; nothing where no grammar judges."""
    if view is None or not (found := shares(view)):
        return None, ""
    steps, judged_there = list(found), list(found.values())
    intervals = [share.interval for share in judged_there]
    values = [share.right / share.of for share in judged_there]
    what = LANGUAGES[view.language].judged
    kind = "moe" if view.config and view.config.n_experts else "dense"
    figure = skill.skill_curve(steps, values, intervals, what, planned_steps=view.planned_steps, kind=kind)
    words = f"{what.capitalize()}, of {_how_many([share.of for share in judged_there])} that it wrote {AS_WRITTEN}. "
    words += skill.describe_skill(steps, values, intervals)
    if view.tokenizer is not None and (mean := _tokens_of_a_unit(view.language, view.tokenizer)) >= LONG:
        unit = LANGUAGES[view.language].units[0]
        words += f" A {unit} counts where none of its tokens, about {mean:.0f}, breaks a rule: rare slips spoil many."
    return figure, words


def _how_many(judged: Sequence[int]) -> str:
    """How many were judged at each point, and at the last where those are more."""
    *before, last = judged
    few, many = min(before, default=last), max(before, default=last)
    said = f"{few} to {many}" if few < many else f"{many}"
    if not before or few <= last <= many:
        return said
    return f"{said} (at the last step {last})"


def _too_short(view: RunView) -> str:
    """That the model cannot see a whole unit at once, where that is so: the floor is as short-sighted as it is."""
    if view.config is None or view.tokenizer is None or view.language not in LANGUAGES:
        return ""
    language = LANGUAGES[view.language]
    mean, context = _tokens_of_a_unit(view.language, view.tokenizer), view.config.context_length
    if mean <= context:
        return ""
    return (
        f" A {language.units[0]} is about {mean:.0f} tokens long and the model sees {context} at once: when it writes "
        "the end, the beginning is out of sight. The floor is that of a reader who knows the rules and sees no more."
    )


@lru_cache(maxsize=32)
def _tokens_of_a_unit(language: str, tokenizer: Tokenizer) -> float:
    units = LANGUAGES[language].sample(4000, seed=0).split("\n")[:-1]
    return sum(len(tokenizer.encode(unit)) + 1 for unit in units) / len(units)


def judged(view: RunView, text: str, begun: str) -> Verdict | None:
    """The verdict on a text that this run's model wrote."""
    return verdict(text, begun, language=view.language, tokenizer=view.tokenizer, learned=view.learned_text)


def first_lines(view: RunView, samples: Sequence[Mapping[str, Any]]) -> str:
    """That the prompt's own line is wrong where later ones are right, and one reason; empty where that is not so."""
    if view.language not in LANGUAGES:
        return ""
    kind = view.tokenizer.kind if view.tokenizer is not None else "char"
    found = [_by_line(view.language, str(each["prompt"]), str(each["text"]), kind) for each in samples]
    able = [(first, later) for first, later in found if first.of and later.interval[0] > skill.LEARNED]
    first, later = (sum(shares, Share(0, 0)) for shares in zip(*able)) if able else (Share(0, 0), Share(0, 0))
    if not able or able[-1] != found[-1] or able[-1][0].right or first.interval[1] >= later.interval[0]:
        return ""
    unit, units = LANGUAGES[view.language].units
    words = f"The prompt’s own {unit} is right in {first.right} of {first.of} texts, of their later {units} "
    words += (
        f"{later.right:,} of {later.of:,}. One reason: the pieces that it learns from begin anywhere, so without a "
    )
    return f"{words}line break before the prompt nothing says that a {unit} begins there."


@lru_cache(maxsize=1000)
def _by_line(language: str, prompt: str, text: str, kind: str) -> tuple[Share, Share]:
    """Of what goes on from a prompt without a line break, whether its line is right, and how many of the others are."""
    cut = text.find("\n") + 1
    if "\n" in prompt or not prompt or not cut:
        return Share(0, 0), Share(0, 0)
    parts = ((text[:cut], prompt), (text[cut:], "\n"))
    first, later = (judge(LANGUAGES[language], part, begun, spaced=kind != "word").share for part, begun in parts)
    return first, later


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


def emphasised(text: str) -> str:
    """Escaped, with *this* in italics."""
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", html.escape(text))
