"""What both write: the texts of both models after the same beginning, with the same random numbers."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from ....engine import SamplingConfig, stream
from ....storage import Checkpoint
from ...panel import Slot, move_button, slot
from ...prompts import read_prompt
from ...theme import badge, notice
from .selection import PROMPT, At

TITLE = "What both write"
TOKENS = 60
TEMPERATURE = 0.8

TEMPLATE = f"""<div class="stack"><div class="line">{PROMPT}{slot("both-again")}</div>{slot("texts-note")}
{slot("both-texts", id="both-texts", class_="stack")}</div>"""


def slots(at: At) -> dict[str, Slot]:
    """All slots of this fold. Raises ValueError if the prompt cannot be read."""
    pair, prompt, seed = at.pair, at.chosen.prompt or "", at.chosen.seed
    read = [read_prompt(at.page, checkpoint, prompt) for checkpoint in pair]
    notes = list(dict.fromkeys(text for _, found in read for text in found))
    ids = [tokens[-each.config.context_length :] for each, (tokens, _) in zip(pair, read)]
    rules = SamplingConfig(temperature=TEMPERATURE, seed=seed)
    return {
        "texts-note": Slot(notes, lambda: "".join(notice(text, "warning") for text in notes)),
        "both-texts": Slot((*at.about_both, prompt, seed), lambda: texts(pair, ids, rules), slow=True),
        "both-again": Slot(seed, lambda: move_button("Write again", {"seed": (seed + 1) % 1000})),
    }


def texts(pair: Sequence[Checkpoint], ids: Sequence[list[int]], rules: SamplingConfig) -> str:
    """What both models write, each after the last line of its prompt, the first word that differs marked, as HTML."""
    given, new = [], []
    for checkpoint, tokens in zip(pair, ids):
        given.append(checkpoint.tokenizer.decode(tokens).rpartition("\n")[2])
        streamed = stream(checkpoint.model, checkpoint.tokenizer, tokens, TOKENS, rules, shared=True)
        new.append("".join(token.text for _, (token,) in streamed))
    same = next((i for i, (a, b) in enumerate(zip(*new)) if a != b), min(map(len, new)))
    begin = same - len(re.search(r"\S*$", new[0][:same])[0])
    word = re.compile(r"\s*\S*")
    cards = "".join(
        f'<div>{badge(name, kind)}<p class="sample" dir="auto"><span class="prompt">{html.escape(start)}</span>'
        f'{html.escape(text[:begin])}<mark class="parted-{kind}">{html.escape(word.match(text, begin)[0])}</mark>'
        f"{html.escape(text[word.match(text, begin).end() :])}</p></div>"
        for name, kind, start, text in zip(("Dense", "MoE"), ("dense", "moe"), given, new)
    )
    place = f"after {same:,} character{'s' * (same > 1)}" if same else "at the first token"
    words = "Both wrote the same text."
    if new[0] != new[1]:
        words = f"With the same random numbers, the texts diverge {place}."
    return f'<h3>{words}</h3><div class="by-temperature">{cards}</div>'
