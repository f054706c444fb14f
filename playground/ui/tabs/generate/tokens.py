"""TokenText: a text under the model that wrote it, which grows by its last part, whose tokens can then be clicked.

The browser's half is assets/writing.js. It knows of a press of Generate before the server does: it says so, keeps the
number of the latest press, which travels with it, and drops what an earlier one still sends.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import gradio as gr

from ....service.verdicts import Verdict
from ...chart import ASSETS
from .written import Written

OVERLAP = 1000
"""Characters that are sent again with what is new: as many may be lost on the way, or overtaken."""

_TEMPLATE = """<div class="written-desk"><p class="written-by quiet-line" hidden></p><div class="written"></div>
<p class="written-state quiet-line" role="status"></p></div>"""

# the last of an event's inputs is the component that holds the press; values go on to the handler as they are
BEGIN = """(...values) => {
  if (window.playgroundWriting) values[values.length - 1] = window.playgroundWriting.begin();
  return values;
}"""
STOP = "() => [window.playgroundWriting?.stop() ?? '']"
UNLESS_WRITTEN = "(visitor, kept) => [visitor, window.playgroundWriting?.latest ? null : kept]"
CHOSEN = """(model) => {
  const writing = (window.playgroundWriting ??= {});
  writing.model = model;
  writing.named?.();
}"""

WEIGHTS = CHOSEN.replace("model", "weights")


def buttons(writing: bool) -> str:
    """The script whose answers put [Generate, Stop] into the state of this moment: one of both sleeps."""
    asleep = [f"{{__type__: 'update', interactive: {str(on).lower()}}}" for on in (not writing, writing)]
    guard = "" if writing else "if (window.playgroundWriting && !window.playgroundWriting.end()) return KEEP;"
    keep = "[{__type__: 'update'}, {__type__: 'update'}]"
    return f"() => {{ {guard.replace('KEEP', keep)} return [{', '.join(asleep)}]; }}"


def TokenText(*, elem_id: str) -> gr.HTML:
    """An empty place for a text; its `.select` gives gr.SelectData with index [sample, token]."""
    script = (ASSETS / "writing.js").read_text(encoding="utf-8").replace("'select'", '"select"')
    return gr.HTML(None, html_template=_TEMPLATE, js_on_load=script, apply_default_css=False, elem_id=elem_id)


def growing(press: str, head: dict[str, str], texts: Sequence[str], sent: Sequence[int], state: str) -> dict[str, Any]:
    """A text while it is written: of each sample what is new since its first `sent` characters, and some before it."""
    starts = [max(n - OVERLAP, 0) for n in sent]
    parts = [{"from": _utf16(text[:start]), "text": text[start:]} for text, start in zip(texts, starts)]
    return {**head, "press": press, "growing": parts, "state": state}


def finished(
    press: str,
    head: dict[str, str],
    written: Written,
    pieces: Sequence[Sequence[str]],
    verdicts: Sequence[Verdict | None] = (),
) -> dict[str, Any]:
    """The whole text, token by token, each with the model's probability of it, and the tokens of its wrong words."""
    faults = [_tokens(found, sample) for found, sample in zip(verdicts, pieces)]
    whole = {"samples": [list(p) for p in pieces], "chances": written.probabilities, "faults": faults}
    return {**head, "press": press, **whole, "state": ""}


def _tokens(found: Verdict | None, pieces: Sequence[str]) -> list[tuple[int, int, str]]:
    """The first and the last token of each word to underline, and why."""
    ends = list(accumulate(map(len, pieces)))
    marks = found.marks if found is not None else ()
    return [(bisect_right(ends, start), bisect_left(ends, end), why) for start, end, why in marks]


def _utf16(text: str) -> int:
    """The length of a text as browsers count."""
    return len(text) + sum(character > "\uffff" for character in text)
