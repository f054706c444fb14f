"""Facts: what a lesson may say of the visitor's own run, model and view; all named in one table.

`loss` is of the lesson's own run, `chosen.loss` of the model that is chosen above all tabs, `green.loss` of the run
that the lesson calls green. What is not there yet raises NotYet, which says what to do first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ..engine import SamplingConfig, count_projections
from ..engine.sampling import probabilities
from ..game.rules import BIGRAM, FLOOR, MODEL, YOU, Game
from ..inspection.balance import Evenness, evenness, load_over_training
from ..inspection.cost import Cost, Effect, edit_cost, effect
from ..inspection.edits import SwitchOff, edits_tap
from ..inspection.heads import EVEN, HABITS, head_scores
from ..inspection.precision import InPrecision
from ..inspection.replay import Appearance
from ..inspection.routing import expert_layers
from ..kept import Kept
from ..model import PRESETS
from ..training.verdict import Verdict
from ..words.heads import ROLE_NAMES
from ..words.slips import SLIPS, slip_sentences, slip_values
from .journey import favourite, last_looks, mlp_keeps, neurons_percent, settles
from .run_facts import RUN_FACTS
from .scene import NotYet, Scene, Value

READ = 60
"""Characters of a prompt that a sentence quotes."""

Find = Callable[[Scene, str], Value]


@dataclass(frozen=True)
class Fact:
    """One number or word, how it is found and how it is written."""

    find: Find
    """From the scene and the name of a run."""
    digits: int = 4
    about_run: bool = False
    """Whether it is about a run, so that a run's name may stand before it."""
    slow: bool = False
    """Whether finding it takes seconds, so that no question asks beforehand whether it is there."""


def is_fact(name: str, runs: Iterable[str] = ()) -> bool:
    """Whether there is a fact of this name in a lesson with these runs."""
    if name in FACTS:
        return True
    run, _, rest = name.partition(".")
    if run == "slip":
        slip, _, number = rest.partition(".")
        return slip in SLIPS and (not number or f"{{{number}" in SLIPS[slip].truth)
    return run in (*runs, "chosen") and rest in FACTS and FACTS[rest].about_run


def fact_of(name: str) -> Fact | None:
    """The fact, whichever run it is about; None for a number or a slip."""
    return FACTS.get(name) or FACTS.get(name.partition(".")[2])


def value_of(scene: Scene, name: str) -> Value:
    """The value of a fact, or of a number that stands for itself. Raises NotYet."""
    run, _, rest = name.partition(".")
    try:
        if name in FACTS:
            found = FACTS[name].find(scene, "run")
        elif run == "slip":
            found = _slip(rest)
        elif rest in FACTS:
            found = FACTS[rest].find(scene, run)
        else:
            found = float(name)
    except NotYet:
        raise
    except ValueError as problem:  # a sentence of the rooms below
        raise NotYet(str(problem)) from problem
    if isinstance(found, float) and not math.isfinite(found):
        raise NotYet("That number is not finite here.")
    return found


def written(name: str, value: Value) -> str:
    """A fact's value as a sentence says it."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}".replace("-", "−")
    fact = fact_of(name)
    return f"{value:,.{fact.digits if fact else 2}f}".replace("-", "−")


# ---- the chosen model, and what Inspect looks at ---------------------------------------------------------------------


def _next(scene: Scene, temperature: float = 1.0) -> tuple[str, float]:
    """The likeliest token after the prompt of Generate, and its percent at a temperature."""
    checkpoint = scene.checkpoint()
    ids = checkpoint.tokenizer.encode(scene.generate_prompt or "")[-checkpoint.config.context_length :]
    if not ids:
        raise NotYet("The prompt is empty. Type a few words.")
    with torch.inference_mode():
        logits = checkpoint.model(torch.tensor([ids])).logits[:, -1].float()
    found = probabilities(logits, torch.tensor([ids]), SamplingConfig(temperature=temperature))[0]
    text = checkpoint.tokenizer.token_text(int(found.argmax()))
    named = {" ": "a space", "\n": "a line break"}.get(text, text.strip() or "nothing")
    return named, 100 * found.max().item()


def _token(index: int) -> Find:
    """The query (3) or the key (4) that is chosen, with its place."""

    def find(scene: Scene, _: str) -> str:
        look, place = scene.looked[0], scene.looked[index]
        return f"{place} {look.tokens[place]}"

    return find


def _reads(scene: Scene, _: str) -> str:
    """The prompt of Inspect; of a long one the beginning."""
    look = scene.look()
    text = " ".join(look.checkpoint.tokenizer.decode(look.ids).split())
    return text if len(text) <= READ else f"{text[:READ].rstrip()} and so on"


def _habit(scene: Scene, _: str) -> str:
    """Where the chosen head's weight lies on this prompt, in one word."""
    look, layer, head, *_place = scene.looked
    scores = head_scores(look).of(layer, head)
    if math.isnan(scores["previous"]):
        raise NotYet("The prompt has one token only. Type more.")
    if scores["evenness"] >= EVEN:
        return "even"
    name = max(HABITS, key=lambda habit: -1 if math.isnan(scores[habit]) else scores[habit])
    return name if scores[name] >= 0.4 else "elsewhere"


_costs = Kept(entries=256, megabytes=1)


def _cost(scene: Scene) -> Cost:
    look, layer, head, *_place = scene.looked
    judged = scene.held_out(look)
    edit = SwitchOff(layer, "head", head)
    key = (layer, head, look.ids if judged.stand_in else None)
    return _costs.get(key, lambda: edit_cost(look.model, judged.inputs, judged.targets, [edit]), owner=look.model)


def _cost_in_margins(scene: Scene, _: str) -> float:
    """How many margins the cost lies from zero: below 1 zero lies inside its interval."""
    cost = _cost(scene)
    if not math.isfinite(cost.margin):
        raise NotYet("A single text cannot say how far this is from chance.")
    return abs(cost.difference) / cost.margin if cost.margin else math.inf


def _effect(scene: Scene) -> Effect:
    """What the changes in force do to the prediction after the token that asks."""
    look, _layer, _head, query, _key = scene.looked
    listed = scene.edits()
    if not listed:
        raise NotYet("Nothing is switched off yet. Press “Switch it off”.")
    return effect(look.model, torch.tensor([look.ids]), edits_tap(listed, look.config), query)


def _expected_still(scene: Scene) -> float:
    """Percent that the changes leave to the token that was expected."""
    found = _effect(scene)
    return 100 * float(found.after[int(found.before.argmax())])


def _appeared(scene: Scene) -> Appearance:
    found = scene.appeared(scene.look())
    if found is None:
        raise NotYet("No head of this model attends to what followed last time. Choose “Copying, watched”.")
    return found


# ---- two models, and balance -----------------------------------------------------------------------------------------


def _verdict(scene: Scene) -> Verdict:
    view = scene.pair()
    if view.verdict is None:
        raise NotYet(view.withheld or "There is no verdict on these two yet.")
    return view.verdict


def _arithmetic(scene: Scene, _: str) -> float:
    """Percent of the dense model's operations per token that the mixture takes."""
    sides = scene.pair().sides
    if not sides:
        raise NotYet("Press “Train both” first.")
    dense, moe = (sides[side].config.flops_per_token() for side in ("dense", "moe"))
    return 100 * moe / dense


def _winner(verdict: Verdict) -> str:
    return "unclear" if not verdict.is_clear else "moe" if verdict.difference < 0 else "dense"


def _load(scene: Scene, kind: str) -> list[Evenness]:
    """How even the load of each layer was at the end of training."""
    config, history = scene.balance(kind)
    layers = expert_layers(config)
    if (over := load_over_training(history.load, len(layers), config.n_experts)) is None:
        raise NotYet("The load is not measured yet. Wait a moment.")
    return [evenness(layer.tolist()) for layer in over[1][-1]]


def _points(*players: str) -> Find:
    """Points of a player, or of the first minus those of the second."""

    def find(scene: Scene, _: str) -> int:
        game: Game = scene.game()
        if missing := {*players} - {*game.players}:
            raise NotYet("The best bets on this text are unknown." if missing == {FLOOR} else "Place a first bet.")
        first, *second = (round(float(game.points(player).sum())) for player in players)
        return first - sum(second)

    return find


# ---- what precision costs --------------------------------------------------------------------------------------------


def _in_int8(number: Callable[[InPrecision, InPrecision], Value]) -> Find:
    """A number of int8 and fp32."""

    def find(scene: Scene, _: str) -> Value:
        ways = {way.name: way for way in scene.precision().ways}
        return number(ways["int8"], ways["fp32"])

    return find


def _worth(way: InPrecision, _: InPrecision) -> str:
    if abs(way.more) <= way.more_margin:
        return "unclear"
    return "dearer" if way.more > 0 else "cheaper"


def _slip(rest: str) -> Value:
    name, _, number = rest.partition(".")
    sentences = slip_sentences(name)
    if sentences is None:
        raise NotYet("The shipped model that this needs is not here.")
    return slip_values(name)[number] if number else sentences[1]


# ---- the table -------------------------------------------------------------------------------------------------------


def _facts(of: Callable[[Scene], Any], found: Mapping[str, Any], **more: Any) -> dict[str, Fact]:
    """Facts of one thing on the page: name → how to read it off that, with its digits where they are not four."""
    facts = {}
    for name, read in found.items():
        read, digits = read if isinstance(read, tuple) else (read, 4)
        facts[name] = Fact(lambda scene, _, read=read: read(of(scene)), digits, **more)
    return facts


_DIGITS = {"perplexity": 1, "right": 1, "sure": 0, "copied": 0}

FACTS: dict[str, Fact] = {
    **{name: Fact(find, _DIGITS.get(name, 4), about_run=True) for name, find in RUN_FACTS.items()},
    **_facts(
        lambda scene: scene.checkpoint().config,
        {
            "layers": lambda config: config.n_layers,
            "heads": lambda config: config.n_heads,
            "masked": lambda config: "yes" if config.causal else "no",
            "cache-bytes": lambda config: config.cache_bytes(1),
        },
    ),
    **_facts(
        lambda scene: scene,
        {
            "prompt": lambda scene: scene.generate_prompt.strip() or "nothing",
            "dice": lambda scene: scene.dice,
            "likeliest": lambda scene: _next(scene)[0],
            "likeliest-share": (lambda scene: _next(scene)[1], 1),
            "likeliest-hot": (lambda scene: _next(scene, 2.0)[1], 1),
            "layer": lambda scene: scene.looked[1],
            "head": lambda scene: scene.looked[2],
            "head-name": lambda scene: "{1}.{2}".format(*scene.looked),
            "last-looks": lambda scene: last_looks(*scene.looked[:3]),
            "looks-ahead": lambda scene: "yes" if scene.looked[4] > scene.looked[3] else "no",
            "neurons-percent": (lambda scene: neurons_percent(*scene.looked[:2], scene.looked[3]), 0),
        },
    ),
    **_facts(
        lambda scene: scene.look(),
        {
            "vocabulary": lambda look: look.checkpoint.tokenizer.vocab_size,
            "width": lambda look: look.config.d_model,
            "next-token": lambda look: favourite(look)[0],
            "next-share": (lambda look: favourite(look)[1], 0),
            "mlp-keeps": (mlp_keeps, 0),
            "settles": settles,
        },
    ),
    "reads": Fact(_reads),
    "asks": Fact(_token(3)),
    "looks-at": Fact(_token(4)),
    "habit": Fact(_habit),
    **_facts(
        lambda scene: scene.receipt,
        {
            "dot": lambda receipt: float(receipt.dot),
            "score": lambda receipt: float(receipt.score),
            "weight": lambda receipt: float(receipt.weight),
            "weight-percent": (lambda receipt: 100 * receipt.weight, 1),
        },
    ),
    "expects": Fact(lambda scene, _: scene.look().token_label(int(_effect(scene).before.argmax()))),
    "expects-after": Fact(lambda scene, _: _expected_still(scene), digits=1),
    "moved": Fact(lambda scene, _: _effect(scene).divergence),
    "head-cost": Fact(lambda scene, _: _cost(scene).difference, slow=True),
    "head-cost-margins": Fact(_cost_in_margins, digits=1, slow=True),
    **_facts(lambda scene: scene.role(scene.look()), {"role": str, "role-words": ROLE_NAMES.get}, slow=True),
    "appeared-head": Fact(lambda scene, _: "layer {0.layer}, head {0.head}".format(_appeared(scene))),
    "appeared-percent": Fact(
        lambda scene, _: 100 * _appeared(scene).after / max(scene.run("chosen")[0].history.last_step, 1), digits=0
    ),
    **_facts(
        _verdict,
        {
            "difference": lambda verdict: verdict.difference,
            "difference-size": lambda verdict: abs(verdict.difference),
            "difference-margin": lambda verdict: verdict.margin,
            "seeds": lambda verdict: verdict.seeds,
            "winner": _winner,
            "zero": lambda verdict: "outside" if abs(verdict.difference) > verdict.margin else "inside",
        },
    ),
    "arithmetic-share": Fact(_arithmetic, digits=0),
    **{
        f"dead-{kind}": Fact(lambda scene, _, kind=kind: sum(len(layer.dead) for layer in _load(scene, kind)))
        for kind in ("with", "without")
    },
    # bets on the next token
    "bets": Fact(lambda scene, _: len(scene.game().rounds)),
    "points-you": Fact(_points(YOU)),
    "points-floor": Fact(_points(FLOOR)),
    "points-lead": Fact(_points(YOU, MODEL)),
    "model-lead": Fact(_points(MODEL, BIGRAM)),
    # what precision costs
    "bits-32-loss": Fact(_in_int8(lambda _, plain: plain.loss)),
    "bits-8-smaller": Fact(_in_int8(lambda way, plain: plain.nbytes / way.nbytes), digits=1),
    "bits-8-cost": Fact(_in_int8(lambda way, _: way.more), digits=5),
    "bits-8-worth": Fact(_in_int8(_worth)),
    "bits-8-parts": Fact(_in_int8(lambda way, _: "never" if way.parts_at is None else way.parts_at + 1)),
    "weight-value": Fact(lambda scene, _: scene.precision().matrix.worst.value, digits=6),
    "weight-back": Fact(lambda scene, _: scene.precision().matrix.worst.back, digits=6),
    "weight-middle": Fact(lambda scene, _: scene.precision().matrix.middle_half),
    # constants
    "made-3": Fact(lambda *_: count_projections(5, 3)[0]),
    "made-3-cached": Fact(lambda *_: count_projections(5, 3)[1]),
    "times-500": Fact(lambda *_: round(count_projections(5, 500)[0] / count_projections(5, 500)[1])),
    "llama-cache": Fact(lambda *_: PRESETS["llama-7b"].cache_bytes(2048, bytes_per_number=2) / 2**30, digits=1),
}
"""By the name that lesson files use; beside them `slip.NAME`, what is true of a slip, and `slip.NAME.NUMBER`."""
