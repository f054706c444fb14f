"""Steering: a direction in the residual stream, added while the model reads and writes.

The direction is the difference of two means: of the stream after the last token of prompts that show something, and of
prompts that do not (Turner et al. 2023; Panickssery et al. 2024). It is made as long as the stream itself, so that
strengths mean the same in every layer. d = d_model, N = windows, T = tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..inspection.edits import Seen, edits_tap
from ..model import ModelConfig, Pass, Tap, Transformer, trace
from ..training.losses import window_losses
from .patching import two_answers

STRENGTHS = tuple(n / 5 for n in range(11))
"""Strengths that are measured."""
TRIED, LAYERS = (1.0, 0.8, 0.6, 0.4, 0.2), 8
"""Strengths of which the largest bearable one is suggested, and layers that are tried, spread over the model."""
BEARABLE = 0.1
"""Nats per token by which a suggested strength raises the validation loss, at most."""


@dataclass(frozen=True, eq=False)
class Steer:
    """An edit (see `inspection.edits`): the stream that enters a layer, plus strength · direction, at every token."""

    layer: int
    direction: torch.Tensor
    """(d,)."""
    strength: float

    @property
    def idle(self) -> bool:
        """Whether it changes nothing."""
        return self.strength == 0

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the model has this layer and width."""
        if not 0 <= self.layer < config.n_layers or self.direction.shape != (config.d_model,):
            raise ValueError(f"this direction does not fit layer {self.layer} of this model")

    def change(self, name: str, x: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The stream (B, T, d) plus the steering vector."""
        return x + self.strength * self.direction.to(x) if name == "resid_pre" else x


def difference_of_means(
    model: Transformer, towards: Sequence[Sequence[int]], away: Sequence[Sequence[int]], layer: int
) -> torch.Tensor:
    """The direction (d,) from prompts `away` to prompts `towards`, of any lengths, at the entry of a layer.

    It is as long as the stream there, the median over the prompts' tokens. Raises ValueError where a set is empty or
    both have the same mean.
    """
    _check_sides(towards, away)

    def streams(prompts: Sequence[Sequence[int]]) -> list[torch.Tensor]:
        passes = (trace(model, torch.tensor([list(ids)]), names=["resid_pre"]) for ids in prompts)
        return [each["resid_pre", layer][0] for each in passes]

    there, here = streams(towards), streams(away)
    means = [torch.stack([each[-1] for each in side]).mean(dim=0) for side in (there, here)]
    direction = means[0] - means[1]
    if not direction.any():
        raise ValueError("Both sides are the same in this layer. Choose a later layer, or other prompts")
    return direction * (torch.cat(there + here).norm(dim=-1).median() / direction.norm())


def _check_sides(*sides: Sequence[Sequence[int]]) -> None:
    if not all(sides):
        raise ValueError("Steering needs prompts on both sides. Write at least one in each field")


@torch.inference_mode()
def sides_answers(
    model: Transformer, towards: Sequence[Sequence[int]], away: Sequence[Sequence[int]]
) -> tuple[int, int]:
    """What the model says after prompts `towards`, and what it says after prompts `away`, on average."""
    _check_sides(towards, away)

    def mean(prompts: Sequence[Sequence[int]]) -> torch.Tensor:
        logits = [model(torch.tensor([list(ids)])).logits[0, -1] for ids in prompts]
        return torch.stack(logits).float().softmax(-1).mean(dim=0)

    return two_answers(mean(away), mean(towards))[::-1]


@dataclass(frozen=True)
class SteeringCurve:
    """What each strength does."""

    strengths: tuple[float, ...]
    effects: tuple[float, ...]
    """Logit of one answer − logit of the other after a prompt, in nats."""
    losses: tuple[float, ...]
    """Mean loss on windows of text, in nats per token."""
    leaders: tuple[int, ...]
    """The likeliest token after the prompt."""


@torch.inference_mode()
def steering_curve(
    model: Transformer,
    direction: torch.Tensor,
    layer: int,
    strengths: Sequence[float],
    ids: Sequence[int],
    answers: tuple[int, int],
    windows: tuple[torch.Tensor, torch.Tensor],
) -> SteeringCurve:
    """Strength against effect after the prompt ids (T,), and against loss on windows: inputs and targets (N, T)."""
    effects, losses, leaders, text = [], [], [], torch.tensor([list(ids)])
    for strength in strengths:
        tap = steering_tap(model, direction, layer, strength)
        logits = model(text, Pass(tap=tap)).logits[0, -1].float()
        effects.append(float(logits[answers[0]] - logits[answers[1]]))
        losses.append(window_losses(model, *windows, tap=tap).mean)
        leaders.append(int(logits.argmax()))
    return SteeringCurve(tuple(strengths), tuple(effects), tuple(losses), tuple(leaders))


@dataclass(frozen=True, order=True)
class Setting:
    """A layer and a strength to begin with; the largest of several is the best."""

    works: bool
    """Whether the wanted answer leads then, and did not before."""
    effect: float
    """By how much the difference of the answers' logits moves, in nats."""
    layer: int
    strength: float


def suggested_setting(
    model: Transformer,
    towards: Sequence[Sequence[int]],
    away: Sequence[Sequence[int]],
    ids: Sequence[int],
    answers: tuple[int, int],
    windows: tuple[torch.Tensor, torch.Tensor],
) -> Setting:
    """The layer in which the largest strength that the loss on windows bears does most, and the least strength there
    with which the wanted answer leads, or else that largest one."""
    L, d = model.config.n_layers, model.config.d_model
    found = [Setting(False, 0.0, L - 1, TRIED[-1])]
    plain = steering_curve(model, torch.zeros(d), 0, (0.0,), ids, answers, windows)
    for layer in sorted({round(i * (L - 1) / (LAYERS - 1)) for i in range(LAYERS)}):
        try:
            direction = difference_of_means(model, towards, away, layer)
        except ValueError:  # both sides are the same here
            continue
        for strength in TRIED:
            curve = steering_curve(model, direction, layer, (strength,), ids, answers, windows)
            if curve.losses[0] - plain.losses[0] <= BEARABLE:
                works = plain.leaders[0] != answers[0] == curve.leaders[0]
                found.append(Setting(works, curve.effects[0] - plain.effects[0], layer, strength))
                break
    best = max(found)
    if best.works:
        direction = difference_of_means(model, towards, away, best.layer)
        window = windows[0][:1], windows[1][:1]  # its losses are not needed
        curve = steering_curve(model, direction, best.layer, TRIED[::-1], ids, answers, window)
        least = curve.leaders.index(answers[0])
        return Setting(True, curve.effects[least] - plain.effects[0], best.layer, curve.strengths[least])
    return best


def steering_tap(model: Transformer, direction: torch.Tensor, layer: int, strength: float) -> Tap:
    """A tap for passes and for `generate`; at strength 0 it is `no_tap`."""
    return edits_tap([Steer(layer, direction, strength)], model.config)
