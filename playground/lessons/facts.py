"""Facts: what a lesson may say of the visitor's own run, model and view; all named in one table.

`loss` is the loss of the lesson's own run, `chosen.loss` that of the model chosen above all tabs, `green.loss` that of
the run that the lesson calls green. A fact that is not there yet raises NotYet, which says what to do first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from textwrap import shorten

import torch

from ..data.tokenizers import visible
from ..engine import SamplingConfig, count_projections
from ..engine.sampling import probabilities
from ..game.rules import BIGRAM, FLOOR, MODEL, YOU, Game
from ..inspection import Look
from ..inspection.balance import evenness, load_over_training
from ..inspection.cost import Effect, effect
from ..inspection.edits import edits_tap
from ..inspection.precision import InPrecision
from ..inspection.receipts import receipt
from ..inspection.replay import Appearance
from ..inspection.routing import expert_layers, second
from ..model import PRESETS
from ..studies.slips import slip_numbers
from ..training.verdict import Verdict
from ..words.heads import ROLE_NAMES
from ..words.numbers import percent
from ..words.slips import SLIPS
from .run_facts import RUN_FACTS
from .scene import NotYet, Scene, Value

READ = 60
"""Most characters of a prompt that a sentence quotes."""


def is_fact(name: str, runs: Iterable[str] = ()) -> bool:
    """Whether this is a number, or the name of a fact in a lesson with these runs."""
    if name in FACTS or re.fullmatch(r"-?[\d.]+", name):
        return True
    run, _, rest = name.partition(".")
    if run == "slip":
        slip, _, number = rest.partition(".")
        return slip in SLIPS and f"{{{number}" in SLIPS[slip].truth
    return run in (*runs, "chosen") and rest in RUN_FACTS


def is_word(name: str) -> bool:
    """Whether a fact is a word or a label, not a number."""
    return name.rpartition(".")[2] in WORDS


def value_of(scene: Scene, name: str) -> Value:
    """The value of a fact, or a plain number itself. Raises NotYet."""
    run, _, rest = name.partition(".")
    try:
        if name in SCENE_FACTS:
            found = SCENE_FACTS[name](scene)
        elif name in RUN_FACTS:
            found = RUN_FACTS[name](scene, "run")
        elif run == "slip":
            slip, _, number = rest.partition(".")
            found = slip_numbers(slip)[number]
        elif rest in RUN_FACTS:
            found = RUN_FACTS[rest](scene, run)
        else:
            found = float(name)
    except NotYet:
        raise
    except ValueError as problem:  # a sentence from the functions below
        raise NotYet(str(problem)) from problem
    except OSError as problem:
        raise NotYet("The shipped model that this needs is not here.") from problem
    if isinstance(found, float) and not math.isfinite(found):
        raise NotYet("That number is not finite here.")
    return found


def written(name: str, value: Value) -> str:
    """A fact's value as it appears in a sentence."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}".replace("-", "−")
    digits = 2 if name.startswith("slip.") else DIGITS.get(name, DIGITS.get(name.rpartition(".")[2], 4))
    return f"{value:,.{digits}f}".replace("-", "−")


# ---- the chosen model, and what Inspect looks at ---------------------------------------------------------------------


def _next(scene: Scene, temperature: float = 1.0) -> tuple[str, float]:
    """The likeliest token after Generate's prompt, and its percent at a temperature."""
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


def _token(scene: Scene, index: int) -> str:
    """The chosen query (3) or key (4), with its place."""
    look, place = scene.looked[0], scene.looked[index]
    return f"{place} {look.tokens[place]}"


def _reads(scene: Scene) -> str:
    """The prompt in Inspect; if long, only its beginning."""
    look = scene.look()
    return shorten(look.checkpoint.tokenizer.decode(look.ids), READ, placeholder=" …")


def _weight(scene: Scene) -> float:
    look, layer, head, query, key = scene.looked
    return 100 * float(look.pattern(layer)[head, query, key])


def _row_looks(scene: Scene) -> str:
    """Where the query attends most, in one word; `answer` and `after` are about the likeliest token."""
    look, layer, head, query, _key = scene.looked
    row, best = look.pattern(layer)[head, query], favourite(look)[0]
    key = int(row.argmax())
    if float(row[key]) < 2 / (query + 1):
        return "even"
    if look.tokens[key] == best:
        return "answer"
    if key and look.tokens[key - 1] == best:
        return "after"
    return "previous" if key == query - 1 else "elsewhere"


def _attends_most(scene: Scene) -> str:
    """Where the query attends most: `itself`, the `previous` token, or an `earlier` one."""
    look, layer, head, query, _key = scene.looked
    back = query - int(look.pattern(layer)[head, query].argmax())
    return "itself" if back == 0 else "previous" if back == 1 else "earlier"


def favourite(look: Look) -> tuple[str, float]:
    """(label, percent) of the likeliest token after the prompt."""
    probabilities = look.trace["logits"][0, -1].double().softmax(-1)
    return look.token_label(int(probabilities.argmax())), 100 * float(probabilities.max())


def _effect(scene: Scene) -> Effect:
    """What the changes in force do to the prediction after the query token."""
    look, _layer, _head, query, _key = scene.looked
    listed = scene.edits()
    if not listed:
        raise NotYet("Nothing is switched off yet. Press “Switch it off”.")
    return effect(look.model, torch.tensor([look.ids]), edits_tap(listed, look.config), query)


def _expected_change(scene: Scene) -> str:
    """The expected token's probability without the changes, then with them: `31 % → 8 %`."""
    found = _effect(scene)
    best = int(found.before.argmax())
    return " → ".join(percent(float(each[best])) for each in (found.before, found.after))


def _appeared(scene: Scene) -> Appearance:
    found = scene.appeared(scene.look())
    if found is None:
        raise NotYet("This model has no head that copies. Choose “Copying”.")
    return found


# ---- two models, and balance -----------------------------------------------------------------------------------------


def _verdict(scene: Scene) -> Verdict:
    view = scene.pair()
    if view.verdict is None:
        raise NotYet(view.withheld or "There is no verdict on these two yet.")
    return view.verdict


def _price(scene: Scene) -> str:
    """The mixture's memory and training speed as multiples of the dense model's, as in the boxes below the verdict."""
    view = scene.pair()
    if not view.sides or not all(view.speeds.values()):
        raise NotYet("Press “Train both” first.")
    memory = view.sides["moe"].config.n_parameters / view.sides["dense"].config.n_parameters
    speed = view.speeds["moe"] / view.speeds["dense"]
    return f"{memory:.1f} times the memory, and trains at {speed:#.2g} times the speed"


def _winner(scene: Scene) -> str:
    verdict = _verdict(scene)
    return "unclear" if not verdict.is_clear else "moe" if verdict.difference < 0 else "dense"


def _load(scene: Scene, kind: str) -> list[float]:
    """Each expert's share of the tokens at the end of training, in the layer that the page shows at first."""
    config, history = scene.balance(kind)
    layers = expert_layers(config)
    if (over := load_over_training(history.load, len(layers), config.n_experts)) is None:
        raise NotYet("The load is not measured yet. Wait a moment.")
    return over[1][-1, layers.index(second(layers))].tolist()


def _used(scene: Scene, kind: str) -> int:
    """How many of this layer's experts are effectively in use at the end of training, as above its picture."""
    return round(2 ** evenness(_load(scene, kind)).entropy)


def _points(scene: Scene, *players: str) -> int:
    """A player's points, or the first player's minus the second's."""
    game: Game = scene.game()
    if missing := {*players} - {*game.players}:
        raise NotYet("The best bets on this text are unknown." if missing == {FLOOR} else "Place a first bet.")
    first, *second = (int(game.points(player).sum()) for player in players)
    return first - sum(second)


# ---- what precision costs --------------------------------------------------------------------------------------------


def _int8(scene: Scene, name: str = "int8") -> InPrecision:
    """The measured effect of a precision on the chosen model."""
    return next(way for way in scene.precision().ways if way.name == name)


def _worth(scene: Scene) -> str:
    """Whether int8 is `dearer` or `cheaper`; `unclear` where its cost may be chance."""
    way = _int8(scene)
    return "unclear" if not way.can_be_told else "dearer" if way.more > 0 else "cheaper"


# ---- the table -------------------------------------------------------------------------------------------------------

SCENE_FACTS: dict[str, Callable[[Scene], Value]] = {
    # the chosen model, and the prompt of Generate
    "positions": lambda scene: scene.checkpoint().config.positions,
    "cache-bytes": lambda scene: scene.checkpoint().config.cache_bytes(1),
    "prompt": lambda scene: re.sub(r"\s+$", lambda end: visible(end[0]), scene.generate_prompt) or "nothing",
    "dice": lambda scene: scene.dice,
    "likeliest": lambda scene: _next(scene)[0],
    "likeliest-share": lambda scene: _next(scene)[1],
    "likeliest-hot": lambda scene: _next(scene, 2.0)[1],
    # what Inspect looks at
    "reads": _reads,
    "head-name": lambda scene: "{1}.{2}".format(*scene.looked),
    "asks": lambda scene: _token(scene, 3),
    "looks-at": lambda scene: _token(scene, 4),
    "looks-ahead": lambda scene: "yes" if scene.looked[4] > scene.looked[3] else "no",
    "row-looks": _row_looks,
    "attends-most": _attends_most,
    "dot": lambda scene: receipt(*scene.looked).dot,
    "weight-percent": _weight,
    "vocabulary": lambda scene: scene.look().checkpoint.tokenizer.vocab_size,
    "width": lambda scene: scene.look().config.d_model,
    "next-token": lambda scene: favourite(scene.look())[0],
    "next-share": lambda scene: favourite(scene.look())[1],
    "edits": lambda scene: len(scene.edits()),
    "expects": lambda scene: scene.look().token_label(int(_effect(scene).before.argmax())),
    "expects-change": _expected_change,
    "moved": lambda scene: _effect(scene).divergence,
    "role": lambda scene: scene.role(scene.look()),
    "role-words": lambda scene: ROLE_NAMES[scene.role(scene.look())],
    "appeared-head": lambda scene: "head {0.layer}.{0.head}".format(_appeared(scene)),
    "appeared-percent": lambda scene: 100 * _appeared(scene).after / max(scene.run("chosen")[0].history.last_step, 1),
    # two models, and balance
    "moe-price": _price,
    "winner": _winner,
    "used-compared": lambda scene: f"{_used(scene, 'without')} instead of {_used(scene, 'with')}",
    "used-without": lambda scene: _used(scene, "without"),
    # bets on the next token
    "bets": lambda scene: len(scene.game().rounds),
    "points-you": lambda scene: _points(scene, YOU),
    "points-floor": lambda scene: _points(scene, FLOOR),
    "points-lead": lambda scene: _points(scene, YOU, MODEL),
    "model-lead": lambda scene: _points(scene, MODEL, BIGRAM),
    # what precision costs
    "bits-32-loss": lambda scene: _int8(scene, "fp32").loss,
    "bits-8-smaller": lambda scene: _int8(scene, "fp32").nbytes / _int8(scene).nbytes,
    "bits-8-cost": lambda scene: _int8(scene).more,
    "bits-8-worth": _worth,
    "bits-8-parts": lambda scene: "never" if (at := _int8(scene).parts_at) is None else at + 1,
    "weight-back": lambda scene: scene.precision().matrix.worst.back,
    "weight-middle": lambda scene: scene.precision().matrix.middle_half,
    # constants
    "times-500": lambda _: round(count_projections(5, 500)[0] / count_projections(5, 500)[1]),
    "llama-cache": lambda _: PRESETS["llama-7b"].cache_bytes(2048, bytes_per_number=2) / 2**30,
}
"""All facts by the names that lesson files use; also `slip.NAME.NUMBER`, a number about a textbook slip."""
FACTS = (*RUN_FACTS, *SCENE_FACTS)
WORDS = (
    "answer", "word", "name", "prompt", "dice", "likeliest", "reads", "head-name", "asks", "looks-at", "looks-ahead",
    "expects-change", "next-token", "expects", "role", "role-words", "appeared-head", "winner", "bits-8-parts",
    "used-compared", "moe-price", "positions", "row-looks", "attends-most", "bits-8-worth",
)  # fmt: skip
"""Facts that are words or labels, not numbers."""
DIGITS = {
    **dict.fromkeys(("sure", "next-share", "appeared-percent"), 0),
    **dict.fromkeys(("perplexity", "right", "likeliest-share", "likeliest-hot", "weight-percent"), 1),
    **dict.fromkeys(("bits-8-smaller", "llama-cache"), 1),
    **dict.fromkeys(("loss", "training-loss", "floor", "gap"), 3),
    **dict.fromkeys(("uniform", "unigram", "bigram", "risen", "apart"), 2),
    "bits-8-cost": 5,
    "weight-back": 6,
}
"""Digits after the point, if not four."""
SLOW = ("role", "role-words")
"""Finding one of these facts takes seconds, so a question does not check beforehand whether it is there."""
