"""Through training: the same prompt read at every kept moment of the run, beside the loss curve."""

from __future__ import annotations

from typing import Any

import gradio as gr
import numpy as np
import torch

from ....figures.attention import pattern_map
from ....figures.candidates import describe_leaders, describe_next_tokens, next_tokens
from ....figures.replay import describe_appearance, step_at, timeline
from ....inspection import Look
from ....inspection.replay import Replay, appearance, look_at, replay, snapshots_of
from ....kept import Kept
from ....service.limits import REPLAY_NUMBERS as MOST_NUMBERS
from ....storage.snapshots import MOST, Snapshots
from ....words.heads import HABIT_NAMES, describe_pattern
from ... import theme
from ...chart import Chart, show
from ...gradio_fixes.lenient import LenientSlider, SteadyRadio
from ...refusals import sentence
from ...widgets.clicks import number_of
from .drawn import window, window_words
from .frame import Frame, Place
from .heads import clicked_pair

TITLE = "Through training"
HEADING = "The same prompt, at every moment of the run"
CANDIDATES = 8


def build(frame: Frame) -> None:
    """The timeline with its slider; below it the map and the prediction of that moment, or why there are none."""
    with gr.Column(visible=False, elem_classes="card") as nothing:
        why = gr.HTML(padding=False, elem_id="replay-nothing")
    with gr.Column(visible=False, elem_classes="card") as choice:
        gr.HTML(
            theme.heading(
                HEADING,
                f"The trainer keeps the weights at moments along the run, {MOST} at most. Move the slider, or click a "
                "line, to see what the chosen head looked at and what the model expected at that moment.",
            ),
            padding=False,
        )
        habit = SteadyRadio(
            [(title, name) for name, title in HABIT_NAMES.items()],
            value="induction",
            label="Heads that look at …",
            elem_classes="pills",
            elem_id="replay-habit",
        )
    with gr.Column(elem_id="replay-body") as body:
        with gr.Column(elem_classes="card"):
            lines = Chart(height=440, save_name="through-training", clickable=True, elem_id="replay-timeline")
            slider = LenientSlider(0, MOST, value=MOST, step=1, label="Moment", elem_id="replay-slider")
            moment = gr.HTML(padding=False, elem_id="replay-moment")
        with gr.Row(equal_height=False):
            with gr.Column(scale=3, min_width=320, elem_classes="card"):
                pattern = Chart(height=340, save_name="pattern-then", clickable=True, elem_id="replay-pattern")
            with gr.Column(scale=2, min_width=300, elem_classes="card"):
                bars = Chart(height=300, save_name="prediction-then", elem_id="replay-bars")

    frame.page.share("inspect.moment", slider)

    def fits(look: Look, place: Place) -> dict[Any, Any]:
        """A word why in place of the pictures, where none can be drawn."""
        lacking = missing(look)
        said = theme.heading(HEADING) + theme.notice(lacking) if lacking else ""
        shown = {choice: not lacking, body: not lacking, nothing: bool(lacking)}
        return {why: said, **{part: gr.Column(visible=there) for part, there in shown.items()}}

    frame.follow(fits, [choice, body, nothing, why])

    def draw(look: Look, place: Place, wanted: str, position: Any) -> dict[Any, Any]:
        if missing(look):
            return {}
        found = replay_of(look)
        index = _within(position, len(found.steps))
        step = found.steps[index]
        then = look_at(look.checkpoint, step, look.ids)
        history, about = look.checkpoint.history, look.checkpoint.about
        baselines = about.get("ladder") if isinstance(about.get("ladder"), dict) else {}
        rungs = [(name, baselines[name]) for name in ("bigram", "floor") if isinstance(baselines.get(name), float)]
        figure = timeline(
            history.evaluations, found.steps, found.losses, found.scores[wanted], HABIT_NAMES[wanted],
            moment=step, chosen=place.owner, rungs=rungs, recorded=bool(about.get("recorded")),
        )  # fmt: skip
        part = window(look.length, place.query)
        weights = then.pattern(place.layer)[place.head].numpy()
        tokens = look.tokens[part]
        told = HABIT_NAMES[wanted], appearance(found, wanted), found.steps[-1], found.most(wanted)
        return {
            lines: show(figure, describe_appearance(*told)),
            slider: slid(position, index, len(found.steps)),
            moment: moment_cards(look, found, index, place, wanted),
            pattern: show(
                pattern_map(
                    weights[part, part], tokens, causal=look.config.causal, first=part.start,
                    mark=(place.query - part.start, place.key - part.start) if place.key in range(part.start, part.stop)
                    else None,
                ),
                f"Step {step:,}, layer {place.layer} head {place.head}: {describe_pattern(weights, look.tokens)}"
                + window_words(look, part),
            ),
            bars: show(*prediction(look, then, place, step, found.steps[-1])),
        }  # fmt: skip

    frame.follow(draw, [lines, slider, moment, pattern, bars], extra=[habit, slider], slow=True)
    frame.redraws(habit.input, of=habit)
    frame.redraws(slider.input, of=slider)

    def to_moment(look: Look, place: Place, values: dict, event: gr.EventData) -> dict:
        at = step_at(min(number_of(event, "x"), 1e9))
        return {slider: int(np.abs(np.array(snapshots_of(look.checkpoint).steps) - at).argmin())}

    frame.redraws(lines.select, to_moment)
    frame.moves(pattern.select, clicked_pair)


def moments(look: Look) -> Snapshots:
    """The moments that were kept. Raises ValueError where there are none, or too many to read."""
    snapshots = snapshots_of(look.checkpoint)
    if len(snapshots.steps) * look.config.n_parameters > MOST_NUMBERS:
        raise ValueError(
            f"{len(snapshots.steps)} moments of a model with {look.config.n_parameters:,} parameters take too long "
            "to read one after the other: look back at a smaller model"
        )
    return snapshots


def missing(look: Look) -> str:
    """Why this model's moments cannot be looked back at, as a sentence; empty where they can."""
    if "example" in look.checkpoint.about:
        return "This example was written, not trained. Look into the chosen model, with “Copying, watched” chosen."
    try:
        moments(look)
    except ValueError as problem:
        return sentence(str(problem))
    return ""


def replay_of(look: Look) -> Replay:
    """The prompt's replay: what a prompt did over a run does not change. Raises ValueError where there is none."""
    steps = moments(look).steps
    return _replays.get((steps, look.ids), lambda: replay(look.checkpoint, look.ids), owner=look.model)


_replays = Kept(entries=96, megabytes=64)


def _within(position: Any, count: int) -> int:
    """The slider's value as an index; anything that is none means the end."""
    if not isinstance(position, (int, float)) or position != position:
        return count - 1
    return int(min(max(position, 0), count - 1))


def slid(position: Any, index: int, count: int) -> dict[str, Any]:
    """The slider's new range; its value only where it moves, so that nobody's hand is pushed."""
    return gr.update(maximum=max(count - 1, 1), **({} if position == index else {"value": index}))


def moment_cards(look: Look, found: Replay, index: int, place: Place, wanted: str) -> str:
    """Which moment it is, and the numbers there."""
    step, last = found.steps[index], found.steps[-1]
    cards = [("moment", f"step {step:,}", f"of {last:,}; {index + 1} of {len(found.steps)} kept")]
    evaluations = look.checkpoint.history.evaluations
    if evaluations["step"]:
        nearest = int(np.abs(np.array(evaluations["step"]) - step).argmin())
        cards.append(
            (
                "validation loss",
                f"{evaluations['val_loss'][nearest]:.4f}",
                f"at step {int(evaluations['step'][nearest]):,}",
            )
        )
    if np.isfinite(found.losses[index]):
        rounded = "" if step == snapshots_of(look.checkpoint).best else ", by the weights as kept: rounded to 16 bits"
        cards.append(("loss on this prompt", f"{found.losses[index]:.4f}", f"nats per token{rounded}"))
    score = found.scores[wanted][index][place.owner]
    shown = f"{score:.2f}" if np.isfinite(score) else "–"
    note = HABIT_NAMES[wanted] if np.isfinite(score) else "this prompt repeats nothing that could tell"
    cards.append((f"L{place.layer} H{place.head}", shown, note))
    return theme.stat_cards(cards)


def prediction(look: Look, then: Look, place: Place, step: int, last: int) -> tuple[dict[str, Any], str]:
    """What came next in the model's eyes after the chosen token, then and in the end."""
    now = look.trace["logits"][0, place.query].float().softmax(-1)
    before = then.trace["logits"][0, place.query].float().softmax(-1)
    both = now + before
    both[torch.stack((now.argmax(), before.argmax()))] += 2  # whoever leads is drawn
    best = both.topk(min(CANDIDATES, len(now))).indices
    labels, chances = [look.token_label(int(token)) for token in best], now[best].tolist()
    words = f"After {place.query} “{look.tokens[place.query]}”. "
    if step == last:
        return next_tokens(labels, chances), words + describe_next_tokens(labels, chances, when="in the end")
    earlier, when = before[best].tolist(), f"step {step:,}"
    figure = next_tokens(labels, chances, earlier, names=(when, "in the end"))
    return figure, words + describe_leaders(labels, chances, earlier, names=(f"at {when}", "in the end"))
