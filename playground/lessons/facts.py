"""Facts: what a lesson may say of the visitor's own run, model and view; a function each, named in one table.

`loss` is of the lesson's own run, `chosen.loss` of the model that is chosen above all tabs, `green.loss` of the run
that the lesson calls green. What is not there yet raises NotYet, which says what to do first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import torch

from ..data.baselines import Baselines
from ..engine import SamplingConfig, count_projections, generate
from ..engine.sampling import probabilities
from ..inspection import Look
from ..inspection.balance import Evenness, evenness, load_over_training
from ..inspection.cost import Cost, Effect, edit_cost, effect
from ..inspection.edits import Edit, SwitchOff, edits_tap
from ..inspection.game import BIGRAM, FLOOR, MODEL, YOU, Game
from ..inspection.heads import EVEN, HABITS, head_scores
from ..inspection.precision import InPrecision, PrecisionCost
from ..inspection.receipts import Receipt, receipt
from ..inspection.replay import Appearance
from ..inspection.routing import expert_layers
from ..kept import Kept
from ..model import PRESETS, ModelConfig
from ..service.verdicts import learned_by
from ..service.views import PairView, RunView
from ..storage import Checkpoint
from ..training import History
from ..words.baselines import equally_likely
from ..words.heads import ROLE_NAMES
from ..words.slips import SLIPS, slip_sentences, slip_values
from .journey import favourite, last_looks, mlp_keeps, settles

Value = float | int | str


class NotYet(ValueError):
    """Something that a fact is about is not there yet; the sentence says what to do."""


class Unsettled(NotYet):
    """What stands on the page just now is not what a step is about: nothing of it is said before it is."""


def _absent(*_: Any) -> Any:
    raise NotYet("That number is not there yet.")


@dataclass
class Scene:
    """What one visitor has on the page at one moment. Each is asked for only where a fact needs it."""

    run: Callable[[str], tuple[RunView, Checkpoint | None]] = _absent
    """The run of this name, and its model once there is one; `chosen` for the model above all tabs."""
    checkpoint: Callable[[], Checkpoint] = _absent
    """The chosen model."""
    look: Callable[[], Look] = _absent
    place: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Layer, head, query and key that are chosen in Inspect."""
    edits: Callable[[], list[Edit]] = _absent
    """The changes in force."""
    held_out: Callable[[Look], Any] = _absent
    """Windows and targets to judge a change by."""
    role: Callable[[Look], str] = _absent
    """The chosen head's tested role."""
    appeared: Callable[[Look], Appearance | None] = _absent
    """When the habit of looking at what followed last time came up."""
    pair: Callable[[], PairView] = _absent
    balance: Callable[[str], tuple[ModelConfig, History]] = _absent
    """A mixture trained "with" a balance loss, or "without": its config, and what was recorded."""
    game: Callable[[], Game] = _absent
    """Of bets on the next token."""
    precision: Callable[[], PrecisionCost] = _absent
    """What bf16 and int8 cost the chosen model, if it was measured."""
    generate_prompt: str = ""
    dice: str = "thrown"
    """none where Generate is greedy, kept where it keeps its seed."""
    lesson_prompt: str = ""
    visitor: str = ""
    """Whose page it is: the order of choices hangs on it."""
    _receipt: list[Receipt] = field(default_factory=list)


@dataclass(frozen=True)
class Fact:
    """One number or word, how it is found and how it is written."""

    find: Callable[[Scene, str], Value]
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
    plain = FACTS.get(name) or FACTS.get(name.partition(".")[2])
    return f"{value:,.{plain.digits if plain else 2}f}".replace("-", "−")


# ---- a run -----------------------------------------------------------------------------------------------------------


def _view(scene: Scene, run: str) -> RunView:
    return scene.run(run)[0]


def _baselines(scene: Scene, run: str) -> Baselines:
    baselines = _view(scene, run).baselines
    if baselines is None:
        raise NotYet("The baselines are not measured yet. Wait a moment.")
    return baselines


def _rung(name: str) -> Callable[[Scene, str], float]:
    def find(scene: Scene, run: str) -> float:
        value = getattr(_baselines(scene, run), name)
        if value is None:
            raise NotYet("The best possible loss on this text is unknown.")
        return value

    return find


def _evaluation(column: str, index: int) -> Callable[[Scene, str], float]:
    def find(scene: Scene, run: str) -> float:
        values = _view(scene, run).history.evaluations[column]
        if not values:
            raise NotYet("Nothing is measured yet. Wait for the first evaluation.")
        return values[index]

    return find


def _loss(scene: Scene, run: str) -> float:
    return _evaluation("val_loss", -1)(scene, run)


def _best(index: int) -> Callable[[Scene, str], Value]:
    def find(scene: Scene, run: str) -> Value:
        best = _view(scene, run).history.best
        if best is None:
            raise NotYet("Nothing is measured yet. Wait for the first evaluation.")
        return best[index]

    return find


def _first_loss(scene: Scene, run: str) -> float:
    view = _view(scene, run)
    return (
        _evaluation("val_loss", 0)(scene, run)
        if view.history.evaluations["step"][:1] == [0]
        else _rung("uniform")(scene, run)
    )


def _right(scene: Scene, run: str) -> float:
    judged = [record for record in _view(scene, run).history.judged if record["of"]]
    if not judged:
        raise NotYet("Its samples are not checked yet. Wait a moment.")
    return 100 * judged[-1]["right"] / judged[-1]["of"]


def _passed(scene: Scene, run: str) -> str:
    return (_baselines(scene, run).passed(_loss(scene, run)) or "none").replace(" ", "-")


def _equally_likely(scene: Scene, run: str) -> str:
    return f"perplexity {equally_likely(_loss(scene, run))}"


_said = Kept(entries=300, megabytes=4)
SAID, WRITTEN = 48, 240
"""Tokens of a short answer, and of a text whose copied part is measured."""
READ = 60
"""Characters of a prompt that a sentence quotes."""


def _answer(scene: Scene, run: str) -> str:
    """What the run's model goes on with after the lesson's prompt, greedily, up to the end of its sentence."""
    view, checkpoint = scene.run(run)
    if checkpoint is None:
        raise NotYet("Wait until the model is trained.")
    prompt = scene.lesson_prompt or view.prompt
    ids = checkpoint.tokenizer.encode(prompt)[-checkpoint.config.context_length :]
    if not ids:
        raise NotYet("The prompt is empty.")

    def write() -> str:
        steps = generate(checkpoint.model, ids, SAID, SamplingConfig(greedy=True))
        text = checkpoint.tokenizer.decode([step.tokens[0] for step in steps])
        return re.split(r"(?<=[.!?])\s|\n", text.strip() + "\n", maxsplit=1)[0].strip()

    return _said.get((prompt, "greedy"), write, owner=checkpoint.model)


def _word(scene: Scene, run: str) -> str:
    found = re.search(r"\w+", _answer(scene, run))
    return found[0].lower() if found else "nothing"


def _sure(scene: Scene, run: str) -> float:
    """Percent of tries, by the model's own probabilities, that would begin with the first word of its answer."""
    word, (view, checkpoint) = _word(scene, run), scene.run(run)
    prompt = scene.lesson_prompt or view.prompt

    def measure() -> float:
        share, text = 1.0, ""
        for step in generate(checkpoint.model, checkpoint.tokenizer.encode(prompt), SAID, SamplingConfig(greedy=True)):
            share *= step.model_probability[0]
            text += checkpoint.tokenizer.token_text(step.tokens[0])
            if word in text.lower():
                break
        return 100 * share

    return _said.get((prompt, "sure"), measure, owner=checkpoint.model)


def _copied(scene: Scene, run: str) -> float:
    """Percent of a longer text of the run's model that stands word for word in what it learned from."""
    _, checkpoint = scene.run(run)
    learned = learned_by(checkpoint.model) if checkpoint is not None else None
    if learned is None:
        raise NotYet("The page does not have this model's text, so it cannot compare.")
    ids = checkpoint.tokenizer.encode(scene.lesson_prompt or "\n")[-checkpoint.config.context_length :]

    def write() -> float:
        steps = generate(checkpoint.model, ids or [0], WRITTEN, SamplingConfig(temperature=0.8, seed=1))
        found = learned.compare(checkpoint.tokenizer.decode([step.tokens[0] for step in steps]))
        return 100 * found.copied.right / max(found.copied.of, 1)

    return _said.get((scene.lesson_prompt, "copied"), write, owner=checkpoint.model)


# ---- the chosen model ------------------------------------------------------------------------------------------------


def _config(name: str) -> Callable[[Scene, str], Value]:
    return lambda scene, _: getattr(scene.checkpoint().config, name)


def _next(scene: Scene, temperature: float = 1.0) -> tuple[str, torch.Tensor]:
    """The likeliest token after the prompt of Generate, and all probabilities (V,) at a temperature."""
    checkpoint = scene.checkpoint()
    ids = checkpoint.tokenizer.encode(scene.generate_prompt or "")[-checkpoint.config.context_length :]
    if not ids:
        raise NotYet("The prompt is empty. Type a few words.")
    with torch.inference_mode():
        logits = checkpoint.model(torch.tensor([ids])).logits[:, -1].float()
    found = probabilities(logits, torch.tensor([ids]), SamplingConfig(temperature=temperature))[0]
    return checkpoint.tokenizer.token_text(int(found.argmax())), found


def _share(temperature: float) -> Callable[[Scene, str], float]:
    return lambda scene, _: 100 * _next(scene, temperature)[1].max().item()


def _top(scene: Scene, _: str) -> str:
    text = _next(scene)[0]
    return {" ": "a space", "\n": "a line break"}.get(text, text.strip() or "nothing")


# ---- what Inspect looks at -------------------------------------------------------------------------------------------


def _looked(scene: Scene) -> tuple[Look, int, int, int, int]:
    look = scene.look()
    ends = (look.config.n_layers, look.config.n_heads, look.length, look.length)
    return look, *(min(max(at, 0), end - 1) for at, end in zip(scene.place, ends))


def _receipt(scene: Scene) -> Receipt:
    if not scene._receipt:
        scene._receipt.append(receipt(*_looked(scene)))
    return scene._receipt[0]


def _of_receipt(name: str) -> Callable[[Scene, str], float]:
    return lambda scene, _: float(getattr(_receipt(scene), name))


def _token(index: int) -> Callable[[Scene, str], str]:
    def find(scene: Scene, _: str) -> str:
        look, *place = _looked(scene)
        return f"{place[index]} {look.tokens[place[index]]}"

    return find


def _reads(scene: Scene, _: str) -> str:
    """The prompt of Inspect; of a long one the beginning."""
    look = scene.look()
    text = " ".join(look.checkpoint.tokenizer.decode(look.ids).split())
    return text if len(text) <= READ else f"{text[:READ].rstrip()} and so on"


def _watched(scene: Scene, _: str) -> str:
    look, layer, head, query, _key = _looked(scene)
    key = int(look.pattern(layer)[head, query].argmax())
    return f"{key} {look.tokens[key]}"


def _kind(scene: Scene, _: str) -> str:
    """Where the chosen head's weight lies on this prompt, in one word."""
    look, layer, head, *_place = _looked(scene)
    scores = head_scores(look).of(layer, head)
    if math.isnan(scores["previous"]):
        raise NotYet("The prompt has one token only. Type more.")
    if scores["evenness"] >= EVEN:
        return "even"
    name = max(HABITS, key=lambda habit: -1 if math.isnan(scores[habit]) else scores[habit])
    return name if scores[name] >= 0.4 else "elsewhere"


_costs = Kept(entries=256, megabytes=1)


def _cost(scene: Scene) -> Cost:
    look, layer, head, *_place = _looked(scene)
    judged = scene.held_out(look)
    edit = SwitchOff(layer, "head", head)
    key = (layer, head, look.ids if judged.stand_in else None)
    return _costs.get(key, lambda: edit_cost(look.model, judged.inputs, judged.targets, [edit]), owner=look.model)


def _cost_margin(scene: Scene, _: str) -> float:
    margin = _cost(scene).margin
    if not math.isfinite(margin):
        raise NotYet("A single text cannot say how far this is from chance.")
    return margin


def _cost_in_margins(scene: Scene, _: str) -> float:
    """How many margins the cost lies from zero: below 1 zero lies inside its interval."""
    margin = _cost_margin(scene, "")
    return abs(_cost(scene).difference) / margin if margin else math.inf


def _effect(scene: Scene) -> tuple[Look, Effect]:
    """What the changes in force do to the prediction after the token that asks."""
    look, _layer, _head, query, _key = _looked(scene)
    listed = scene.edits()
    if not listed:
        raise NotYet("Nothing is switched off yet. Press “Switch it off”.")
    return look, effect(look.model, torch.tensor([look.ids]), edits_tap(listed, look.config), query)


def _expects(scene: Scene, _: str) -> str:
    look, found = _effect(scene)
    return look.token_label(int(found.before.argmax()))


def _expected(which: str) -> Callable[[Scene, str], float]:
    def find(scene: Scene, _: str) -> float:
        found = _effect(scene)[1]
        return 100 * float(getattr(found, which)[int(found.before.argmax())])

    return find


def _appeared(name: str) -> Callable[[Scene, str], Value]:
    def find(scene: Scene, _: str) -> Value:
        found = scene.appeared(scene.look())
        if found is None:
            raise NotYet("No head of this model attends to what followed last time. Choose “Copying, watched”.")
        return f"layer {found.layer}, head {found.head}" if name == "head" else getattr(found, name)

    return find


def _jump(scene: Scene, _: str) -> float:
    """Percent of a head's final habit that it gained between two neighbouring kept moments."""
    before, after, final = (_appeared(name)(scene, "") for name in ("score_before", "score_after", "final"))
    return 100 * (after - before) / final


# ---- two models, and balance -----------------------------------------------------------------------------------------


def _verdict(scene: Scene) -> Any:
    view = scene.pair()
    if view.verdict is None:
        raise NotYet(view.withheld or "There is no verdict on these two yet.")
    return view.verdict


def _winner(scene: Scene, _: str) -> str:
    found = _verdict(scene)
    return "unclear" if not found.is_clear else "moe" if found.difference < 0 else "dense"


def _side_of_zero(scene: Scene, _: str) -> str:
    found = _verdict(scene)
    return "outside" if abs(found.difference) > found.margin else "inside"


def _load(scene: Scene, kind: str) -> list[Evenness]:
    """How even the load of each layer was at the end of training."""
    config, history = scene.balance(kind)
    layers = expert_layers(config)
    if (over := load_over_training(history.load, len(layers), config.n_experts)) is None:
        raise NotYet("The load is not measured yet. Wait a moment.")
    return [evenness(layer.tolist()) for layer in over[1][-1]]


def _dead(kind: str) -> Callable[[Scene, str], int]:
    return lambda scene, _: sum(len(layer.dead) for layer in _load(scene, kind))


def _entropy(kind: str) -> Callable[[Scene, str], float]:
    def find(scene: Scene, _: str) -> float:
        layers = _load(scene, kind)
        return sum(layer.entropy for layer in layers) / len(layers)

    return find


def _experts(kind: str) -> Callable[[Scene, str], int]:
    def find(scene: Scene, _: str) -> int:
        config, _history = scene.balance(kind)
        return config.n_experts * len(expert_layers(config))

    return find


def _played(scene: Scene, player: str) -> Game:
    game = scene.game()
    if player not in game.players:
        raise NotYet("The best bets on this text are unknown." if game.rounds else "Place a first bet.")
    return game


def _bits(player: str) -> Callable[[Scene, str], float]:
    return lambda scene, _: float(_played(scene, player).bits(player).mean())


def _points(player: str) -> Callable[[Scene, str], int]:
    return lambda scene, _: round(float(_played(scene, player).points(player).sum()))


# ---- what precision costs --------------------------------------------------------------------------------------------


def _in(name: str, number: Callable[[InPrecision, InPrecision], Value]) -> Callable[[Scene, str], Value]:
    """A number of this precision and fp32."""

    def find(scene: Scene, _: str) -> Value:
        ways = {way.name: way for way in scene.precision().ways}
        return number(ways[name], ways["fp32"])

    return find


def _cost_in_words(way: InPrecision, _: InPrecision) -> str:
    clear = abs(way.more) > way.more_margin
    return ("dearer" if way.more > 0 else "cheaper") if clear else "unclear"


def _parts_at(way: InPrecision, _: InPrecision) -> Value:
    return "never" if way.parts_at is None else way.parts_at + 1


def _of_number(name: str) -> Callable[[Scene, str], Value]:
    return lambda scene, _: getattr(scene.precision().matrix.worst, name)


# ---- constants of textbooks ------------------------------------------------------------------------------------------


def _slip(rest: str) -> Value:
    name, _, number = rest.partition(".")
    sentences = slip_sentences(name)
    if sentences is None:
        raise NotYet("The shipped model that this needs is not here.")
    return slip_values(name)[number] if number else sentences[1]


def _projections(tokens: int, index: int) -> Callable[[Scene, str], int]:
    return lambda *_: count_projections(5, tokens)[index]


def _llama_gib(*_: Any) -> float:
    return PRESETS["llama-7b"].cache_bytes(2048, bytes_per_number=2) / 2**30


FACTS: dict[str, Fact] = {
    # a run
    "loss": Fact(_loss, about_run=True),
    "training-loss": Fact(_evaluation("train_loss", -1), about_run=True),
    "first-loss": Fact(_first_loss, about_run=True),
    "best-loss": Fact(_best(1), about_run=True),
    "best-step": Fact(_best(0), about_run=True),
    "steps": Fact(lambda scene, run: _view(scene, run).history.last_step, about_run=True),
    "risen": Fact(lambda scene, run: _loss(scene, run) - _best(1)(scene, run), about_run=True),
    "apart": Fact(lambda scene, run: _loss(scene, run) - _evaluation("train_loss", -1)(scene, run), about_run=True),
    "uniform": Fact(_rung("uniform"), about_run=True),
    "unigram": Fact(_rung("unigram"), about_run=True),
    "bigram": Fact(_rung("bigram"), about_run=True),
    "floor": Fact(_rung("floor"), about_run=True),
    "gap": Fact(lambda scene, run: _loss(scene, run) - _rung("floor")(scene, run), about_run=True),
    "passed": Fact(_passed, about_run=True),
    "choices": Fact(_equally_likely, about_run=True),
    "tokens": Fact(lambda scene, run: round(math.exp(_rung("uniform")(scene, run))), about_run=True),
    "unit": Fact(lambda scene, run: _baselines(scene, run).unit, about_run=True),
    "right": Fact(_right, digits=1, about_run=True),
    "answer": Fact(_answer, about_run=True),
    "word": Fact(_word, about_run=True),
    "sure": Fact(_sure, digits=0, about_run=True),
    "copied": Fact(_copied, digits=0, about_run=True),
    "name": Fact(lambda scene, run: _view(scene, run).name, about_run=True),
    # the chosen model
    "layers": Fact(_config("n_layers")),
    "heads": Fact(_config("n_heads")),
    "context": Fact(_config("context_length")),
    "masked": Fact(lambda scene, _: "yes" if scene.checkpoint().config.causal else "no"),
    "cache-bytes": Fact(lambda scene, _: scene.checkpoint().config.cache_bytes(1)),
    "cache-bytes-full": Fact(lambda scene, _: scene.checkpoint().config.cache_bytes()),
    "prompt": Fact(lambda scene, _: scene.generate_prompt.strip() or "nothing"),
    "dice": Fact(lambda scene, _: scene.dice),
    "likeliest": Fact(_top),
    "likeliest-share": Fact(_share(1.0), digits=1),
    "likeliest-cold": Fact(_share(0.5), digits=1),
    "likeliest-hot": Fact(_share(2.0), digits=1),
    "even-share": Fact(lambda scene, _: 100 / scene.checkpoint().config.vocab_size, digits=1),
    # what Inspect looks at
    "reads": Fact(_reads),
    "layer": Fact(lambda scene, _: _looked(scene)[1]),
    "head": Fact(lambda scene, _: _looked(scene)[2]),
    "asks": Fact(_token(2)),
    "looks-at": Fact(_token(3)),
    "watches-most": Fact(_watched),
    "habit": Fact(_kind),
    "head-width": Fact(lambda scene, _: len(_receipt(scene).q)),
    "head-name": Fact(lambda scene, _: "{1}.{2}".format(*_looked(scene))),
    "vocabulary": Fact(lambda scene, _: scene.look().checkpoint.tokenizer.vocab_size),
    "width": Fact(lambda scene, _: scene.look().config.d_model),
    "last-looks": Fact(lambda scene, _: last_looks(*_looked(scene)[:3])),
    "next-token": Fact(lambda scene, _: favourite(scene.look())[0]),
    "next-share": Fact(lambda scene, _: favourite(scene.look())[1], digits=0),
    "mlp-keeps": Fact(lambda scene, _: mlp_keeps(scene.look()), digits=0),
    "settles": Fact(lambda scene, _: settles(scene.look())),
    "dot": Fact(_of_receipt("dot")),
    "score": Fact(_of_receipt("score")),
    "row-largest": Fact(_of_receipt("row_maximum")),
    "exponential": Fact(_of_receipt("exponential"), digits=6),
    "exponential-sum": Fact(_of_receipt("exponential_sum"), digits=6),
    "weight": Fact(_of_receipt("weight"), digits=4),
    "weight-percent": Fact(lambda scene, _: 100 * _receipt(scene).weight, digits=1),
    "hand-difference": Fact(lambda scene, _: f"{Decimal(f'{_receipt(scene).largest_difference:.1e}'):f}"),
    "expects": Fact(_expects),
    "expects-before": Fact(_expected("before"), digits=1),
    "expects-after": Fact(_expected("after"), digits=1),
    "moved": Fact(lambda scene, _: _effect(scene)[1].divergence),
    "head-cost": Fact(lambda scene, _: _cost(scene).difference, slow=True),
    "head-cost-margin": Fact(_cost_margin, slow=True),
    "head-cost-margins": Fact(_cost_in_margins, digits=1, slow=True),
    "head-cost-before": Fact(lambda scene, _: _cost(scene).before),
    "role": Fact(lambda scene, _: scene.role(scene.look()), slow=True),
    "role-words": Fact(lambda scene, _: ROLE_NAMES[scene.role(scene.look())], slow=True),
    "appeared-after": Fact(_appeared("before")),
    "appeared-by": Fact(_appeared("after")),
    "appeared-head": Fact(_appeared("head")),
    "appeared-percent": Fact(
        lambda scene, _: 100 * _appeared("after")(scene, "") / max(_view(scene, "chosen").history.last_step, 1),
        digits=0,
    ),
    "appeared-jump": Fact(_jump, digits=0),
    "appeared-score": Fact(_appeared("final"), digits=2),
    # two models, and balance
    "difference": Fact(lambda scene, _: _verdict(scene).difference),
    "difference-size": Fact(lambda scene, _: abs(_verdict(scene).difference)),
    "difference-margin": Fact(lambda scene, _: _verdict(scene).margin),
    "seeds": Fact(lambda scene, _: _verdict(scene).seeds),
    "winner": Fact(_winner),
    "zero": Fact(_side_of_zero),
    "experts-with": Fact(_experts("with")),
    "experts-without": Fact(_experts("without")),
    "dead-with": Fact(_dead("with")),
    "dead-without": Fact(_dead("without")),
    "entropy-with": Fact(_entropy("with"), digits=2),
    "entropy-without": Fact(_entropy("without"), digits=2),
    "entropy-most": Fact(lambda scene, _: math.log2(scene.balance("without")[0].n_experts), digits=2),
    # bets on the next token
    "bets": Fact(lambda scene, _: len(scene.game().rounds)),
    "bits-you": Fact(_bits(YOU), digits=2),
    "bits-model": Fact(_bits(MODEL), digits=2),
    "bits-bigram": Fact(_bits(BIGRAM), digits=2),
    "bits-floor": Fact(_bits(FLOOR), digits=2),
    "points-you": Fact(_points(YOU)),
    "points-model": Fact(_points(MODEL)),
    "points-bigram": Fact(_points(BIGRAM)),
    "points-floor": Fact(_points(FLOOR)),
    "points-lead": Fact(lambda scene, _: _points(YOU)(scene, "") - _points(MODEL)(scene, "")),
    "model-lead": Fact(lambda scene, _: _points(MODEL)(scene, "") - _points(BIGRAM)(scene, "")),
    # what precision costs
    "bits-32-bytes": Fact(_in("fp32", lambda way, _: way.nbytes)),
    "bits-8-bytes": Fact(_in("int8", lambda way, _: way.nbytes)),
    "bits-8-smaller": Fact(_in("int8", lambda way, plain: plain.nbytes / way.nbytes), digits=1),
    "bits-8-faster": Fact(_in("int8", lambda way, plain: way.tokens_per_second / plain.tokens_per_second), digits=1),
    "bits-32-loss": Fact(_in("fp32", lambda way, _: way.loss)),
    "bits-8-cost": Fact(_in("int8", lambda way, _: way.more), digits=5),
    "bits-8-margin": Fact(_in("int8", lambda way, _: way.more_margin), digits=5),
    "bits-8-worth": Fact(_in("int8", _cost_in_words)),
    "bits-8-parts": Fact(_in("int8", _parts_at)),
    "bits-16-parts": Fact(_in("bf16", _parts_at)),
    "written-tokens": Fact(lambda scene, _: scene.precision().written),
    "weight-value": Fact(_of_number("value"), digits=6),
    "weight-largest": Fact(_of_number("largest"), digits=6),
    "weight-scale": Fact(_of_number("scale"), digits=8),
    "weight-level": Fact(_of_number("level")),
    "weight-back": Fact(_of_number("back"), digits=6),
    "weight-middle": Fact(lambda scene, _: scene.precision().matrix.middle_half),
    # constants
    "made-3": Fact(_projections(3, 0)),
    "made-3-cached": Fact(_projections(3, 1)),
    "made-500": Fact(_projections(500, 0)),
    "made-500-cached": Fact(_projections(500, 1)),
    "times-500": Fact(lambda *_: round(_projections(500, 0)() / _projections(500, 1)())),
    "llama-cache": Fact(_llama_gib, digits=1),
}
"""By the name that lesson files use; beside them `slip.NAME`, what is true of a slip, and `slip.NAME.NUMBER`."""
