"""Two prompts that differ in one word: which suit a model, which are chosen, and what their three panels share."""

from __future__ import annotations

import difflib
import functools
import html
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from ....engine import SamplingConfig, generate
from ....interventions.pairs import SEARCHED, found_pairs, written_pairs
from ....interventions.patching import Pair, pair_of
from ....kept import Kept
from ....model import Tap
from ....processes import in_decoding_threads
from ....service.limits import HEAD_TESTS_FLOPS
from ....words.result import Result
from ...chart import show
from ...panel import Slot, chip
from ...prompts import read_prompt
from ...theme import quiet
from ...theme import result as result_html
from .selection import MODEL, At
from .tested import judged_by, texts_of

PAIRS, MOST_NEW, LONG = 16, 150, 60
"""Pairs, and tokens that are written, at most; characters after which a text ends with its sentence."""
TEXT_TOKENS = 8192
"""Tokens of text in which pairs are looked for."""
NO_PAIRS = (
    "No ready-made pair suits this model. Under “Patch from another prompt”, type your prompt with one token changed."
)
BY_HAND = "This example was written by hand for one prompt. Choose a trained model under “Look into”"
REPLACE = "Replace your prompt with a pair:"
MARKS = ".,:;!?…。\"'"
END = (".", "!", "?", "…", "。")
RULES = SamplingConfig(greedy=True)

kept_here = Kept(entries=256, megabytes=64)
"""What was measured of a model, by what it depends on; it goes when the model does."""


def read(at: At, text: str) -> list[int]:
    """A prompt's token ids, at most the last ones that fit the context. Raises ValueError for an empty prompt."""
    return read_prompt(at.page, at.look.checkpoint, text)[0][-at.look.config.context_length :]


def lines_of(at: At, text: str | None) -> list[list[int]]:
    """The prompts of one side, one a line."""
    return [read(at, line) for line in (text or "").split("\n") if line.strip()][:PAIRS]


def text_of(at: At, ids: tuple[int, ...]) -> str:
    """What these tokens spell."""
    return at.look.checkpoint.tokenizer.decode(ids)


def check_size(at: At, tokens: int, what: str) -> None:
    """Raise ValueError for a worked example, or if reading this many tokens would take too long."""
    if at.chosen.subject != MODEL:
        raise ValueError(BY_HAND)
    if tokens * at.look.config.flops_per_token() > HEAD_TESTS_FLOPS:
        raise ValueError(f"This model is too large for {what} here. Choose a smaller one, or a shorter prompt")


def texts_like(at: At) -> torch.Tensor:
    """Windows (N, T) of text like the training text."""
    make = lambda: texts_of(at.look, judged_by(at.page, at.look, TEXT_TOKENS))[0]  # noqa: E731
    return kept_here.get("texts", make, owner=at.look.model)


def pairs_of(at: At) -> list[Pair]:
    """Pairs that suit the model; none for a model too large to look for them."""
    try:
        check_size(at, SEARCHED, "pairs")
    except ValueError:
        return []
    own = at.look.model, at.look.checkpoint.tokenizer
    made = lambda: written_pairs(*own) or found_pairs(*own, texts_like(at))  # noqa: E731
    return kept_here.get("pairs", made, owner=at.look.model)


def pair_here(at: At) -> Pair:
    """The two prompts, with the same blanks at their ends. Raises ValueError where they make no pair."""
    check_size(at, 2 * at.look.length, "two prompts")
    here, typed = text_of(at, at.look.ids), (at.chosen.other or "").rstrip()
    other = read(at, typed and typed + here[len(here.rstrip()) :])
    key = "pair", at.look.ids, tuple(other)
    return kept_here.get(key, lambda: pair_of(at.look.model, at.look.ids, other), owner=at.look.model)


def answers_of(at: At) -> tuple[str, str]:
    """The two answers as tokens are written on the page."""
    pair = pair_here(at)
    return at.look.token_label(pair.answer), at.look.token_label(pair.foil)


def ideas(at: At) -> Slot:
    """A button for each suggested pair, which replaces both prompts."""

    def offered(pair: Pair) -> tuple[str, dict[str, Any]]:
        both = text_of(at, pair.ids), text_of(at, pair.other)
        anew = {"kept": [], "query": None, "key": None, "steered": ""}
        return " / ".join(changed_words(*both)), {"prompt": both[0], "other": both[1], **anew}

    return Slot(at.about[:3], lambda: pair_chips(at, REPLACE, pairs_of(at), offered, NO_PAIRS), slow=True)


def pair_chips(
    at: At, said: str, pairs: list[Pair], offered: Callable[[Pair], tuple[str, dict[str, Any]]], none: str
) -> str:
    """A labelled row of buttons, each with the words and the move that are `offered` for a pair; `none` without any."""
    if not pairs:
        return quiet(none if at.chosen.subject == MODEL else f"{BY_HAND}.")
    chips = "".join(chip(*offered(pair)) for pair in pairs)
    return f'{quiet(said)}<div class="chips" data-arrows="">{chips}</div>'


def changed_words(one: str, other: str) -> list[str]:
    """The words in which two prompts differ, of each prompt."""
    words, others = one.split(), other.split()
    matched = difflib.SequenceMatcher(None, words, others, autojunk=False).get_opcodes()
    changed = [part for part in matched if part[0] != "equal"]
    return [
        " … ".join(" ".join(side[part[i] : part[i + 1]]).strip(MARKS) for part in changed)
        for i, side in ((1, words), (3, others))
    ]


# ---- what is drawn ---------------------------------------------------------------------------------------------------


def with_headline(
    name: str, about: tuple[Any, ...], make: Callable[[], tuple[dict[str, Any], Result]], below: Callable[[], str] = str
) -> dict[str, Slot]:
    """Two slots for a result: its words with folded details, and its chart, with a note `below`."""
    make = functools.cache(make)

    def chart() -> dict[str, Any] | None:
        (figure, result), note = make(), below()
        return show(figure, note or result.headline, aloud=not note, layer=None, head=None)

    words = Slot(about, lambda: result_html(make()[1]), slow=True)
    return {f"{name}-headline": words, name: Slot(about, chart, slow=True, echoes=True)}


def written(at: At, tap: Tap) -> str:
    """How the model most likely continues the prompt, to the end of a sentence if it writes sentences."""
    most = min(MOST_NEW, at.page.limits.new_tokens)
    model, ids, tokenizer = at.look.model, at.look.ids, at.look.checkpoint.tokenizer

    def write() -> list[int]:
        new, text = [], ""
        for step in generate(model, ids, most, RULES, tap=tap):
            new.append(step.tokens[0])
            text += tokenizer.token_text(step.tokens[0])
            if len(text) >= LONG and text.endswith(END):
                break
        return new

    device = next(model.parameters()).device
    new_ids = in_decoding_threads(at.look.config.n_active_parameters, device, write)
    return tokenizer.decode([*ids, *new_ids])[len(text_of(at, ids)) :]  # with a space between words


def cards(at: At, taps: dict[str, Tap], few: Sequence[str] = (), fold: str = "") -> str:
    """What the model writes with each tap, side by side under their names, as HTML.

    The word from which a text differs from the first one is marked. With the names of a `few`, all are in a `fold`.
    """
    begun = f'<span class="prompt">{html.escape(text_of(at, at.look.ids))}</span>'
    texts, shown = {name: written(at, tap) for name, tap in taps.items()}, few or [*taps]

    def beside(names: Iterable[str]) -> str:
        each = "".join(
            f"<div><strong>{html.escape(name)}</strong>"
            f'<p class="sample" dir="auto">{begun}<samp>{_marked(texts[name], texts[shown[0]])}</samp></p></div>'
            for name in names
        )
        return f'<div class="by-temperature">{each}</div>'

    same = quiet("The texts are the same.") if len({texts[name] for name in shown}) == 1 else ""
    more = f'<details class="stack"><summary>{html.escape(fold)}</summary>{beside(texts)}</details>' if few else ""
    return f"{same}{beside(shown)}{more}"


def _marked(text: str, plain: str) -> str:
    """A text as HTML, with the first word marked that another one does not have there."""
    others = plain.split()
    first = next((i for i, word in enumerate(text.split()) if others[i : i + 1] != [word]), None)
    parts = [html.escape(part) for part in re.split(r"(\S+)", text)]
    if first is not None:
        parts[2 * first + 1] = f"<mark>{parts[2 * first + 1]}</mark>"
    return "".join(parts)
