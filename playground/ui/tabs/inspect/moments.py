"""Through training: the same prompt at every kept moment of the run, and the run's curves above."""

from __future__ import annotations

from typing import Any

import torch

from ....figures.candidates import next_tokens
from ....figures.replay import BESIDE, timeline
from ....inspection import Look
from ....inspection.replay import Replay, appearance, look_at, most_learned, replay, snapshots_of
from ....kept import Kept
from ....service.limits import REPLAY_NUMBERS as MOST_NUMBERS
from ....words.heads import HABIT_NAMES, head_name
from ....words.pictures import appearance_words, expected
from ....words.result import Result
from ... import theme
from ...chart import chart_place, show
from ...clicks import number_of
from ...panel import Slot, choice, slot
from .drawn import clicked_cell, window
from .heads import drawn
from .selection import At, strongest_key

CANDIDATES = 5
TIMELINE, MOMENT = 165, 215
"""Pixels of the timeline, and of the pictures of a moment: with the slider, all fit on one screen."""

SLIDER = f"""<label class="moment" style="padding-inline: {BESIDE[0] - 8}px {BESIDE[1] - 8}px">
{slot("moments-slider")}{slot("moments-step", tag="output")}</label>"""
"""The snapshots along the axis of the timeline, from the middle of the knob at one end to that at the other."""
TEMPLATE = f"""<section data-if="training:moments">
<div class="card stack"><div class="line">{slot("moments-headline", class_="grow")}
{choice("look_at", "Attention to", HABIT_NAMES)}</div>
{chart_place("moments-timeline", height=TIMELINE, save_name="through-training", clickable=True, below=SLIDER)}</div>
<div class="two">
<div class="card">{slot("moments-head", tag="h3")}
{chart_place("moments-pattern", height=MOMENT, save_name="pattern-then", clickable=True)}</div>
<div class="card">{slot("moments-then", tag="h3")}
{chart_place("moments-bars", height=MOMENT, save_name="prediction-then")}</div></div></section>"""

_replays = Kept(entries=96, megabytes=64)
_looks = Kept(entries=64, megabytes=64)


def slots(at: At) -> dict[str, Slot]:
    """The timeline and one moment."""
    look, c = at.look, at.chosen
    steps = snapshots_of(look.checkpoint).steps
    index, habit = index_of_moment(c.moment, len(steps)), c.look_at
    step, head = f"step {steps[index]:,}", (*at.about, c.layer, c.head, habit, index)
    after = f"after token {c.query} “{look.tokens[c.query]}” " if c.query < look.length - 1 else ""
    slider = f'<input type="range" name="moment" min="0" max="{len(steps) - 1}" step="1" value="{index}">'
    return {
        "training-problem": Slot("", str),
        "moments-slider": Slot((*at.about, len(steps)), lambda: slider),
        "moments-headline": Slot((*at.about, habit), lambda: theme.result(appeared(look, habit), tag="h2"), slow=True),
        "moments-step": Slot(step, lambda: f"Moment: {step}"),
        "moments-timeline": Slot(head, lambda: timeline_picture(at, index, habit), slow=True),
        "moments-head": Slot(head, lambda: f"{head_name(*at.owner)} at {step}"),
        "moments-pattern": Slot((*head, c.query, c.key), lambda: pattern(at, steps[index]), slow=True),
        "moments-then": Slot((*at.about, c.query, step), lambda: f"Prediction {after}at {step}"),
        "moments-bars": Slot((*at.about, c.query, index), lambda: prediction(at, steps[index], steps[-1]), slow=True),
    }


def within(at: At) -> dict[str, Any]:
    """The habit to draw, and as chosen head the one that took it up."""
    replayed, habit = replay_of(at.look), at.chosen.look_at
    if habit not in HABIT_NAMES:  # at first the one that training raised most on this prompt
        habit = most_learned(replayed) or "induction"
    found = appearance(replayed, habit)
    if not found or (found.layer, found.head) == at.owner:
        return {"look_at": habit}
    key = strongest_key(at.look, found.layer, found.head, at.chosen.query)
    return {"look_at": habit, "layer": found.layer, "head": found.head, "key": key}


def clicked(at: At, click: dict[str, Any]) -> dict[str, Any] | None:
    """A click on the timeline selects the nearest moment; one on the pattern a query and a key."""
    if click.get("slot") == "moments-timeline":
        return {"moment": index_of_moment(round(number_of(click, "x")), len(snapshots_of(at.look.checkpoint).steps))}
    if click.get("slot") == "moments-pattern":
        return clicked_cell(click, window(at.look.length, at.chosen.query))
    return None


def are_kept(look: Look) -> bool:
    """Whether this model has snapshots of its training, few and small enough to read all."""
    try:
        return len(snapshots_of(look.checkpoint).steps) * look.config.n_parameters <= MOST_NUMBERS
    except ValueError:
        return False


def replay_of(look: Look) -> Replay:
    """The prompt at every snapshot, read once."""
    steps = snapshots_of(look.checkpoint).steps
    return _replays.get((steps, look.ids), lambda: replay(look.checkpoint, look.ids), owner=look.model)


def look_then(look: Look, step: int) -> Look:
    """A look at the prompt with the model's weights of this step; cached, because several charts need it."""
    return _looks.get((step, look.ids), lambda: look_at(look.checkpoint, step, look.ids), owner=look.model)


def index_of_moment(moment: int | None, count: int) -> int:
    """The index of the chosen snapshot; the last one's if none is chosen."""
    return count - 1 if moment is None else min(max(moment, 0), count - 1)


def appeared(look: Look, habit: str) -> Result:
    """When the habit appeared."""
    found = replay_of(look)
    return appearance_words(HABIT_NAMES[habit], appearance(found, habit), found.most(habit))


def timeline_picture(at: At, index: int, habit: str) -> dict[str, Any] | None:
    """What heads do, the moment marked, and the snapshots shaded between which the habit appeared."""
    found = replay_of(at.look)
    rise = appearance(found, habit)
    rose = rise and (found.steps.index(rise.before), found.steps.index(rise.after))
    figure = timeline(found.steps, found.scores[habit], moment=index, chosen=at.owner, rose=rose, height=TIMELINE)
    return show(figure, appeared(at.look, habit).headline, aloud=True, layer=None, head=None)


def pattern(at: At, step: int) -> dict[str, Any] | None:
    """The chosen head's pattern at that moment."""
    c = at.chosen
    weights = look_then(at.look, step).pattern(c.layer)[c.head].float().cpu().numpy()
    return show(*drawn(at.look, weights, c.query, c.key, MOMENT), aloud=True, moment=step, layer=c.layer, head=c.head)


def prediction(at: At, step: int, last: int) -> dict[str, Any] | None:
    """The next-token prediction after a token, at that moment and, in a pale colour, at the end."""
    look, query = at.look, at.chosen.query
    now, before = (each.trace["logits"][0, query].float().softmax(-1) for each in (look, look_then(look, step)))
    both = now + before
    both[torch.stack((now.argmax(), before.argmax()))] += 2  # the leader of each is always shown
    best = both.topk(min(CANDIDATES, len(now))).indices
    labels, chances, earlier = (
        [look.token_label(int(token)) for token in best],
        now[best].tolist(),
        before[best].tolist(),
    )
    if step == last:
        figure, said = next_tokens(labels, chances), expected(labels, chances, when=("", "at the end"))
    else:
        figure = next_tokens(labels, earlier, chances, names=("at the end", f"step {step:,}"))
        said = expected(labels, chances, earlier, (f"at step {step:,}", "at the end"))
    return show(figure, said, aloud=True, moment=step, layer=None, head=None)
